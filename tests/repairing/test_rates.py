"""Films without any other that is like them: what says how many pictures a second they have."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from unittest.mock import patch

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repairing.bits import Bits, escaped
from tests.repairing.broken import (
    FIXTURES,
    Film,
    check_no_invention,
    check_spans,
    film,
    samples_of,
)

import fragdex
from fragdex.boxes import Box
from fragdex.indexing import avc_sets, hevc_sets
from fragdex.muxing.movie import traks_of
from fragdex.repairing import avc, hevc
from fragdex.repairing.pattern import parameter_sets
from fragdex.repairing.rates import (
    NTSC,
    Rate,
    decided,
    items,
    messages,
    stamp_of_avc,
    stamp_of_hevc,
)
from fragdex.repairing.repair import Repair

AVC, HEVC = "moov-last.mp4", "hevc-aac.mp4"
Before = Callable[[int, int], bytes]
"""Of a picture's place in decode order and in the order of output: units in front of it."""


def nothing(number: int, shown: int) -> bytes:
    return b""


def own_vui(unit: bytes, vui: str) -> bytes:
    """A sequence parameter set of AVC with another vui_parameters()."""
    left: list[int] = []
    with patch.object(
        avc_sets, "_timing", lambda bits: left.append(bits.left) or (None, False, None)
    ):
        avc_sets.sps_of(unit)
    plain = unit[4:].replace(b"\0\0\3", b"\0\0")
    bits = Bits.of(plain, 8 * len(plain) - left[0])
    bits.text += vui
    return unit[:4] + escaped(bits.data())


def no_vui(unit: bytes) -> bytes:
    """A parameter set of HEVC without a clock."""
    left: list[int] = []
    place, read = (
        ("_ticks_of_vui", hevc_sets.sps_of)
        if unit[0] >> 1 == hevc.SPS
        else (
            "take_ticks",
            hevc_sets.ticks_of_vps,
        )
    )
    with patch.object(hevc_sets, place, lambda bits: left.append(bits.left)):
        read(unit)
    plain = unit[2:].replace(b"\0\0\3", b"\0\0")
    # the flag itself was read of the SPS, not of the VPS
    count = 8 * len(plain) - left[0] - (unit[0] >> 1 == hevc.SPS)
    bits = Bits.of(plain, count)
    bits.put(0, 2)
    return bits.unit(unit[:2])


def vui_of(
    ticks: tuple[int, int] | None, *, model: bool = False, stamps: bool = True, fixed: bool = True
) -> str:
    """vui_parameters() of AVC (E.1.1)."""
    bits = Bits()
    bits.put(0, 4)
    bits.put(ticks is not None)
    for number in ticks or ():
        bits.put(number, 32)
    if ticks is not None:
        bits.put(fixed)
    bits.put(model)
    if model:
        bits.ue(1)
        bits.put(0, 8)
        for _ in range(2):
            bits.ue(70)
            bits.ue(9)
            bits.put(1)
        for length in (23, 16, 4, 24):
            bits.put(length, 5)
    bits.put(0)
    bits.put(0, int(model))
    bits.put(stamps)
    bits.put(0)
    return bits.text


def message(kind: int, bits: Bits, header: bytes) -> bytes:
    data = bits.data(trailing=bool(len(bits.text) % 8))
    unit = header + escaped(bytes([kind, len(data)]) + data + b"\x80")
    return len(unit).to_bytes(4, "big") + unit


def clock_of(
    name: str, count: int, *, first: int = 0, counting: int = 0, model: bool = False
) -> Before:
    """Messages with timestamps of a clock that counts so many pictures a second."""

    def at(number: int, shown: int) -> bytes:
        second, frame = divmod(first + shown, count)
        bits = Bits()
        if name == AVC:
            bits.put(number, 22 if model else 0)
            bits.put(0, 4)  # a frame
            bits.put(1)
            bits.put(0, 2)
        else:
            bits.put(1, 2)
            bits.put(1)
        bits.put(0)
        bits.put(counting, 5)
        bits.put(1)
        bits.put(0, 2)
        bits.put(frame, 8 if name == AVC else 9)
        for value, width in ((second % 60, 6), (second // 60 % 60, 6), (second // 3600, 5)):
            bits.put(value, width)
        if name == AVC:
            bits.put(0, 24)
            return message(1, bits, b"\x06")
        bits.put(0, 5)
        return message(136, bits, bytes([39 << 1, 1]))

    return at


def stream_of(
    good: Film,
    change: Callable[[bytes], bytes],
    before: Before = nothing,
    after: Callable[[int], bytes] = lambda number: b"",
) -> tuple[bytes, int]:
    """An ftyp and an mdat of pictures with parameter sets among them.

    Args:
        change: of a parameter set, what takes its place.
        before: units in front of a picture.
        after: other data after it.

    Returns: its bytes, and how many pictures there are.
    """
    track = next(t for t in good.index.tracks if t.kind == "video")
    init = b"".join(good.data[part.start : part.stop] for part in good.index.periods[0].init)
    stsd = traks_of(fragdex.boxes.parse(init))[track.id].find("mdia/minf/stbl/stsd")
    assert stsd is not None
    sets = b"".join(
        len(unit).to_bytes(4, "big") + unit
        for unit in map(change, parameter_sets(stsd.children[0]))
    )
    start, stop = good.box(b"ftyp")
    samples = track.samples
    turns = {row: turn for turn, row in enumerate(samples.cts.argsort().tolist())}
    payload = b""
    rows = zip(samples.offset.tolist(), samples.size.tolist(), samples.sync.tolist(), strict=True)
    for number, (at, size, sync) in enumerate(rows):
        payload += (sets if sync else b"") + before(number, turns[number])
        payload += good.data[at : at + size] + after(number)
    mdat = (len(payload) + 8).to_bytes(4, "big") + b"mdat" + payload
    return good.data[start:stop] + mdat, len(samples)


def changed_sets(name: str, vui: str) -> Callable[[bytes], bytes]:
    def change(unit: bytes) -> bytes:
        if name == AVC:
            return own_vui(unit, vui) if unit[0] & 31 == avc.SPS else unit
        return no_vui(unit) if unit[0] >> 1 in (hevc.VPS, hevc.SPS) else unit

    return change


def repaired(broken: bytes, rate: float | None = None, like: bytes | None = None) -> Repair:
    repair = fragdex.repair(broken, like, rate=rate)
    check_spans(broken, repair)
    return repair


@pytest.mark.parametrize("name", [AVC, HEVC])
@pytest.mark.parametrize("count", [24, 25, 30, 48])
def test_a_clock_says_the_rate(name: str, count: int) -> None:
    stamped = clock_of(name, count, first=3599 * count + 7, model=count == 30)
    sets = changed_sets(name, vui_of(None, model=count == 30))
    broken, pictures = stream_of(film(name), sets, stamped)
    repair = repaired(broken)
    (video,) = repair.tracks
    assert video.samples == pictures
    assert video.seconds == pytest.approx(pictures / count)
    if count == 25:
        assert repair.findings == ()
    else:
        (guess,) = repair.findings
        assert guess == (
            f"the rate is a guess: clock timestamps say {float(count * NTSC):.3f} to {count}"
            f" pictures a second, {count} are taken"
        )


@pytest.mark.parametrize("name", [AVC, HEVC])
def test_a_clock_that_drops_frames_counts_a_thousandth_less(name: str) -> None:
    broken, pictures = stream_of(
        film(name), changed_sets(name, vui_of(None)), clock_of(name, 30, counting=4)
    )
    repair = repaired(broken)
    assert repair.findings == ()
    assert repair.index(broken).track(1).timescale == 30000
    assert repair.tracks[0].seconds == pytest.approx(pictures * 1001 / 30000)


def test_parameter_sets_and_a_clock_that_contradict_each_other_are_told() -> None:
    sets = changed_sets(AVC, vui_of((1, 100)))
    broken, pictures = stream_of(film(AVC), sets, clock_of(AVC, 25))
    repair = repaired(broken)
    assert repair.findings == (
        "clock timestamps say 25 pictures a second, parameter sets 50: 50 are taken",
    )
    assert repair.tracks[0].seconds == pytest.approx(pictures / 50)


def test_a_good_film_is_believed_and_the_clock_that_contradicts_it_told() -> None:
    good = film(AVC)
    broken, _ = stream_of(good, changed_sets(AVC, vui_of(None)), clock_of(AVC, 50, first=30))
    repair = repaired(broken, like=good.data)
    assert repair.findings[0] == (
        "clock timestamps say 50 pictures a second, the times of the good file 25: 25 are taken"
    )
    agreed, _ = stream_of(good, changed_sets(AVC, vui_of(None)), clock_of(AVC, 25))
    assert not any("clock" in sentence for sentence in repaired(agreed, like=good.data).findings)


@pytest.mark.parametrize(("ticks", "guess"), [((1, 100), 50), ((1, 180_000), None)])
def test_a_clock_without_a_fixed_rate_is_a_guess_or_none(
    ticks: tuple[int, int], guess: int | None
) -> None:
    sets = changed_sets(AVC, vui_of(ticks, fixed=False))
    broken, pictures = stream_of(film(AVC), sets)
    repair = repaired(broken)
    assert repair.tracks[0].seconds == pytest.approx(pictures / (guess or 25))
    (sentence,) = repair.findings
    assert ("parameter sets say 0 to 50" if guess else "no rate is known") in sentence
    # timestamps say it more closely
    stamped, _ = stream_of(film(AVC), sets, clock_of(AVC, 25))
    assert repaired(stamped).tracks[0].seconds == pytest.approx(pictures / 25)
    assert repaired(stamped).findings == ()


def test_what_the_user_says_is_taken_and_what_contradicts_it_told() -> None:
    broken, pictures = stream_of(film(AVC), changed_sets(AVC, vui_of(None)), clock_of(AVC, 25))
    repair = repaired(broken, 50)
    assert repair.findings == (
        "clock timestamps say 25 pictures a second, the arguments 50: 50 are taken",
    )
    assert repair.tracks[0].seconds == pytest.approx(pictures / 50)
    assert repaired(broken, 25).findings == ()


@pytest.mark.parametrize("name", [AVC, HEVC])
@pytest.mark.parametrize("jumps", [0, 3])
def test_a_clock_that_stands_still_or_jumps_says_nothing(name: str, jumps: int) -> None:
    one = clock_of(name, 25)
    broken, _ = stream_of(
        film(name),
        changed_sets(name, vui_of(None)),
        lambda number, shown: one(number, jumps * shown**2 % 97),
    )
    assert any("no rate is known" in sentence for sentence in repaired(broken).findings)


def item(key: bytes, kind: bytes, size: int, data: bytes) -> bytes:
    count = len(data) // size
    head = key + kind + bytes([size]) + count.to_bytes(2, "big")
    return head + data + bytes(-len(data) % 4)


def telemetry(seconds: Fraction, *, gps: Fraction | None = None) -> bytes:
    """A payload of GPMF with the clocks of two streams."""
    ticks = round(seconds * 1_000_000)
    motion = item(b"STMP", b"J", 8, ticks.to_bytes(8, "big"))
    motion += item(b"TSMP", b"L", 4, bytes(3) + b"\x07") + item(b"ACCL", b"s", 6, bytes(60))
    streams = item(b"STRM", b"\0", 1, motion)
    if gps is not None:
        moment = 13 * 3600 + gps
        text = (
            f"261127{int(moment) // 3600:02}{int(moment) // 60 % 60:02}{float(moment % 60):06.3f}"
        )
        where = item(b"GPSU", b"U", 16, text.encode()) + item(b"GPS5", b"l", 20, bytes(40))
        streams += item(b"STRM", b"\0", 1, where)
    device = item(b"DVID", b"L", 4, b"\0\0\0\1") + item(b"DVNM", b"c", 1, b"camera") + streams
    return item(b"DEVC", b"\0", 1, device)


def recorded(each: int, rate: Fraction, gps_rate: Fraction | None = None) -> Callable[[int], bytes]:
    """A payload after each so many pictures, with the time at which these began."""

    def after(number: int) -> bytes:
        if number % each != each - 1:
            return b""
        begun = number + 1 - each
        gps = None if gps_rate is None else begun / gps_rate
        return telemetry(begun / rate, gps=gps)

    return after


@pytest.mark.parametrize("name", [AVC, HEVC])
@pytest.mark.parametrize("rate", [Fraction(50), Fraction(25), Fraction(12)])
def test_telemetry_says_the_rate_as_a_guess(name: str, rate: Fraction) -> None:
    broken, pictures = stream_of(
        film(name), changed_sets(name, vui_of(None)), after=recorded(10, rate)
    )
    repair = repaired(broken)
    (video,) = repair.tracks
    assert video.samples == pictures
    assert video.seconds == pytest.approx(float(pictures / rate))
    (guess,) = repair.findings
    assert "the rate is a guess: payloads of telemetry (GPMF, STMP) say" in guess
    assert {span.what for span in repair.spans if span.state == "lost"} == {"telemetry (GPMF)"}


def test_telemetry_bears_out_a_clock_against_the_parameter_sets() -> None:
    """Two that agree are believed rather than one."""
    broken, pictures = stream_of(
        film(AVC),
        changed_sets(AVC, vui_of((1, 100))),
        clock_of(AVC, 25),
        recorded(10, Fraction(25)),
    )
    repair = repaired(broken)
    assert repair.findings == (
        "parameter sets say 50 pictures a second, clock timestamps 25: 25 are taken",
    )
    assert repair.tracks[0].seconds == pytest.approx(pictures / 25)


def test_clocks_of_telemetry_that_contradict_each_other_are_told() -> None:
    broken, _ = stream_of(
        film(AVC),
        changed_sets(AVC, vui_of(None)),
        after=recorded(10, Fraction(25), Fraction(50)),
    )
    findings = repaired(broken).findings
    assert any(
        "(GPMF, GPSU) say 50" in sentence and "25 are taken" in sentence for sentence in findings
    )


def test_a_track_of_telemetry_is_found_as_a_good_film_has_it(tmp_path: Path) -> None:
    good, other = (film_with_telemetry(tmp_path / f"{each}.mp4", each) for each in (10, 7))
    broken = good.without_moov()
    repair = repaired(broken, like=other.data)
    assert samples_of(repair) == good.truth
    assert [track.proved for track in repair.tracks] == [
        len(samples) for samples in good.truth.values()
    ]
    check_no_invention(good, broken, repair)


def film_with_telemetry(path: Path, each: int) -> Film:
    """The pictures and sound of a fixture, and a payload after so many pictures."""
    after = recorded(each, Fraction(25))
    with av.open(str(FIXTURES / AVC)) as given, av.open(str(path), "w") as out:
        streams = [out.add_stream_from_template(stream) for stream in given.streams]
        data = out.add_data_stream("bin_data")
        out.start_encoding()
        number = 0
        for packet in (one for one in given.demux() if one.size):
            is_picture = packet.stream.type == "video"
            packet.stream = streams[packet.stream.index]
            out.mux(packet)
            if is_picture and after(number):
                payload = av.Packet(after(number))
                payload.stream, payload.time_base = data, Fraction(1, 25)
                payload.pts = payload.dts = number + 1 - each
                payload.duration = each
                out.mux(payload)
            number += is_picture
    return film(str(path))


@pytest.mark.parametrize("timescale", [512 * 25, 512 * 50])
def test_a_timecode_track_says_how_long_pictures_last_where_nothing_else_does(
    timescale: int,
) -> None:
    """Pictures without durations and without a clock, in a movie that still has its moov."""
    good = film("timecode.mov")
    video = good.index.track("video")

    def change(box: Box) -> Box:
        if box.type == "tmcd" and "timescale" in box:
            return box.replace(timescale=timescale)
        if box.type == "mdhd":
            return box.replace(duration=0)
        if box.type == "stts":
            return box.replace(entries=[(count, 0) for count, _ in box["entries"]])
        if box.type == "avcC":
            units = [own_vui(bytes(unit), vui_of(None)) for unit in box["sequenceParameterSets"]]
            return box.replace(sequenceParameterSets=units)
        return box.replace(children=[change(child) for child in box]) if box.children else box

    boxes = fragdex.boxes.parse(good.data[slice(*good.moov)])
    moov = b"".join(map(fragdex.boxes.build, map(change, boxes)))
    start, stop = good.moov
    assert stop == len(good.data)
    repair = repaired(good.data[:start] + moov)
    mended_track = repair.index(good.data[:start] + moov).track(video.id)
    assert mended_track.samples.duration.tolist() == [512 * 25 * 512 // timescale] * len(
        video.samples
    )


@pytest.mark.parametrize("name", [AVC, "one-gop.mp4"])
@pytest.mark.parametrize("wide", [700, 40_000])
def test_unknown_bytes_between_pictures_take_no_time(name: str, wide: int) -> None:
    """They are sound, or data: the pictures on both sides are neighbours."""
    random = Random(wide)
    between = {n: random.randbytes(wide) for n in range(9, 50, 10)}
    broken, _ = stream_of(film(name), lambda unit: unit, after=lambda n: between.get(n, b""))
    repair = repaired(broken)
    (video,) = repair.tracks
    assert video.samples >= 40
    assert video.seconds == pytest.approx(video.samples / 25)


@given(st.binary(max_size=200))
def test_hostile_telemetry_and_messages_are_read_to_their_end(data: bytes) -> None:
    for one in items(data) or []:
        assert len(one.data) <= len(data)
    assert sum(len(part) + 2 for _, part in messages(data)) <= max(len(data), 0)
    for stamp in (stamp_of_hevc(data), stamp_of_avc(data, 22), stamp_of_avc(data, 0)):
        assert stamp is None or 0 <= stamp.second < 24 * 3600


@given(st.lists(st.sampled_from([24, 25, 30, 50]), max_size=4), st.booleans())
def test_a_rate_is_decided_and_no_witness_passed_over(values: list[int], is_given: bool) -> None:
    rates = [Rate(Fraction(value), f"witness {n}") for n, value in enumerate(values)]
    taken, sentences = decided(rates, is_given=is_given)
    if not rates:
        assert "no rate is known" in sentences[0]
        return
    assert taken in values
    if is_given:
        assert taken == values[0]
    else:
        assert values.count(taken) == max(map(values.count, values))
    assert len(sentences) == sum(value != taken for value in values)
