"""A copy with a segment index inside: the same packets, found faster."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, build, find_all, make_box, parse, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FragdexError, InexactIndex
from fragdex.fragments.table import FragmentTable
from fragdex.muxing.clip_fragments import moved_moof, rebased
from fragdex.muxing.embed import Shifts, embed, mended_box, mended_mfra, needs_rebasing
from fragdex.seeking.model import FileInfo, Index, Track
from fragdex.testing import make_file, movie
from strategies.files import fragmented_parts

FIXTURES = Path(__file__).parents[2] / "fixtures"


def copy_of(data: bytes, index: Index | None = None, **options: Any) -> bytes:
    index = index or fragdex.index(data, exact=True)
    pieces = embed(index, lambda part: data[part.start : part.stop], **options)
    return b"".join(
        piece if isinstance(piece, bytes) else data[piece.start : piece.stop] for piece in pieces
    )


def packets(data: bytes) -> dict[int, list[tuple[Any, ...]]]:
    """Size, times, key flag and bytes of the packets of each stream, as FFmpeg tells them."""
    av = pytest.importorskip("av")
    by_stream: dict[int, list[tuple[Any, ...]]] = {}
    with av.open(io.BytesIO(data)) as container:
        for p in container.demux():
            if p.size:
                row = (p.size, p.dts, p.pts, p.is_keyframe, bytes(p))
                by_stream.setdefault(p.stream.index, []).append(row)
    return by_stream


def media(data: bytes, index: Index) -> list[list[tuple[Any, ...]]]:
    """Times, sync flags and bytes of the samples of each track, as our own index tells them."""
    by_track = []
    for track in index.tracks:
        samples = track.samples
        columns = (samples.offset, samples.size, samples.dts, samples.cts, samples.sync)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        by_track.append([(data[at : at + n], *rest) for at, n, *rest in rows])
    return by_track


OTHERWISE = {
    "frag-global-sidx-stale-base.mp4": "its stale base offsets are repaired, as ours reads them",
    "piff.ismv": "without tfdt FFmpeg counts from 0, and from the sidx where there is one",
    "piff-encrypted.ismv": "as piff.ismv",
    "piff-lookahead.ismv": "as piff.ismv",
}
"""Files whose packets FFmpeg tells otherwise in the copy, and why."""

WHOLE = sorted(FIXTURES.glob("frag-*.m[4op]*")) + sorted(FIXTURES.glob("piff*.ismv"))
WHOLE += [FIXTURES / f"{name}.mp4" for name in ("hybrid-crashed", "isml", "joined-segments")]
WHOLE += [FIXTURES / f"{name}.mp4" for name in ("mdat-to-end", "cut-in-mdat", "cut-in-mfra")]
WHOLE += [FIXTURES / f"{name}.mp4" for name in ("mfra-stale", "hls-single-file")]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.name)
def test_packets_before_and_after_are_equal(path: Path) -> None:
    data = path.read_bytes()
    index = fragdex.index(data, exact=True)
    out = copy_of(data, index)
    after = fragdex.index(out, exact=True)
    assert media(out, after) == media(data, index)
    if path.name not in OTHERWISE:
        assert packets(out) == packets(data)


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.name)
def test_the_copy_is_indexed_by_its_sidx(path: Path) -> None:
    data = path.read_bytes()
    exact = fragdex.index(data, exact=True)
    out = copy_of(data, exact)
    quick = fragdex.index(out)
    if quick.how.method != "sidx":
        # One fragment alone, or samples in front of it, are read as quickly.
        table = exact.tracks[0].fragments
        assert len(table) < 3 or (table.flags & 1).any()
        return
    after = fragdex.index(out, exact=True)
    for track in quick.tracks:
        real = after.track(track.id).fragments
        real = real.rows((real.flags & 1) == 0)
        filled = real.rows(real.sample_count != 0)
        assert np.isin(track.fragments.cts_min, filled.cts_min).mean() > 0.5
        assert track.fragments.offset[0] <= filled.moof_offset[0]


@given(fragmented_parts())
def test_any_fragmented_file_keeps_its_samples(parts: list) -> None:
    data = make_file(*parts).data
    try:
        index = fragdex.index(data, exact=True)
        out = copy_of(data, index, period=0)
    except FragdexError:
        return
    after = fragdex.index(out, exact=True)
    mine, theirs = media(data, index), media(out, after)
    outside = any((t.fragments.flags & 8).any() for t in index.tracks)
    assert mine == theirs or outside


EVERY = sorted(
    path
    for path in [*FIXTURES.glob("*.*"), *(FIXTURES / "made").glob("*.*")]
    if path.suffix in (".mp4", ".m4a", ".m4s", ".mov", ".ismv", ".f4v", ".3gp", ".3g2")
)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_a_copy_of_any_fixture_has_its_samples_and_an_index_that_holds(path: Path) -> None:
    data = path.read_bytes()
    try:
        index = fragdex.index(data, exact=True)
        out = copy_of(data, index, period=0)
    except FragdexError:
        if path in WHOLE:
            raise
        return
    after = fragdex.index(out, exact=True)
    lost = {f.code for f in index.findings} & {"data-outside", "truncated"}
    assert media(out, after) == media(data, index) or lost
    all_findings = (*after.findings, *fragdex.index(out).findings)
    codes = {finding.code for finding in all_findings if "sidx" in finding.code}
    assert not codes - ({"sidx-part"} if len(index.periods) > 1 else set())


def test_media_data_are_never_read() -> None:
    data = (FIXTURES / "frag-base-data-offset.mp4").read_bytes()
    index = fragdex.index(data, exact=True)
    mdats = [ByteRange(b.offset + 16, b.stop) for b in parse(data) if b.type == "mdat"]

    def read(part: ByteRange) -> bytes:
        assert not any(part.overlaps(mdat) for mdat in mdats)
        return data[part.start : part.stop]

    pieces = embed(index, read)
    copied = [piece for piece in pieces if isinstance(piece, ByteRange)]
    assert sum(piece.size for piece in copied) > sum(mdat.size for mdat in mdats)


def test_an_old_index_gives_way() -> None:
    once = copy_of(movie(4, tracks=2))
    assert copy_of(once) == once
    front = movie(4, sidx=True)
    assert [b.type for b in parse(copy_of(front))].count("sidx") == 1


def test_one_index_for_one_track_or_one_for_each() -> None:
    data = movie(4, tracks=2)
    assert [b["reference_ID"] for b in parse(copy_of(data)) if b.type == "sidx"] == [1, 2]
    only = copy_of(data, track=2)
    assert [b["reference_ID"] for b in parse(only) if b.type == "sidx"] == [2]
    joined = copy_of(movie(8, samples=1, fps=2), segment_duration=2)
    (box,) = [b for b in parse(joined) if b.type == "sidx"]
    assert len(box["references"]) == 2


def test_the_mfra_leads_to_the_moofs_that_moved() -> None:
    out = copy_of(movie(4, mfra=True))
    boxes = parse(out)
    moofs = [b.offset for b in boxes if b.type == "moof"]
    tfra = next(b for b in boxes if b.type == "mfra").find("tfra")
    assert tfra is not None
    assert tfra["entries"]["moof_offset"].tolist() == moofs


def test_media_data_in_front_of_their_moof_are_refused_and_not_lied_about() -> None:
    data = (FIXTURES / "made" / "mdat-first.mp4").read_bytes()
    with pytest.raises(BuildError, match="before its moof") as refused:
        copy_of(data)
    assert "extract" in str(refused.value)


BASED = [path for path in WHOLE if "base" in path.name or "moof-offset" in path.name]
BASED += [FIXTURES / "frag-interleaved-truns-offset.mp4", FIXTURES / "made" / "base-at-data.mp4"]
BASED += [FIXTURES / "made" / "base-stale.mp4"]


@pytest.mark.parametrize("path", BASED, ids=lambda path: path.name)
def test_declared_bases_become_default_base_is_moof(path: Path) -> None:
    data = path.read_bytes()
    index = fragdex.index(data, exact=True)
    out = copy_of(data, index)
    headers = find_all(parse(out), "moof/traf/tfhd")
    assert headers
    assert not any(tfhd["flags"] & 1 for tfhd in headers)
    after = fragdex.index(out, exact=True, strict=True)
    assert media(out, after) == media(data, index)
    assert verify_codes(out) == []


def verify_codes(data: bytes) -> list[str]:
    """What is odd about the indexes inside of a copy, once every fragment has been looked at."""
    findings = fragdex.index(data, exact=True).findings + fragdex.index(data).findings
    return [f.code for f in findings if "sidx" in f.code or "base" in f.code or "outside" in f.code]


def test_an_index_inside_that_speaks_of_old_sizes_becomes_free_space() -> None:
    boxes = list(parse((FIXTURES / "frag-base-data-offset.mp4").read_bytes()))
    at = [n for n, box in enumerate(boxes) if box.type == "moof"][1]
    inner = make_box("sidx", reference_ID=1, timescale=12800, references=[(0, 500, 1, 0, 0, 0)])
    moved = build([*boxes[:at], inner, *boxes[at:]])
    grown = len(build(inner))
    out = copy_of(_with_bases(moved, boxes[at].offset, grown))
    kinds = [box.type for box in parse(out)]
    assert kinds.count("sidx") == 2  # those of the whole file
    assert kinds.count("free") == [box.type for box in boxes].count("free") + 1


def _with_bases(data: bytes, place: int, grown: int) -> bytes:
    """The file with declared bases behind a place moved on."""

    def further(box: Box) -> Box:
        if box.type == "tfhd" and "base_data_offset" in box and box["base_data_offset"] >= place:
            return box.replace(base_data_offset=box["base_data_offset"] + grown)
        return box.replace(children=[further(c) for c in box.children]) if box.children else box

    return build([further(box) if box.type == "moof" else box for box in parse(data)])


def test_what_is_not_known_is_not_embedded() -> None:
    data = movie(3, sidx=True)
    index = fragdex.index(data)
    with pytest.raises(InexactIndex, match="positions"):
        copy_of(data, index)
    with pytest.raises(BuildError, match="movie fragments"):
        copy_of(movie(fragmented=False))


# --- what is mended --------------------------------------------------------------------------


def shifted(by: int, place: int = 100) -> Shifts:
    return Shifts([(ByteRange(place, place), by)])


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 30)), max_size=6),
    st.lists(st.integers(0, 600), max_size=9),
)
def test_shifts_are_what_editing_does(edits: list[tuple[int, int, int]], asked: list[int]) -> None:
    parts, at = [], 0
    for gap, taken, put in edits:
        parts.append((ByteRange.of(at + gap, taken), put))
        at += gap + taken + 1
    shifts = Shifts(parts)
    outside = [p for p in asked if not any(p in part for part, _ in parts)]
    expected = [p + sum(put - part.size for part, put in parts if part.stop <= p) for p in outside]
    assert shifts.of(np.array(outside, np.int64)).tolist() == expected
    assert [shifts.one(p) for p in outside] == expected


def stbl(*children: Box) -> Box:
    inner = make_box("stbl", children=children)
    for code in ("minf", "mdia", "trak", "moov"):
        inner = make_box(code, children=[inner])
    return inner


@pytest.mark.parametrize(
    ("code", "old", "by", "becomes"),
    [
        ("stco", [50, 200], 10, ("stco", [50, 210])),
        ("stco", [50, 2**32 - 5], 10, ("co64", [50, 2**32 + 5])),
        ("co64", [50, 2**33], 10, ("co64", [50, 2**33 + 10])),
    ],
)
def test_chunk_offsets_move_and_grow(
    code: str, old: list[int], by: int, becomes: tuple[str, list[int]]
) -> None:
    moov = build(stbl(make_box(code, entries=[(at,) for at in old])))
    (out,) = parse(mended_box(moov, 0, shifted(by)))
    (table,) = out.find("trak/mdia/minf/stbl").children  # type: ignore[union-attr]
    assert (table.type, table["entries"]["chunk_offset"].tolist()) == becomes
    assert mended_box(moov, 0, shifted(0)) == moov


@pytest.mark.parametrize("code", ["stco", "co64"])
def test_chunks_in_another_file_stay_where_they_are(code: str) -> None:
    def entry(reference: int) -> Box:
        return make_box("avc1", data_reference_index=reference)

    dinf = make_box(
        "dinf",
        children=[
            make_box(
                "dref",
                children=[
                    make_box("url ", flags=1),
                    make_box("url ", flags=0, location="other.mp4"),
                    make_box("url ", flags=0),
                ],
            )
        ],
    )
    tables = make_box(
        "stbl",
        children=[
            make_box("stsd", children=[entry(1), entry(2), entry(3)]),
            make_box("stsc", entries=[(1, 1, 1), (2, 1, 2), (4, 1, 3)]),
            make_box(code, entries=[(at,) for at in (100, 200, 300, 400, 500)]),
        ],
    )
    minf = make_box("minf", children=[dinf, tables])
    moov = make_box(
        "moov", children=[make_box("trak", children=[make_box("mdia", children=[minf])])]
    )
    (out,) = parse(mended_box(build(moov), 0, shifted(10)))
    moved = out.find(f"trak/mdia/minf/stbl/{code}")
    assert moved is not None
    # A reference that names no file is taken for this one, as the index takes it.
    assert moved["entries"]["chunk_offset"].tolist() == [110, 200, 300, 410, 510]


def test_a_moov_that_grows_moves_what_it_speaks_of_once_more() -> None:
    # A file with samples in its moov, the last chunk of which lies just below 4 GiB.
    data = movie(2)
    small = fragdex.index(data, exact=True)
    moov = next(b for b in parse(data) if b.type == "moov")
    tables = stbl(make_box("stco", entries=[(2**32 - 5,)])).children
    front = data[: moov.offset] + build(moov.replace(children=[*moov.children, *tables]))
    grown = len(front) - moov.stop
    rows = small.track(1).fragments.columns()
    moved = {name: rows[name] + grown for name in ("offset", "moof_offset", "data_start")}
    track = small.track(1)
    table = FragmentTable.of(rows | moved)
    period = replace(
        small.periods[0],
        tracks=(Track(track.info, table, track.sync_samples, shift=track.shift),),
    )
    index = Index(FileInfo("", 2**32 + 10), small.how, [period])
    content = front + data[moov.stop :]

    def read(part: ByteRange) -> bytes:
        return content[part.start : part.stop].ljust(part.size, b"\0")

    pieces = embed(index, read)
    out = b"".join(piece for piece in pieces[:4] if isinstance(piece, bytes))
    boxes = {b.type: b for b in parse(out)}
    offsets = boxes["moov"].find("trak[2]/mdia/minf/stbl/co64")
    assert offsets is not None
    # The table grew by 4 bytes, and the new index stands in front of the chunk too.
    expected = 2**32 - 5 + 4 + boxes["sidx"].size
    assert offsets["entries"]["chunk_offset"].tolist() == [expected]


@pytest.mark.parametrize(("old", "version"), [(200, 0), (2**32 - 5, 1)])
def test_auxiliary_offsets_of_the_moov_move(old: int, version: int) -> None:
    moov = build(stbl(make_box("saio", entries=[(old,)])))
    (out,) = parse(mended_box(moov, 0, shifted(10)))
    saio = out.find("trak/mdia/minf/stbl/saio")
    assert saio is not None
    assert (saio["version"], saio["entries"]["offset"].tolist()) == (version, [old + 10])


def iloc(version: int, sizes: str, items: str) -> bytes:
    body = bytes([version]) + bytes(3) + bytes.fromhex(sizes + items)
    data = build(make_box("meta", children=[make_box("iloc", data=body)], version=0, flags=0))
    return mended_box(data, 0, shifted(10))[20:].hex(" ", 2)  # type: ignore[return-value]


def test_items_in_the_file_move() -> None:
    # Version 0, 4-byte offsets and lengths, no base: one item with two extents.
    before = "0001 0001 0000 0002 00000032 00000005 000000c8 00000005"
    after = "0001 0001 0000 0002 00000032 00000005 000000d2 00000005"
    assert iloc(0, "4400", before.replace(" ", "")).endswith(_grouped(after))
    # With a base the base moves, where all extents go the same way.
    before = "0001 0001 0000 000000c8 0001 00000007 00000005"
    after = "0001 0001 0000 000000d2 0001 00000007 00000005"
    assert iloc(0, "4440", before.replace(" ", "")).endswith(_grouped(after))
    # Version 1: construction_method 1 counts from the idat, and data_reference_index 1 is another
    # file.
    for kept in (
        "0001 0001 0001 0000 0001 000000c8 00000005",
        "0001 0001 0000 0001 0001 000000c8 00000005",
    ):
        assert iloc(1, "4400", kept.replace(" ", "")).endswith(_grouped(kept))
    # Cut off: left as it is.
    assert iloc(0, "4400", "000100010000").endswith("0001 0001 0000")


def _grouped(text: str) -> str:
    return bytes.fromhex(text.replace(" ", "")).hex(" ", 2)


def test_an_item_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BuildError, match="item location"):
        iloc(0, "2200", "0001 0001 0000 0001 fffe 0005".replace(" ", ""))


@given(st.binary(max_size=120))
def test_any_item_locations_are_taken(body: bytes) -> None:
    data = build(make_box("meta", children=[make_box("iloc", data=body)], version=0, flags=0))
    try:
        out = mended_box(data, 0, shifted(10))
    except BuildError:
        return
    assert len(out) == len(data)


def test_random_access_entries_grow_to_64_bits() -> None:
    tfra = make_box("tfra", track_ID=1, entries=[(0, 2**32 - 5, 1, 1, 1)])
    mfra = build(make_box("mfra", children=[tfra, make_box("mfro")]))
    out = mended_mfra(mfra, 0, shifted(10))
    (box,) = parse(out)
    moved = box.find("tfra")
    assert moved is not None
    assert (moved["version"], moved["entries"]["moof_offset"].tolist()) == (1, [2**32 + 5])
    assert box.find("mfro")["size"] == len(out)  # type: ignore[index]


def moof(*trafs: list[Box]) -> bytes:
    return build(make_box("moof", children=[make_box("traf", children=boxes) for boxes in trafs]))


def moved(data: bytes, at: int, stop: int, shifts: Shifts, stale: set[int] = frozenset()) -> Box:
    (old,) = (parse_box(data, offset=at),)
    fragment = ByteRange(at, stop)
    return moved_moof(old, rebased(old, stale), shifts.one(at), shifts.one, stale, fragment)


def test_data_offsets_follow_the_media_data() -> None:
    def based(track: int, base: int) -> list[Box]:
        tfhd = make_box("tfhd", flags=1, track_ID=track, base_data_offset=base)
        run = make_box("trun", flags=0x201, data_offset=5, samples=[(4,)])
        return [tfhd, run, make_box("trun", flags=0x200, samples=[(4,)])]

    data = moof(based(1, 700), based(2, 40), based(3, 9000))
    out = moved(data, 200, 900, shifted(10), {3})
    offsets = [run.get("data_offset") for run in out.find_all("traf/trun")]
    # The second one's data lie before the place of the insertion, the third one's base is stale.
    assert offsets == [715 - 210, None, 45 - 210, None, 15 + 200 - 210 + 0, None]


def test_a_run_at_its_declared_base_gets_a_data_offset() -> None:
    tfhd = make_box("tfhd", flags=1, track_ID=1, base_data_offset=700)
    data = moof([tfhd, make_box("trun", flags=0x200, samples=[(4,)])])
    out = moved(data, 200, 900, shifted(10))
    assert [run["data_offset"] for run in out.find_all("traf/trun")] == [500]
    far = moof([tfhd.replace(base_data_offset=1 << 40), make_box("trun", flags=0x200)])
    with pytest.raises(BuildError, match="too far"):
        moved(far, 200, 900, shifted(10))


@pytest.mark.parametrize(
    ("entries", "version", "after"),
    [
        ([(60,)], 0, [60]),  # counted from the moof: right, and it stays
        ([(260,), (9000,)], 0, [260, 9000]),
        ([(800,)], 0, [810]),  # counted from the start of the file
        ([(800,)], 1, [810]),
    ],
)
def test_auxiliary_offsets_of_fragments(
    entries: list[tuple[int]], version: int, after: list[int]
) -> None:
    tfhd = make_box("tfhd", flags=0x20000, track_ID=1)
    data = moof([tfhd, make_box("saio", version=version, entries=entries)])
    assert needs_rebasing(data, 8)
    saio = moved(data, 500, 900, shifted(10)).find("traf/saio")
    assert saio is not None
    assert saio["entries"]["offset"].tolist() == after


def test_auxiliary_offsets_follow_what_shrinks_in_front_of_them() -> None:
    tfhd = make_box("tfhd", flags=1, track_ID=1, base_data_offset=200)
    data = moof([tfhd, make_box("saio", entries=[(60,)]), make_box("senc", sample_count=1)])
    (senc,) = parse_box(data).find_all("traf/senc")
    assert senc.offset == 60
    after = moved(data, 200, 900, shifted(10))
    (saio,) = after.find_all("traf/saio")
    assert saio["entries"]["offset"].tolist() == [52]
    assert parse_box(build(after)).find("traf/senc").offset == 52  # type: ignore[union-attr]


def test_an_auxiliary_offset_that_does_not_fit_is_refused() -> None:
    start = 2**32 - 1000
    tfhd = make_box("tfhd", flags=0x20000, track_ID=1)
    data = moof([tfhd, make_box("saio", entries=[(start + 998,)])])
    with pytest.raises(BuildError, match="auxiliary"):
        moved(data, start, start + 1000, shifted(10))


def test_an_index_of_another_file_is_noticed() -> None:
    data = movie(3)
    index = fragdex.index(data, exact=True)
    with pytest.raises(FragdexError, match="no moof"):
        embed(index, lambda part: bytes(part.size))
