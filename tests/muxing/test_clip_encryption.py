"""Clips of encrypted progressive files: samples, vectors and ranges are those of the source."""

import io

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, find_all, make_box, parse
from fragdex.errors import BuildError
from fragdex.muxing.clip import clip
from fragdex.muxing.protection import Protected
from fragdex.testing import edit

KEY = "00112233445566778899aabbccddeeff"  # the fixtures' own, of no worth
STBL = "moov/trak/mdia/minf/stbl"


@pytest.fixture
def encrypted(root) -> bytes:
    return (root / "fixtures" / "encrypted.mp4").read_bytes()


def cut(data, start=0.0, stop=float("inf"), **options):
    index = fragdex.index(data)
    piece = clip(index, lambda part: data[part.start : part.stop], start, stop, **options)
    return b"".join(
        piece if isinstance(piece, bytes) else data[piece.start : piece.stop]
        for piece in piece.pieces
    )


def told(info, vector):
    """Auxiliary information as (vector, ranges): what 23001-7, 7.1, says the bytes mean."""
    count = int.from_bytes(info[vector : vector + 2], "big")
    ranges = [info[at : at + 6] for at in range(vector + 2, vector + 2 + 6 * count, 6)]
    return info[:vector], ranges


def of_source(data, moov, number):
    """Of each sample of a trak, read by saiz and saio, sample after sample."""
    stbl = moov.find_all("trak")[number].find("mdia/minf/stbl")
    saiz, offsets = stbl.find("saiz"), stbl.find("saio")["entries"]["offset"].tolist()
    size = saiz["default_sample_info_size"]
    sizes = [size] * saiz["sample_count"] if size else saiz["entries"]["sample_info_size"].tolist()
    chunks = chunk_of_each(stbl)
    lines, at = [], offsets[0]
    for n, size in enumerate(sizes):
        if n and len(offsets) > 1 and chunks[n] != chunks[n - 1]:
            at = offsets[chunks[n]]
        lines.append(told(data[at : at + size], 8))
        at += size
    return lines


def chunk_of_each(stbl):
    """The chunk of each sample, counted one by one."""
    rows = stbl.find("stsc")["entries"]
    count = int((stbl.find("stco") or stbl.find("co64"))["entry_count"])
    chunks = []
    for chunk in range(count):
        (each,) = [r["samples_per_chunk"] for r in rows if r["first_chunk"] <= chunk + 1][-1:]
        chunks += [chunk] * int(each)
    return chunks


def of_clip(data, track_id):
    """Of each sample of a track, by senc; saiz and saio must say the same."""
    lines = []
    for moof in find_all(parse(data), "moof"):
        for traf in moof.find_all("traf"):
            if traf.find("tfhd")["track_ID"] != track_id:
                continue
            senc, saiz, saio = traf.find("senc"), traf.find("saiz"), traf.find("saio")
            count = traf.find("trun")["sample_count"]
            assert count == senc["sample_count"] == saiz["sample_count"]
            size = saiz["default_sample_info_size"]
            sizes = [size] * count if size else saiz["entries"]["sample_info_size"].tolist()
            at = moof.offset + int(saio["entries"]["offset"][0])
            assert data[at : at + sum(sizes)] == bytes(senc["samples"])
            for size in sizes:
                lines.append(told(data[at : at + size], 8))
                assert (senc["flags"] & 2 == 2) == (size > 8)
                at += size
    return lines


def within(data, change):
    """A file or a box, with `change` done to the children of each stbl."""
    return edit(data, "**/stbl", lambda stbl: stbl.replace(children=change(stbl.children)))


@pytest.mark.parametrize("span", [(0.0, float("inf")), (0.5, 1.2)], ids=["all", "middle"])
def test_vectors_and_ranges_are_those_of_the_source(encrypted, span):
    out = cut(encrypted, *span)
    (moov,) = find_all(parse(encrypted), "moov")
    source, copy = fragdex.index(encrypted), fragdex.index(out, exact=True, strict=True)
    for number, track in enumerate(copy.tracks):
        theirs = source.track(track.id)
        first = next(
            n
            for n in range(theirs.sample_count)
            if sample(out, track, 0) == sample(encrypted, theirs, n)
        )
        count = track.sample_count
        assert [sample(out, track, n) for n in range(count)] == [
            sample(encrypted, theirs, first + n) for n in range(count)
        ]
        assert of_clip(out, track.id) == of_source(encrypted, moov, number)[first : first + count]
        assert track.info.encryption == theirs.info.encryption


def sample(data, track, n):
    table = track.samples
    return data[int(table.offset[n]) : int(table.offset[n] + table.size[n])]


def test_ffmpeg_decrypts_the_clip_to_the_same_frames(encrypted):
    av = pytest.importorskip("av")

    def frames(data):
        with av.open(io.BytesIO(data), options={"decryption_key": KEY}) as container:
            return [bytes(frame.to_ndarray()) for frame in container.decode(video=0)]

    assert frames(cut(encrypted)) == frames(encrypted)


def test_an_offset_for_each_chunk(encrypted):
    """The information of each chunk lies somewhere else, last chunk first."""
    (moov,) = find_all(parse(encrypted), "moov")
    place, more = moov.offset + 8, b""

    def scattered(children):
        nonlocal more
        stbl = make_box("stbl", children=children)
        saiz, saio = stbl.find("saiz"), stbl.find("saio")
        chunks = np.array(chunk_of_each(stbl))
        default = saiz["default_sample_info_size"]
        sizes = np.full(len(chunks), default) if default else saiz["entries"]["sample_info_size"]
        ends = np.cumsum(sizes, dtype=np.int64) + int(saio["entries"]["offset"][0])
        offsets = np.zeros(int(chunks[-1]) + 1, [("offset", ">u4")])
        for chunk in reversed(range(len(offsets))):
            held = np.flatnonzero(chunks == chunk)
            low, high = int(ends[held[0]] - sizes[held[0]]), int(ends[held[-1]])
            more += bytes(chunk % 5)
            offsets["offset"][chunk] = place + len(more)
            more += encrypted[low:high]
        spread = saio.replace(entries=offsets, entry_count=len(offsets))
        return [spread if box.type == "saio" else box for box in children]

    moov = build(within(moov, scattered))
    size = (len(more) + 8).to_bytes(4, "big")
    data = encrypted[: place - 8] + size + b"mdat" + more + moov
    for span in ((0.0, float("inf")), (0.9, 1.5)):
        ours, theirs = cut(data, *span), cut(encrypted, *span)
        assert [of_clip(ours, n) for n in (1, 2)] == [of_clip(theirs, n) for n in (1, 2)]


def test_samples_protected_as_a_whole_beside_others():
    ranges = b"\1" * 8 + b"\0\1" + b"\0\5\0\0\0\7"
    data = ranges + b"\2" * 8

    def boxes(sizes, vectors):
        sizes, vectors = np.array(sizes), np.array(vectors)
        keys = Protected(0, np.cumsum(sizes) - sizes, sizes, vectors)
        blocks = keys.blocks(0, len(sizes), 0)
        made = b"".join(
            block
            if isinstance(block, bytes)
            else b"".join(data[p.range.start : p.range.stop] for p in block.parts())
            for block in blocks
        )
        assert len(made) == keys.boxes(np.array([0]), np.array([len(sizes)]))[0]
        return parse(made)

    saiz, _, senc = boxes([16, 8], [8, 8])
    assert saiz["entries"]["sample_info_size"].tolist() == [16, 10]
    assert bytes(senc["samples"]) == ranges + b"\2" * 8 + b"\0\0"
    assert boxes([0, 0], [8, 8]) == ()
    with pytest.raises(BuildError, match="shorter"):
        boxes([4], [8])


def refused(encrypted, change, match):
    with pytest.raises(BuildError, match=match):
        cut(within(encrypted, change))


def test_what_can_not_be_moved_is_told(encrypted):
    def without(*codes):
        return lambda children: [box for box in children if box.type not in codes]

    def fewer(code, **fields):
        return lambda children: [
            box.replace(**fields) if box.type == code else box for box in children
        ]

    seig = make_box("sbgp", grouping_type="seig", entries=[(1, 1)])
    refused(encrypted, lambda children: [*children, seig], "keys of track 1 change")
    refused(encrypted, without("saiz"), "vectors cannot be found")
    refused(encrypted, without("saio"), "vectors cannot be found")
    refused(encrypted, fewer("saio", entry_count=0, entries=[]), "missing")
    refused(
        encrypted,
        fewer("saiz", default_sample_info_size=8, sample_count=3),
        "missing",
    )


def test_other_auxiliary_information_is_no_encryption(encrypted):
    def another(children):
        return [
            box.replace(flags=1, aux_info_type="abcd", aux_info_type_parameter=0)
            if box.type in ("saiz", "saio")
            else box
            for box in children
        ]

    refused(encrypted, another, "vectors cannot be found")


def test_a_constant_vector_needs_nothing(encrypted):
    """cbcs with whole samples protected: the tenc says it all (23001-7, 10.4)."""
    constant = make_box(
        "tenc", version=1, default_isProtected=1, default_Per_Sample_IV_Size=0
    ).replace(default_KID=bytes(16), default_constant_IV=bytes(16))

    def retold(box):
        if box.type == "tenc":
            return constant
        return box.replace(children=[retold(b) for b in box.children]) if box.children else box

    def change(children):
        return [retold(box) for box in children if box.type not in ("saiz", "saio", "senc")]

    out = parse(cut(within(encrypted, change)))
    assert find_all(out, "moof/traf/trun")
    assert not find_all(out, "moof/traf/senc")
