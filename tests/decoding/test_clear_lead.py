"""Films of which a part is encrypted: what is clear is decoded, what is not is refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.boxes import Box, build, find, make_box, parse, parse_box
from fragdex.decoding.open_track import TrackSetup
from fragdex.errors import UndecodableMedia
from fragdex.muxing.movie import protected_entries
from fragdex.testing import edit, movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
CLEAR = (FIXTURES / "frag-cmaf.mp4").read_bytes()
PROGRESSIVE = (FIXTURES / "moov-last.mp4").read_bytes()


def entries_of(stsd: Box, clear: int) -> Box:
    """A clear and an encrypted entry out of one that is clear."""
    plain = build(stsd.children[0])
    frma = make_box("frma", data_format=plain[4:8].decode())
    schm = make_box("schm", scheme_type="cenc", scheme_version=0x10000)
    tenc = make_box(
        "tenc",
        default_isProtected=1,
        default_Per_Sample_IV_Size=8,
        default_KID=bytes(range(16)),
    )
    schi = make_box("schi", children=[tenc])
    sinf = build(make_box("sinf", children=[frma, schm, schi]))
    kind = b"encv" if plain[4:8] == b"avc1" else b"enca"
    closed = struct.pack(">I4s", len(plain) + len(sinf), kind) + plain[8:] + sinf
    both = [plain, closed] if clear == 1 else [closed, plain]
    body = struct.pack(">II", 0, 2) + b"".join(both)
    return parse_box(struct.pack(">I4s", 8 + len(body), b"stsd") + body)


def scrambled(data: bytes, place: slice) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, place.stop - place.start, np.uint8)
    return data[: place.start] + noise.tobytes() + data[place.stop :]


def fragments(
    clear: int, lead: int, source: bytes = CLEAR, code: str = "avc1", *, behind: bool = False
) -> bytes:
    """A film whose first fragments, or those behind them, are clear, and all others noise."""
    parts: list[bytes] = []
    seen = 0
    track = fragdex.index(source, exact=True).tracks[0]
    moofs = track.fragments.moof_offset.tolist()

    def changed(box: Box) -> Box:
        if box.type == "stsd" and box.children[0].type == code:
            return entries_of(box, clear)
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    for box in parse(source):
        if box.type in ("sidx", "mfra"):
            continue
        raw = source[box.offset : box.offset + box.size]
        if box.type == "moov":
            raw = build(changed(box))
        elif box.type == "moof":
            seen = moofs.index(box.offset) + 1
            raw = using(box, clear if (seen <= lead) != behind else 3 - clear)
        elif box.type == "mdat" and (seen > lead) != behind:
            raw = scrambled(raw, slice(8, len(raw)))
        parts.append(raw)
    return b"".join(parts)


def using(moof: Box, number: int) -> bytes:
    """A moof whose first traf names a description."""
    trafs = moof.find_all("traf")
    head = trafs[0].find("tfhd")
    grown = 0 if head["flags"] & 2 else 4

    def changed(box: Box) -> Box:
        if box is head:
            return box.replace(flags=box["flags"] | 2, sample_description_index=number)
        if box.type == "trun":
            return box.replace(data_offset=box["data_offset"] + grown)
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    return build(changed(moof))


def tables(clear: int) -> bytes:
    """The same of a progressive film; its last chunk is noise, and its moov comes last."""
    track = fragdex.index(PROGRESSIVE, exact=True).video
    data = PROGRESSIVE
    table = track.samples
    moov = next(box for box in parse(data) if box.type == "moov")
    last = int(moov.find("trak/mdia/minf/stbl/stco")["entries"]["chunk_offset"][-1])
    for at, size in zip(table.offset.tolist(), table.size.tolist(), strict=True):
        if at >= last:
            data = scrambled(data, slice(at, at + size))
    many = len(moov.find("trak/mdia/minf/stbl/stco")["entries"])

    def changed(box: Box) -> Box:
        if box.type == "stsd":
            return entries_of(box, clear)
        if box.type == "stsc":
            rows = [tuple(row) for row in box["entries"].tolist()]
            each = rows[-1][1]
            rows = [(chunk, count, clear) for chunk, count, _ in rows if chunk < many]
            return box.replace(entries=[*rows, (many, each, 3 - clear)])
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    first = moov.find("trak")
    children = [changed(one) if one is first else one for one in moov.children]
    return data[: moov.offset] + build(moov.replace(children=children))


@pytest.mark.parametrize("clear", [1, 2])
def test_frames_of_the_lead_are_decoded_and_others_refused(clear: int) -> None:
    data = fragments(clear, 1)
    index = fragdex.index(data, exact=True)
    track = index.video
    lead = int(track.fragments.sample_count[0])
    assert not track.is_encrypted(0, lead)
    assert track.is_encrypted(lead - 1, lead + 1)
    assert track.is_encrypted()
    assert track.has_clear_samples
    with fragdex.Frames(data) as frames, fragdex.Frames(CLEAR) as plain:
        assert len(frames) == len(plain)
        assert (frames[:lead].data == plain[:lead].data).all()
        with pytest.raises(UndecodableMedia, match="encrypted"):
            frames[lead]
        assert (frames[lead - 1].data == plain[lead - 1].data).all()
    assert index.window("video", 0, lead).stop == lead
    with pytest.raises(UndecodableMedia, match="encrypted"):
        index.window("video", lead - 1, lead + 1)


@pytest.mark.parametrize("clear", [1, 2])
def test_of_a_progressive_film_too(clear: int) -> None:
    data = tables(clear)
    track = fragdex.index(data).video
    kept = fragdex.open_index(fragdex.index(data).export("fidx")).video
    closed = [n for n in range(track.sample_count) if track.is_encrypted(n, n + 1)]
    assert closed == [n for n in range(track.sample_count) if kept.is_encrypted(n, n + 1)]
    assert 0 < len(closed) < track.sample_count
    assert closed == list(range(closed[0], track.sample_count))
    with fragdex.Frames(data) as frames, fragdex.Frames(PROGRESSIVE) as plain:
        assert (frames[0].data == plain[0].data).all()
        with pytest.raises(UndecodableMedia, match="encrypted"):
            frames[len(frames) - 1]


@pytest.mark.parametrize("clear", [1, 2])
def test_a_film_that_is_all_encrypted_is_refused_before_it_is_read(clear: int) -> None:
    data = fragments(clear, 0)
    assert not fragdex.index(data).video.has_clear_samples
    with pytest.raises(UndecodableMedia, match="encrypted"):
        fragdex.Frames(data)


@pytest.mark.parametrize("clear", [1, 2])
def test_an_encrypted_description_that_nothing_uses_hides_nothing(clear: int) -> None:
    data = fragments(clear, 1 << 20)
    assert not fragdex.index(data).video.is_encrypted()
    with fragdex.Frames(data) as frames, fragdex.Frames(CLEAR) as plain:
        assert (frames[:].data == plain[:].data).all()


SOUND = (FIXTURES / "frag-audio.m4a").read_bytes()


@pytest.mark.parametrize("clear", [1, 2])
@pytest.mark.parametrize("lead", [1, 3])
def test_sound_of_the_lead_is_decoded_and_the_rest_refused(clear: int, lead: int) -> None:
    data = fragments(clear, lead, SOUND, "mp4a")
    index = fragdex.index(data, exact=True)
    (track,) = index.tracks
    table = track.fragments
    end = track.presentation(int(table.cts_min[lead])).seconds
    plain = fragdex.decoding.audio(fragdex.index(SOUND), SOUND, 0, end, rate=48000)
    for stop in (end / 2, end):
        heard = fragdex.decoding.audio(index, data, 0, stop, rate=48000)
        clearly = len(heard) - 2400  # the last access unit fades into what is encrypted
        assert heard.any()
        assert (heard[:clearly] == plain[:clearly]).all()
    last = track.stop.seconds
    for start, stop in ((end - 0.01, end + 0.01), (end, last), (0, last)):
        with pytest.raises(UndecodableMedia, match="encrypted") as refused:
            fragdex.decoding.audio(index, data, start, stop)
        assert refused.value.start == pytest.approx(max(start, end))
    (gap,) = (made := fragdex.decoding.peaks(index, data, samples_per_pixel=512)).gaps
    whole = fragdex.decoding.peaks(fragdex.index(SOUND), SOUND, samples_per_pixel=512)
    assert (gap.start, gap.stop) == pytest.approx((end, last), abs=0.05)
    assert "encrypted" in gap.reason
    same = int(end * made.rate / 512) - 4
    assert same > 4
    assert (made.values[:same] == whole.values[:same]).all()


def test_sound_behind_what_is_encrypted_is_decoded() -> None:
    data = fragments(1, 2, SOUND, "mp4a", behind=True)
    index = fragdex.index(data, exact=True)
    (track,) = index.tracks
    begin = track.presentation(int(track.fragments.cts_min[2])).seconds
    last = track.stop.seconds
    plain = fragdex.decoding.audio(fragdex.index(SOUND), SOUND, begin, last, rate=48000)
    heard = fragdex.decoding.audio(index, data, begin, last, rate=48000)
    assert plain.any()
    assert (heard[4800:] == plain[4800:]).all()  # the first access units have none before them
    with fragdex.decoding.AudioReader(index, data, rate=48000) as reader:
        assert not reader.read(0, begin - 0.1).any()
        (gap,) = reader.gaps(0, last)
    assert (gap.start, gap.stop) == pytest.approx((0, begin), abs=0.05)


@pytest.mark.parametrize("code", ["encv", "enca", "enct", "encs", "encm", "encu", "drms", "avc1"])
@pytest.mark.parametrize("has_information", [True, False])
def test_one_answer_on_what_is_encrypted(code: str, has_information: bool) -> None:
    """The index, the copies and the decoders ask the type of the sample entry."""
    data = movie(2)
    entry = build(find(parse(data), "moov/trak/mdia/minf/stbl/stsd").children[0])
    schi = build(make_box("sinf", children=[make_box("schi")])) if has_information else b""
    entry = struct.pack(">I", len(entry) + len(schi)) + code.encode() + entry[8:] + schi
    stsd = struct.pack(">I4sII", 16 + len(entry), b"stsd", 0, 1) + entry
    made = edit(data, "moov/trak/mdia/minf/stbl/stsd", lambda _: parse_box(stsd))
    init = made[: made.index(b"moof") - 4]
    trak = find(parse(init), "moov/trak")
    expected = code != "avc1"
    assert fragdex.index(made).tracks[0].is_encrypted() == expected
    assert bool(protected_entries(trak)) == expected
    setup = TrackSetup(init, 1)
    if expected:
        with pytest.raises(UndecodableMedia, match="encrypted"):
            setup.init_of(1)
    else:
        assert setup.init_of(1)
