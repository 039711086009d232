"""Every real file: what was indexed and saved is what the file says."""

import os
from itertools import product
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import FragdexError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CORPUS = os.environ.get("FRAGDEX_CORPUS")
SUFFIXES = {".mp4", ".m4s", ".m4a", ".mov", ".ismv", ".3gp", ".3g2", ".f4v", ".avif", ".cmfv"}
INITS = {
    "dash-segment-1.m4s": "dash-init.mp4",
    "dash-segment-2.m4s": "dash-init.mp4",
    "hls-segment-0.m4s": "hls-init.mp4",
    "hls-segment-1.m4s": "hls-init.mp4",
    "lldash-segment-1.m4s": "lldash-init.mp4",
}


def real_files():
    paths = [*FIXTURES.iterdir(), *(FIXTURES / "made").iterdir()]
    if CORPUS:
        paths += Path(CORPUS).iterdir()
    return sorted(path for path in paths if path.is_file() and path.suffix in SUFFIXES)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_what_was_saved_is_what_the_file_says(call, path, tmp_path):
    """With and without exact, samples, and an initialization segment; verify needs none."""
    media = tmp_path / path.name
    media.write_bytes(path.read_bytes())
    try:
        fragdex.index(media)
    except FragdexError:
        pytest.skip("nothing in it can be indexed")
    init = INITS.get(path.name)
    ways = list(product((False, True), (False, True), (False, True) if init else (False,)))
    saved = []
    for number, (exact, samples, with_init) in enumerate(ways):
        options = ["--exact"] * exact + ["--samples"] * samples
        options += ["--init", FIXTURES / init] if with_init else []
        saved.append(f"{number}.fidx")
        ran = call("index", media.name, "-o", saved[-1], *options)
        assert ran.code == 0, ran.err
    ran = call("verify", media.name, *saved)
    assert (ran.code, ran.lines) == (0, [f"{name}: OK" for name in saved]), ran.err
    if init:
        made_with = [name for name, way in zip(saved, ways, strict=True) if way[2]]
        assert call("verify", media.name, *made_with, "--init", FIXTURES / init).code == 0


@pytest.mark.parametrize("init", sorted(set(INITS.values())))
def test_an_index_serves_as_initialization_segment(init):
    """One was made with it: the next segment needs no other."""
    segments = [FIXTURES / name for name, own in INITS.items() if own == init]
    first = fragdex.index(segments[0], init=FIXTURES / init)
    for segment in segments:
        one, other = (fragdex.index(segment, init=given) for given in (first, FIXTURES / init))
        assert [t.info for t in one.tracks] == [t.info for t in other.tracks]
        assert [repr(t) for t in one.tracks] == [repr(t) for t in other.tracks]


# The sidx itself is wrong of media data before the moof, of a gap between fragments, and of a
# decode time that falls back.
UNFIT = {"mdat-first.mp4", "sidx-gap.mp4", "tfdt-wrapped.mp4"}


def embeddable():
    """Fixtures whose copies get a sidx, with each track that it can speak of."""
    for path in real_files():
        if path.name in UNFIT:
            continue
        try:
            index = fragdex.index(path, exact=True)
        except FragdexError:
            continue
        if len(index.periods) == 1 and index.how.method == "boxes":
            yield from ((path, t.id) for t in index.tracks if t.kind in ("video", "audio"))


@pytest.mark.parametrize(
    ("path", "track"), list(embeddable()), ids=lambda value: getattr(value, "name", value)
)
def test_an_embedded_index_is_right(call, path, track, tmp_path):
    """Also where the edit list hides priming, and where one track has to speak for all."""
    ran = call("index", path, "--embed", "--track", track, "-o", "copy.mp4")
    if ran.code == 2:
        pytest.skip(ran.err)
    ran = call("verify", "copy.mp4")
    if "to be verified" in ran.err:
        pytest.skip("one fragment: its sidx is not used")
    assert ran.code == 0, ran.out + ran.err
    assert call("index", "copy.mp4", "-o", "copy.fidx").code == 0
    assert call("verify", "copy.mp4", "copy.fidx").out == "copy.fidx: OK\n"


@pytest.mark.parametrize("text", ['{"status": 422}', "{}", '{"detail": [{"msg": "not found"}]}'])
@pytest.mark.parametrize("command", ["info", "seek", "index"])
def test_other_json_is_no_index(call, tmp_path, text, command):
    """An error page that a download saved under the film's name was an MP4 with 0 tracks."""
    (tmp_path / "film.mp4").write_text(text)
    ran = call(command, "film.mp4", *(["0"] if command == "seek" else []))
    assert ran.code == 2
    assert "film.mp4 is JSON, and no index of media" in ran.err
