"""What users give for a file: media or an index, saved or not, and where the media are."""

import pytest

import fragdex
from fragdex.errors import SourceNotFound
from fragdex.formats.media_or_index import index_and_media, is_one, known_and_media
from fragdex.testing import movie


@pytest.fixture
def given(tmp_path):
    """Every form of one film: {its name: (what is given, whether its index says the media)}."""
    path = tmp_path / "film.mp4"
    path.write_bytes(movie())
    index = fragdex.index(path)
    index.save(tmp_path / "film.fidx")
    saved = (tmp_path / "film.fidx").read_bytes()
    return {
        "bytes": movie(), "path": path, "text": str(path), "index": index,
        "saved": tmp_path / "film.fidx", "bytes of an index": saved,
    }  # fmt: skip


def test_every_form_is_one_file_and_gives_the_same_index(given):
    expected = fragdex.index(movie()).tracks
    for what in given.values():
        assert is_one(what)
        assert index_and_media(what, None, "view")[0].tracks == expected
    assert not is_one([*given.values()])


def test_media_are_given_once(given):
    for name in ("bytes", "path", "text"):
        with pytest.raises(TypeError, match="the media themselves are given"):
            index_and_media(given[name], b"", "view")
    with pytest.raises(TypeError, match="the first argument is the media"):
        known_and_media(given["index"], given["index"])
    with pytest.raises(SourceNotFound):
        known_and_media(fragdex.index(movie()), None)
    with pytest.raises(ValueError, match=r"fragdex\.join"):
        index_and_media([movie()], None, "view")
