"""What is in a sample next to its coded picture: messages, dynamic metadata, further layers.

A picture that is encoded again loses it, since encoders write only what they made themselves. What
is about the picture that is shown (captions and other ITU-T T.35, colour volumes, time codes,
RPUs of Dolby Vision, user data) is put back next to the new one, byte for byte. What is about the
coding of the old one would be wrong next to the new one: it is named. Layers that no encoder here
makes (other views, depth, alpha, enhancement) are named too, and their pictures are not encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from fragdex.boxes import Box
from fragdex.errors import BuildError
from fragdex.indexing.access import sei_messages
from fragdex.muxing.elementary_stream import nal_units, obus
from fragdex.record import record

__all__ = ["Messages", "messages_of", "with_declared", "with_messages"]


@record(frozen=True, slots=True)
class Messages:
    """What a sample has in addition to its base picture.

    Attributes:
        before: units (NAL units without length, or OBUs with their size) in front of the picture.
        after: NAL units after it.
        lasting: by kind, a unit in `before` that holds until the coded sequence ends.
        of_coding: names of what speaks of how the picture was coded, and is not kept.
        layers: names of what is coded in addition to the base picture.
    """

    before: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()
    lasting: Mapping[int, bytes] = field(default_factory=dict)
    of_coding: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()

    def following(self, lasting: Mapping[int, bytes]) -> Messages:
        """The same at the start of a sequence, with those of the old one that still hold."""
        old = [unit for kind, unit in lasting.items() if kind not in self.lasting]
        return Messages((*old, *self.before), self.after)


@record(frozen=True, slots=True)
class _NalFamily:
    """How a codec numbers its units (ISO/IEC 14496-10, table 7-1; ISO/IEC 23008-2, table 7-1).

    Attributes:
        header: bytes of a unit's header.
        pictures: types of the slices of the base picture.
        plain: types without a message: parameter sets, delimiters, ends, filler data.
        sei: types of SEI before the picture, and after it.
        rpu: type of the RPU of Dolby Vision.
        layers: types of what is coded in addition to the base picture → its name.
        of_coding: payloadTypes of messages on how pictures are coded, or on other layers.
    """

    header: int
    pictures: range
    plain: frozenset[int]
    sei: tuple[int, ...]
    rpu: int
    layers: Mapping[int, str]
    of_coding: frozenset[int]

    def kind(self, unit: bytes) -> int:
        """nal_unit_type."""
        return unit[0] & 31 if self.header == 1 else unit[0] >> 1 & 63

    def layer(self, unit: bytes) -> int:
        """nuh_layer_id; 0 where units have none."""
        return 0 if self.header == 1 else (unit[0] & 1) << 5 | unit[1] >> 3


_FAMILIES: Final = {
    "avc": _NalFamily(
        header=1,
        pictures=range(1, 6),
        plain=frozenset((7, 8, 9, 10, 11, 12, 13, 15, 16)),
        sei=(6,),
        rpu=28,
        layers={
            19: "an auxiliary picture (alpha)",
            20: "another layer or view",
            21: "another view with depth",
            30: "the enhancement layer of Dolby Vision",
        },
        # 24 to 44, 46 and 48 to 53 speak of the layers and views of annexes F to J.
        of_coding=frozenset(
            (0, 1, 6, 7, 8, 10, 11, 12, 18, 22, *range(24, 45), 46, *range(48, 54))
        ),
    ),
    "hevc": _NalFamily(
        header=2,
        pictures=range(32),
        plain=frozenset(range(32, 39)),
        sei=(39, 40),
        rpu=62,
        layers={63: "the enhancement layer of Dolby Vision"},
        # 160 to 168 and 176 to 180 speak of the layers and views of annexes F to I.
        of_coding=frozenset(
            (0, 1, 6, 22, *range(128, 135), 139, 145, 146, *range(160, 169), *range(176, 181))
        ),
    ),
}
_CODING_NAMES: Final = {
    0: "buffering_period",
    1: "pic_timing",
    6: "recovery_point",
    7: "dec_ref_pic_marking_repetition",
    128: "structure_of_pictures_info",
    129: "active_parameter_sets",
    130: "decoding_unit_info",
    131: "temporal_sub_layer_zero_idx",
    132: "decoded_picture_hash",
    133: "scalable_nesting",
    134: "region_refresh_info",
}
_LASTING_SEI: Final = frozenset((19, 45, 47, 137, 141, 142, 144, *range(147, 157)))
"""Film grain, packing, orientation, colour volumes, light, projections: until the next sequence."""
_SUFFIX_SEI: Final = 40

_SEQUENCE_HEADER, _DELIMITER, _METADATA, _TILE_LIST, _PADDING = 1, 2, 5, 8, 15
_OBU_PICTURES: Final = (3, 4, 6, 7)
_SCALABILITY: Final = 3
_LASTING_METADATA: Final = (1, 2)
"""metadata_type of light levels and colour volumes (AV1 bitstream, 6.7.3 and 6.7.4)."""


def messages_of(codec: str, sample: bytes, length_size: int = 4) -> Messages:
    """What a sample has in addition to its base picture.

    Args:
        codec: `avc`, `hevc` or `av1`; of others nothing is known to stand in samples.
    """
    if codec == "av1":
        return _of_obus(sample)
    if codec not in _FAMILIES:
        return Messages()
    family = _FAMILIES[codec]
    before: list[bytes] = []
    after: list[bytes] = []
    lasting: dict[int, bytes] = {}
    of_coding: dict[str, None] = {}
    layers: dict[str, None] = {}
    try:
        for unit in nal_units(sample, length_size):
            kind = family.kind(unit)
            if len(unit) < family.header:
                of_coding["NAL units without a header"] = None
            elif kind in family.layers or family.layer(unit):
                layers[family.layers.get(kind, f"layer {family.layer(unit)}")] = None
            elif kind in family.sei:
                kept, other = _sei(unit, family, lasting)
                (after if kind == _SUFFIX_SEI else before).extend(kept)
                of_coding |= other
            elif kind == family.rpu:
                after.append(unit)
            elif kind not in family.pictures and kind not in family.plain:
                of_coding[f"NAL units of type {kind}"] = None
    except BuildError:
        of_coding["bytes that are not NAL units"] = None
    return Messages(tuple(before), tuple(after), lasting, tuple(of_coding), tuple(layers))


def _sei(
    unit: bytes, family: _NalFamily, lasting: dict[int, bytes]
) -> tuple[list[bytes], dict[str, None]]:
    """An SEI without messages of coding, and the names of those; what lasts goes to `lasting`."""
    head, body = unit[: family.header], unit[family.header :].rstrip(b"\0")
    messages = list(sei_messages(body))
    kept = [one for one in messages if one[0] not in family.of_coding]
    lasting |= {kind: _sei_unit(head, [(kind, b)]) for kind, b in kept if kind in _LASTING_SEI}
    if len(kept) == len(messages):
        return [unit], {}
    numbers = dict.fromkeys(kind for kind, _ in messages if kind in family.of_coding)
    names = {f"SEI {_CODING_NAMES.get(number, f'of type {number}')}": None for number in numbers}
    return [_sei_unit(head, kept)] if kept else [], names


def _sei_unit(head: bytes, messages: Iterable[tuple[int, bytes]]) -> bytes:
    """An SEI of messages (7.3.2.3.1), with emulation prevention (7.4.1)."""
    parts = []
    for kind, body in messages:
        numbers = (b"\xff" * (n // 255) + bytes([n % 255]) for n in (kind, len(body)))
        parts += [*numbers, body]
    raw = b"".join(parts) + b"\x80"
    return head + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", raw)


def _of_obus(sample: bytes) -> Messages:
    before: list[bytes] = []
    lasting: dict[int, bytes] = {}
    of_coding: dict[str, None] = {}
    layers: dict[str, None] = {}
    try:
        for kind, unit in obus(sample):
            spatial = unit[1] >> 3 & 3 if unit[0] & 4 else 0
            if spatial and kind in _OBU_PICTURES:
                layers[f"spatial layer {spatial}"] = None
            elif kind == _METADATA:
                metadata = _metadata_type(unit)
                if metadata == _SCALABILITY:
                    of_coding["OBU metadata scalability"] = None
                    continue
                before.append(unit)
                if metadata in _LASTING_METADATA:
                    lasting[metadata] = unit
            elif kind not in (_SEQUENCE_HEADER, _DELIMITER, _PADDING, *_OBU_PICTURES):
                of_coding[f"OBUs of type {kind}"] = None
    except BuildError:
        of_coding["bytes that are not OBUs"] = None
    return Messages(tuple(before), (), lasting, tuple(of_coding), tuple(layers))


def _metadata_type(unit: bytes) -> int:
    """metadata_type, after the header and the size (AV1 bitstream, 5.8.1); -1: it has none."""
    at = 2 if unit[0] & 4 else 1
    while at < len(unit) and unit[at] & 0x80:
        at += 1
    # A number of seven bits: larger ones are private, and not looked at.
    return unit[at + 1] if at + 1 < len(unit) else -1


def with_messages(codec: str, sample: bytes, said: Messages) -> bytes:
    """A sample of an encoder, with the messages of the source's picture and no others."""
    if codec == "av1":
        units = [unit for kind, unit in obus(sample) if kind != _METADATA]
        kinds = [kind for kind, _ in obus(sample) if kind != _METADATA]
        first = next((n for n, kind in enumerate(kinds) if kind in _OBU_PICTURES), len(units))
        return b"".join((*units[:first], *said.before, *units[first:]))
    if codec not in _FAMILIES:
        return sample
    family = _FAMILIES[codec]
    units = list(_without_messages(sample, family))
    kinds = [family.kind(unit) for unit in units]
    first = next((n for n, kind in enumerate(kinds) if kind in family.pictures), len(units))
    ordered: Sequence[bytes] = (*units[:first], *said.before, *units[first:], *said.after)
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in ordered)


def with_declared(made: Box, source: Box) -> Box:
    """An encoder's hvcC or av1C with the messages that the source's declares for all pictures.

    ISO/IEC 14496-15, 8.3.3.1; AV1 in ISOBMFF, 2.3.4.
    """
    if made.type == "av1C":
        kept, ours = (
            [unit for kind, unit in obus(bytes(box["configOBUs"])) if (kind == _METADATA) is mine]
            for box, mine in ((made, False), (source, True))
        )
        return made.replace(configOBUs=b"".join((*kept, *ours)))
    sei = _FAMILIES["hevc"].sei
    kept, ours = (
        [array for array in box["arrays"] if (array["NAL_unit_type"] in sei) is mine]
        for box, mine in ((made, False), (source, True))
    )
    return made.replace(arrays=[*kept, *ours])


def _without_messages(sample: bytes, family: _NalFamily) -> Iterator[bytes]:
    """Units of an encoder; of its messages only those on its coding.

    Not its name and settings: those of another file by the same encoder are the same bytes, and
    would look like a trace of what was removed.
    """
    for unit in nal_units(sample, 4):
        if family.kind(unit) in family.sei:
            kinds = {kind for kind, _ in sei_messages(unit[family.header :])}
            if not kinds <= family.of_coding:
                continue
        elif family.kind(unit) == family.rpu:
            continue
        yield unit
