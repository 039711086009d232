"""What we hand to browsers plays in one, and the docs say what it answered."""

import re
from pathlib import Path

import pytest

import fragdex
from fragdex.transcode.playable import codec_name
from fragdex.transcode.process import process_file
from transcode import browsers, smart_cuts

DOCS = Path(__file__).parents[2] / "docs" / "browsers.md"
MADE = [codec for codec in browsers.CODECS if codec.how is not None]


def rows():
    """The table of the docs by name of the codec: string, said, appended, what we do."""
    text = DOCS.read_text()
    table = text[text.index("| Codec |") :]
    matches = re.findall(
        r"^\| (.+?) \| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE
    )
    return {name: tuple(rest) for name, *rest in matches}


@pytest.fixture(scope="module")
def chromium():
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with browsers.chromium() as browser:
        if browser is None:
            pytest.skip(f"no browser: none of {', '.join(browsers.NAMES)} is on the path")
        yield browser


@pytest.fixture
def page(chromium):
    with chromium.new_context() as context:
        yield context.new_page()


@pytest.mark.parametrize("codec", MADE, ids=lambda codec: codec.name)
def test_a_codec_is_copied_as_the_table_says_and_every_track_plays(codec, page, made, tmp_path):
    source = made(f"source.{codec.form}", seconds=1, **codec.how)
    assert (not browsers.reasons(source)) == codec.copied
    folder = tmp_path / "made"
    folder.mkdir()
    with open(source, "rb") as file:
        tracks = process_file(file, folder)
    for track in tracks:
        assert browsers.asked(page, track.path)[1:] == (True, None)
    if codec.copied:
        path = browsers.fragmented(codec, source, tmp_path / "track.mp4")
        assert codec_name(fragdex.index(path).tracks[0].codec) is not None
        assert browsers.asked(page, path)[1:] == (True, None)


@pytest.mark.parametrize("name", ["av1-opus.mp4", "frag-vp9-opus.mp4"])
def test_a_smart_cut_plays_as_a_file(name, page):
    data, clip = smart_cuts.smart(name, 0.6, 1.3)
    assert 0 < clip.encoded < fragdex.index(data, exact=True).video.sample_count
    wrong, seconds, pictures = browsers.file_played(page, data)
    assert wrong is None
    assert pictures > 0
    assert seconds == pytest.approx(float(clip.stop - clip.start), abs=0.03)


def test_what_no_encoder_here_makes_is_copied_only_where_the_browser_says_that_it_plays(page):
    for codec in browsers.CODECS:
        if codec.how is None:
            assert (codec_name(codec.string) is not None) == codec.copied, codec.name
            assert not codec.copied or browsers.said(page, codec), codec.name


def test_the_table_of_the_docs_has_every_codec_and_what_we_do_with_it():
    table = rows()
    assert list(table) == [codec.name for codec in browsers.CODECS]
    for codec in browsers.CODECS:
        assert table[codec.name][3] == ("copied" if codec.copied else "encoded")
        if codec.copied:
            assert table[codec.name][1:3] in (("yes", "yes"), ("yes", "—"))


def test_the_table_of_the_docs_is_what_its_browser_says(chromium, page, made, tmp_path):
    if f"Chromium {chromium.version}\n" not in DOCS.read_text():
        pytest.skip(f"the table is of another browser than {chromium.version}")
    table = rows()
    for codec in browsers.CODECS:
        if codec.how is None:
            line = browsers.row(codec, codec.string, browsers.said(page, codec), None)
        elif codec.copied:
            continue  # asked above
        else:
            source = made(f"source.{codec.form}", seconds=1, **codec.how)
            path = browsers.fragmented(codec, source, tmp_path / "track.mp4")
            kind, supported, wrong = browsers.asked(page, path)
            line = browsers.row(codec, kind.split('"')[1], supported, wrong is None)
        assert line == f"| {codec.name} | `{table[codec.name][0]}` | " + (
            " | ".join(table[codec.name][1:]) + " |"
        )
