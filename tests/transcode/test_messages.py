"""Smart cuts of pictures with something beside them: it is in the clip, named, or refused.

The inputs are fixtures with units put into every sample, so that each codec meets each kind.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, build, make_box, parse
from fragdex.errors import BuildError
from fragdex.indexing.access import sei_messages
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.transcode import messages

av = pytest.importorskip("av")

from transcode.smart_cuts import FIXTURES, rows_of  # noqa: E402

FILMS = {"avc": "faststart.mp4", "hevc": "hevc-aac.mp4", "av1": "av1-opus.mp4"}
START, STOP = 0.6, 1.7


@cache
def film_of(codec: str) -> tuple[bytes, Any]:
    data = (FIXTURES / FILMS[codec]).read_bytes()
    return data, fragdex.index(data, exact=True).video


def sized(unit: bytes) -> bytes:
    return len(unit).to_bytes(4, "big") + unit


def sei(codec: str, *said: tuple[int, bytes], suffix: bool = False, layer: int = 0) -> bytes:
    kind = 40 if suffix else 39
    head = b"\x06" if codec == "avc" else bytes([kind << 1 | layer >> 5, (layer & 31) << 3 | 1])
    body = b"".join(bytes([number, len(data)]) + data for number, data in said) + b"\x80"
    escaped = bytearray()
    for byte in body:
        escaped += b"\3" * (byte <= 3 and escaped.endswith(b"\0\0"))
        escaped.append(byte)
    return head + escaped


def metadata(kind: int, data: bytes, *, spatial: int = 0) -> bytes:
    body = bytes([kind]) + data + b"\x80"
    head = bytes([5 << 3 | 4 | 2, spatial << 3]) if spatial else bytes([5 << 3 | 2])
    return head + bytes([len(body)]) + body


def captions(number: int) -> bytes:
    """ITU-T T.35 of ATSC A/53: one pair of bytes, which differ from picture to picture."""
    pair = bytes([0xFC, 0x80 | number >> 7, 0x80 | number & 0x7F])
    return bytes.fromhex("b5003147413934 03 41 ff") + pair + b"\xff"


def mastering(number: int) -> bytes:
    return (13250).to_bytes(2, "big") * 8 + (10_000_000 + number).to_bytes(4, "big") + bytes(4)


@dataclass
class Kind:
    """What is put into each sample, and how it is known again in the clip's."""

    codecs: tuple[str, ...]
    make: Any
    after: bool = False


NAL = ("avc", "hevc")
KEPT = {
    "captions": Kind(NAL, lambda codec, n: sei(codec, (4, captions(n)))),
    "user data": Kind(
        NAL, lambda codec, n: sei(codec, (5, bytes(16) + b"\0\0\1" + bytes([n + 1])))
    ),
    "film grain": Kind(NAL, lambda codec, n: sei(codec, (19, bytes([n + 1] * 5)))),
    "packing": Kind(NAL, lambda codec, n: sei(codec, (45, bytes([n + 1] * 7)))),
    "colour volume": Kind(NAL, lambda codec, n: sei(codec, (137, mastering(n)))),
    "not known": Kind(NAL, lambda codec, n: sei(codec, (250, bytes([n + 1])))),
    "several": Kind(NAL, lambda codec, n: sei(codec, (4, captions(n)), (5, bytes([n + 1] * 17)))),
    "suffix": Kind(
        ("hevc",), lambda codec, n: sei(codec, (4, captions(n)), suffix=True), after=True
    ),
    "time code": Kind(("hevc",), lambda codec, n: sei(codec, (136, bytes([n + 1] * 6)))),
    "RPU": Kind(NAL, lambda codec, n: rpu(codec) + bytes([0x19, n + 1, 0x80]), after=True),
    "T.35": Kind(("av1",), lambda codec, n: metadata(4, captions(n))),
    "light": Kind(("av1",), lambda codec, n: metadata(1, bytes([3, n + 1, 1, 1]))),
    "mastering": Kind(("av1",), lambda codec, n: metadata(2, mastering(n))),
    "timecode": Kind(("av1",), lambda codec, n: metadata(5, bytes([n + 1] * 5))),
    "private": Kind(("av1",), lambda codec, n: metadata(20, bytes([n + 1]))),
}
NAMED = {
    "SEI pic_timing": Kind(NAL, lambda codec, n: sei(codec, (1, b"\x10"))),
    "SEI buffering_period": Kind(NAL, lambda codec, n: sei(codec, (0, b"\x80"))),
    "SEI decoded_picture_hash": Kind(
        ("hevc",), lambda codec, n: sei(codec, (132, bytes(17)), suffix=True), after=True
    ),
    "OBU metadata scalability": Kind(("av1",), lambda codec, n: metadata(3, b"\0")),
    "NAL units of type 29": Kind(("avc",), lambda codec, n: b"\x1d\x01", after=True),
    "NAL units of type 50": Kind(("hevc",), lambda codec, n: b"\x64\x01\x01", after=True),
    "OBUs of type 9": Kind(("av1",), lambda codec, n: bytes([9 << 3 | 2, 1, 1])),
}
REFUSED = {
    "layer 1": Kind(("hevc",), lambda codec, n: b"\x02\x09\xd0\x80", after=True),
    "message of layer 1": Kind(("hevc",), lambda codec, n: sei(codec, (4, captions(n)), layer=1)),
    "enhancement layer": Kind(
        NAL, lambda codec, n: (b"\x1e" if codec == "avc" else b"\x7e\x01") + b"\x80", after=True
    ),
    "alpha": Kind(("avc",), lambda codec, n: b"\x13\x80", after=True),
    "view": Kind(("avc",), lambda codec, n: b"\x74\x80\x00\x01\x80", after=True),
    "spatial layer": Kind(
        ("av1",), lambda codec, n: bytes([6 << 3 | 4 | 2, 1 << 3, 1, 0x30]), after=True
    ),
}


def rpu(codec: str) -> bytes:
    return b"\x1c" if codec == "avc" else b"\x7c\x01"


def matrix(kinds: dict[str, Kind]) -> list[Any]:
    return [
        pytest.param(codec, kind, id=f"{codec} {name}")
        for name, kind in kinds.items()
        for codec in kind.codecs
    ]


def sample_with(codec: str, sample: bytes, unit: bytes, *, after: bool) -> bytes:
    if codec == "av1":
        # After the sequence header, in front of the frame.
        kinds = list(messages.obus(sample))
        first = 0 if after else sum(kind in (1, 2) for kind, _ in kinds)
        parts = [one for _, one in kinds]
        return b"".join((*parts, unit) if after else (*parts[:first], unit, *parts[first:]))
    return sample + sized(unit) if after else sized(unit) + sample


def edited(
    codec: str, units: dict[int, bytes], *, after: bool = False, described: Any = None
) -> bytes:
    """A film with a unit in some samples: new samples behind the old file, and a new moov."""
    data, track = film_of(codec)
    samples = [data[at : at + size] for at, size in rows_of(track.samples)]
    for number, unit in units.items():
        samples[number] = sample_with(codec, samples[number], unit, after=after)
    moov = next(box for box in parse(data) if box.type == "moov")
    offsets, at = [], len(data) + 8
    for sample in samples:
        offsets.append((at,))
        at += len(sample)

    def changed(box: Box) -> Box:
        if box.type == "stbl":
            tables = {
                "stsz": make_box("stsz", sample_size=0, entries=[(len(s),) for s in samples]),
                "stsc": make_box("stsc", entries=[(1, 1, 1)]),
                "stco": make_box("stco", entries=offsets),
            }
            if described is not None:
                (entry,) = box.find("stsd")
                tables["stsd"] = box.find("stsd").replace(children=[described(entry)])
            return box.replace(children=[tables.get(one.type, one) for one in box])
        if box.type == "trak":
            tkhd = box.find("tkhd")
            if tkhd["track_ID"] != track.id:
                return box
        if box.children and box.type in ("moov", "trak", "mdia", "minf"):
            return box.replace(children=[changed(one) for one in box])
        return box

    media = b"".join(samples)
    free = bytearray(data)
    place = data.index(b"moov")
    free[place : place + 4] = b"free"
    return bytes(free) + sized4("mdat", media) + build(changed(moov))


def sized4(kind: str, payload: bytes) -> bytes:
    return (8 + len(payload)).to_bytes(4, "big") + kind.encode() + payload


def with_all(codec: str, kind: Kind) -> tuple[bytes, dict[int, bytes]]:
    _, track = film_of(codec)
    units = {n: kind.make(codec, n) for n in range(len(track.samples))}
    return edited(codec, units, after=kind.after), units


def cut(data: bytes, start: float = START, stop: float = STOP) -> tuple[bytes, Any, Any]:
    with fragdex.open_source(data) as source:
        index = fragdex.index(data, exact=True)
        view, clip = clip_view(index, source, ClipRequest(start, stop, smart=True))
        return view.read(source=source), clip, view


def units_of(codec: str, sample: bytes) -> list[bytes]:
    if codec == "av1":
        return [unit for _, unit in messages.obus(sample)]
    return list(messages.nal_units(sample, 4))


def shown(data: bytes) -> list[tuple[int, bytes]]:
    """Composition time and bytes of the samples, in the order of showing."""
    table = fragdex.index(data, exact=True).video.samples
    rows = [data[at : at + size] for at, size in rows_of(table)]
    return sorted(zip(table.cts.tolist(), rows, strict=True))


@pytest.mark.parametrize(("codec", "kind"), matrix(KEPT))
def test_messages_stand_beside_the_encoded_picture_that_had_them(codec: str, kind: Kind) -> None:
    source, units = with_all(codec, kind)
    clip_data, clip, view = cut(source)
    assert clip.encoded
    assert view.findings == ()
    track = fragdex.index(source, exact=True).video
    order = sorted(range(len(track.samples)), key=track.samples.cts.tolist().__getitem__)
    samples = [sample for _, sample in shown(clip_data)]
    first = next(
        place for place, number in enumerate(order) if units[number] in units_of(codec, samples[0])
    )
    for sample, number in zip(samples, order[first:], strict=False):
        found = units_of(codec, sample)
        assert found.count(units[number]) == 1
        # At the start of a sequence those that still hold come along, but of no kind twice.
        others = {one for other, one in units.items() if other != number}
        assert not others & set(found)
    with av.open(io.BytesIO(clip_data)) as container:
        assert sum(1 for _ in container.decode(video=0)) == len(samples)


@pytest.mark.parametrize(("codec", "kind"), matrix(NAMED))
def test_what_is_about_the_old_coding_is_named(codec: str, kind: Kind) -> None:
    source, _ = with_all(codec, kind)
    _, clip, view = cut(source)
    (name,) = [name for name, one in NAMED.items() if one is kind]
    (finding,) = view.findings
    assert finding.startswith(f"{name} of {clip.encoded} encoded pictures of track ")
    assert finding.code == "left-out"


@pytest.mark.parametrize(("codec", "kind"), matrix(REFUSED))
def test_pictures_with_further_layers_are_refused_by_name(codec: str, kind: Kind) -> None:
    numbers = range(sync_before(codec) + 5, len(film_of(codec)[1].samples))
    source = edited(codec, {n: kind.make(codec, n) for n in numbers}, after=kind.after)
    with pytest.raises(BuildError, match=r"more than one layer.*sample \d+ has"):
        cut(source)
    assert cut(source, second_sync(source), 99)[1].encoded == 0


def second_sync(data: bytes) -> Any:
    track = fragdex.index(data, exact=True).video
    return track.presentation(int(track.samples.cts[track.samples.sync][1])).fraction


def sync_before(codec: str) -> int:
    """The sample that decoding for the cut at the start begins at."""
    return film_of(codec)[1].seek(START).sample


@pytest.mark.parametrize("code", ["lhvC", "mvcC"])
def test_a_sample_entry_of_several_layers_is_refused_by_name(code: str) -> None:
    codec = "hevc" if code == "lhvC" else "avc"
    source = edited(codec, {}, described=lambda entry: entry.replace(
        children=[*entry, Box(code, {"data": b"\1"})]))  # fmt: skip
    with pytest.raises(BuildError, match=f"its sample entry has {code}"):
        cut(source)
    assert cut(source, second_sync(source), 99)[1].encoded == 0


LASTING = [
    *(pytest.param(codec, KEPT[name], id=f"{codec} {name}")
      for codec in NAL for name in ("film grain", "packing", "colour volume")),
    *(pytest.param("av1", KEPT[name], id=f"av1 {name}") for name in ("light", "mastering")),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "kind"), LASTING)
def test_what_holds_for_a_sequence_is_said_where_the_new_one_begins(codec: str, kind: Kind) -> None:
    at = sync_before(codec)
    source = edited(codec, {at: kind.make(codec, 0), at + 1: kind.make(codec, 1)})
    clip_data, _, view = cut(source)
    assert view.findings == ()
    begins = [n for n, (_, one) in enumerate(shown(clip_data))
              if kind.make(codec, 1) in units_of(codec, one)]  # fmt: skip
    # The cut at the end is behind the next sync sample, where nothing was said.
    assert begins == [0]


@pytest.mark.parametrize("codec", ["hevc", "av1"])
def test_what_the_sample_entry_declares_stands_in_both(codec: str) -> None:
    unit = sei(codec, (5, bytes(17))) if codec == "hevc" else metadata(1, bytes(4))

    def declared(entry: Box) -> Box:
        code = {"hevc": "hvcC", "av1": "av1C"}[codec]
        box = entry.find(code)
        if codec == "hevc":
            array = {"array_completeness": 1, "reserved": 0, "NAL_unit_type": 39, "nalus": [unit]}
            box = box.replace(arrays=[*box["arrays"], array])
        else:
            box = box.replace(configOBUs=bytes(box["configOBUs"]) + unit)
        return entry.replace(children=[box if one.type == code else one for one in entry])

    clip_data, _, _ = cut(edited(codec, {}, described=declared))
    moov = next(box for box in parse(clip_data) if box.type == "moov")
    assert [build(one).count(unit) for one in moov.find("trak/mdia/minf/stbl/stsd")] == [1, 1]


@given(st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=300)), min_size=1, max_size=4))
def test_a_rebuilt_sei_says_what_it_said(said: list[tuple[int, bytes]]) -> None:
    unit = messages._sei_unit(b"\x06", said)
    assert list(sei_messages(unit[1:])) == said
    assert not {b"\0\0" + bytes([last]) for last in range(3)} & {
        unit[at : at + 3] for at in range(len(unit))
    }


@given(st.sampled_from([*FILMS, "vp9"]), st.binary(max_size=400), st.sampled_from((1, 2, 4)))
def test_any_bytes_are_read_without_an_error(codec: str, data: bytes, length_size: int) -> None:
    said = messages.messages_of(codec, data, length_size)
    assert sum(map(len, (*said.before, *said.after))) <= 3 * len(data)
