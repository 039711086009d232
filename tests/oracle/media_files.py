"""The media files of fixtures/ and what they need to be read by others than fragdex."""

from __future__ import annotations

from pathlib import Path

import fragdex

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NO_MEDIA = {".py", ".md", ".json", ".txt"}

# Segments without a moov, and whose initialization segment stands in for it. Smooth Streaming's
# have none at all; a file of the same muxer has the same timescale and needs no trex either.
INIT = {
    "dash-segment-1.m4s": "dash-init.mp4",
    "dash-segment-2.m4s": "dash-init.mp4",
    "hls-segment-0.m4s": "hls-init.mp4",
    "hls-segment-1.m4s": "hls-init.mp4",
    "lldash-segment-1.m4s": "lldash-init.mp4",
    "no-moov.mp4": "frag-default-base.mp4",
    "smooth-fragment.m4s": "piff.ismv",
    "smooth-fragment-info.m4s": "piff.ismv",
    "made/segment.m4s": "made/two-trafs.mp4",
}


def fixture_files() -> dict[str, Path]:
    """Name relative to fixtures/ → path, in order; those made by fragdex.testing lie in made/."""
    paths = sorted([*FIXTURES.glob("*.*"), *FIXTURES.glob("made/*.*")])
    return {
        path.relative_to(FIXTURES).as_posix(): path
        for path in paths
        if path.is_file() and path.suffix not in NO_MEDIA
    }


def init_of(name: str) -> bytes:
    """What has to stand before a segment without a moov; nothing for every other file."""
    if name not in INIT:
        return b""
    data = (FIXTURES / INIT[name]).read_bytes()
    moofs = [box.offset for box in fragdex.boxes.parse(data) if box.type == "moof"]
    return data[: moofs[0]] if moofs else data


def an_init_for(like: Path, ids: list[int]) -> bytes:
    """An initialization segment with these tracks, all as the one of `like`.

    The segments say all defaults themselves, so that any codec and timescale will do.
    """
    ftyp, moov = fragdex.boxes.parse(like.read_bytes())
    [trak], [trex] = moov.find_all("trak"), moov.find_all("mvex/trex")
    header = trak.find("tkhd")
    assert header is not None
    tracks = [
        trak.replace(
            children=[header.replace(track_ID=one) if box is header else box for box in trak]
        )
        for one in ids
    ]
    mvex = moov.find("mvex")
    assert mvex is not None
    extends = mvex.replace(children=[trex.replace(track_ID=one) for one in ids])
    others = [box for box in moov if box.type not in ("trak", "mvex")]
    whole = moov.replace(children=[*others, *tracks, extends])
    return bytes(fragdex.boxes.build([ftyp, whole]))
