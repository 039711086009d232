"""`check_bmff`: each rule names what breaks it; and no file that is written breaks one."""

from __future__ import annotations

from pathlib import Path

import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.muxing.clip import clip
from fragdex.muxing.copies import captioned, embedded
from fragdex.muxing.kinds import described
from fragdex.sources import open_source
from fragdex.testing import check_bmff, edit, movie

FIXTURES = Path(__file__).parents[3] / "fixtures"
SOURCE = (FIXTURES / "faststart.mp4").read_bytes()
WHOLE = fragdex.view(fragdex.index(SOURCE), "tracks", source=SOURCE).read(source=SOURCE)
MORE = movie(3, tracks=2)
FILMS = sorted(
    str(path.relative_to(FIXTURES))
    for path in (*FIXTURES.iterdir(), *(FIXTURES / "made").iterdir())
    if path.suffix in (".mp4", ".mov", ".m4a", ".3gp", ".3g2", ".f4v", ".ismv")
)


def changed(data, code, change):
    """The file with the boxes of a type changed; only fields of one size."""
    return edit(data, f"**/{code}", change)


def fields(**values):
    return lambda box: box.replace(**values)


def rows(**values):
    def change(box):
        entries = box["entries"].copy()
        for name, value in values.items():
            entries[name][0] = value
        return box.replace(entries=entries)

    return change


BROKEN = {
    "box-size": WHOLE[:-1],
    "box-count": WHOLE + build(make_box("moov")),
    "ftyp": build(make_box("mdat")) + WHOLE,
    "track-id": changed(WHOLE, "tkhd", fields(track_ID=2)),
    "next-track-id": changed(WHOLE, "mvhd", fields(next_track_ID=1)),
    "timescale": changed(WHOLE, "mdhd", fields(timescale=0)),
    "movie-duration": changed(WHOLE, "mvhd", fields(duration=7)),
    "track-duration": changed(WHOLE, "tkhd", fields(duration=7)),
    "media-duration": changed(WHOLE, "mdhd", fields(duration=1 << 30)),
    "major-brand": changed(WHOLE, "ftyp", fields(major_brand="isoz")),
    "fragment-brand": changed(
        MORE, "ftyp", fields(major_brand="isom", compatible_brands=("isom",))
    ),
    "sample-count": changed(WHOLE, "stts", rows(sample_count=3)),
    "stsc": changed(WHOLE, "stsc", rows(first_chunk=2)),
    "description": changed(WHOLE, "stsc", rows(sample_description_index=9)),
    "stss": changed(WHOLE, "stss", rows(sample_number=0)),
    "data-reference": changed(WHOLE, "url ", fields(flags=0)),
    "trex": changed(MORE, "trex", fields(track_ID=9)),
    "sequence-number": changed(MORE, "mfhd", fields(sequence_number=9)),
    "decode-time": changed(MORE, "tfdt", fields(baseMediaDecodeTime=1 << 40)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_names_what_breaks_it(rule):
    assert rule in {one.rule for one in check_bmff(BROKEN[rule])}


def test_samples_lie_in_an_mdat():
    for data, code, name in ((WHOLE, "stco", "entries"), (MORE, "trun", "data_offset")):
        if name == "entries":
            broken = changed(data, code, rows(chunk_offset=8))
        else:
            broken = changed(data, code, fields(data_offset=0))
        assert "sample-place" in {one.rule for one in check_bmff(broken)}


def test_what_is_right_is_right():
    assert check_bmff(WHOLE) == check_bmff(MORE) == []
    start = MORE.index(b"moof") - 4
    assert check_bmff(MORE[start:], MORE[:start]) == []
    assert [one.rule for one in check_bmff(MORE[start:])] == ["moov"]
    assert [one.rule for one in check_bmff(b"\0\0\0\1")] == ["boxes"]


def written(index, data):
    """All kinds of files that are made of one: what they are, their bytes, their moov."""
    for kind, options in (
        ("faststart", {}),
        ("fragmented", {}),
        ("clip", {"start": 0.3, "stop": 1.2}),
        ("clip", {"start": 0.3, "stop": 1.2, "exact": False}),
        ("tracks", {}),
        ("tracks", {"tracks": [index.tracks[-1].id]}),
        ("timeline", {}),
    ):
        yield (
            f"{kind} {sorted(options)}",
            lambda kind=kind, options=options: [
                (described(index, kind, source=data, **options).read(source=data), b"")
            ],
        )
    yield "kept times", lambda: [(in_fragments(index, data), b"")]
    yield "package", lambda: packaged(index, data, single_file=False)
    yield "single files", lambda: packaged(index, data, single_file=True)
    with open_source(data) as source:
        cues = [(100, 300, "one"), (700, 900, "two")]
        yield "captioned", lambda: [(captioned(index, source, cues, "en").read(source=data), b"")]
        yield "embedded", lambda: [(embedded(index, source).read(source=data), b"")]


def in_fragments(index, data):
    cut = clip(index, lambda part: data[part.start : part.stop], 0.3, 1.2, keep_times=True)
    return b"".join(p if isinstance(p, bytes) else data[p.start : p.stop] for p in cut.pieces)


def packaged(index, data, *, single_file):
    package = fragdex.package(index, source=data, single_file=single_file)
    parts = {
        name: package[name].read(source=data) for name in package if name.endswith((".mp4", ".m4s"))
    }
    for name, part in parts.items():
        init = parts[f"{Path(name).parent}/init.mp4"] if name.endswith(".m4s") else b""
        yield part, init


@pytest.mark.parametrize("name", FILMS)
def test_no_file_that_is_written_breaks_a_rule(name):
    data = (FIXTURES / name).read_bytes()
    try:
        index = fragdex.index(data, exact=True)
    except fragdex.FragdexError as error:
        pytest.skip(f"no index: {error}")
    if not index.tracks:
        pytest.skip("no tracks")
    # A copy keeps what the source has; what it does not know, it does not mend.
    kept = {one.rule for one in check_bmff(data)} - {"next-track-id"}
    for kind, make in written(index, data):
        own = kept if kind.startswith(("faststart", "captioned", "embedded")) else set()
        try:
            pieces = list(make())
        except fragdex.FragdexError:
            continue  # it says why it cannot be made
        for piece, init in pieces:
            if kind.startswith("faststart") and piece == data:
                continue
            broken = [str(one) for one in check_bmff(piece, init) if one.rule not in own]
            assert not broken, kind
