"""A moov without any film that is like it: what parameter sets among the samples say."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from fragdex.boxes import Box, build, find, make_box, parse_box
from fragdex.formats.clip_movie import traks_of
from fragdex.indexing.making import index
from fragdex.repairing import avc, hevc
from fragdex.repairing.avc import Avc
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.media_data import Stretch
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import Pattern
from fragdex.repairing.syntax import Window
from fragdex.sources import Source

SEARCHED: Final = 1 << 24
"""Bytes of media data in which parameter sets are looked for."""
IN_A_ROW: Final = 3
"""Samples that have to follow one another where parameter sets are believed."""
MOVIE_SCALE: Final = 1000
LEAST_SCALE: Final = 10_000


def syntax_in(source: Source, stretches: Sequence[Stretch]) -> NalUnits | None:
    """AVC or HEVC whose parameter sets stand among the samples; None: there are none."""
    for stretch in stretches:
        if stretch.kind not in ("mdat", ""):
            continue
        window = Window(source, stretch.stop, cut=stretch.cut)
        data = window.take(stretch.start, SEARCHED)
        for kind, wanted in ((Avc, (avc.SPS,)), (Hevc, (hevc.VPS, hevc.SPS))):
            for place in kind().starts(data):
                head = data[place + 4 : place + 5]
                if not head or _type(kind, head[0]) not in wanted:
                    continue
                made: NalUnits = kind()
                at = stretch.start + place
                for _ in range(IN_A_ROW):
                    found = made.find(window, at, stretch.stop)
                    if found is None:
                        break
                    at = found.stop
                    if at == stretch.stop:
                        return made
                else:
                    return made
    return None


def _type(kind: type[NalUnits], head: int) -> int:
    bits = kind.type_bits
    return (head & bits) >> (bits & -bits).bit_length() - 1


def rate_in(syntax: NalUnits) -> Fraction | None:
    """Pictures a second that a parameter set says (VUI), or None."""
    for found in syntax.sets.values():
        if isinstance(found, avc.Sps) and found.ticks is not None:
            rate = Fraction(found.ticks[1], 2 * found.ticks[0])
            return rate if 1 <= rate <= 1000 else None
    return None


def movie_of(syntax: NalUnits, rate: Fraction) -> tuple[list[Box], Pattern]:
    """Ftyp and moov of one video track without samples, and what it says.

    Args:
        syntax: with its parameter sets.
        rate: pictures a second.
    """
    factor = -(-LEAST_SCALE // rate.numerator)
    timescale, duration = rate.numerator * factor, rate.denominator * factor
    entry = _avc_entry(syntax) if isinstance(syntax, Avc) else _hevc_entry(syntax)
    tables = [
        make_box("stsd", children=[entry]),
        *(make_box(kind) for kind in ("stts", "stsc", "stsz", "stco")),
    ]
    here = make_box("dinf", children=[make_box("dref", children=[make_box("url ", flags=1)])])
    inner = [make_box("vmhd", flags=1), here, make_box("stbl", children=tables)]
    media = [
        make_box("mdhd", timescale=timescale, language=_UNDETERMINED),
        make_box("hdlr", handler_type="vide", name="VideoHandler"),
        make_box("minf", children=inner),
    ]
    wide, high = int(entry["width"]) << 16, int(entry["height"]) << 16
    trak = make_box(
        "trak",
        children=[
            make_box("tkhd", flags=3, track_ID=1, width=wide, height=high),
            make_box("mdia", children=media),
        ],
    )
    moov = make_box(
        "moov", children=[make_box("mvhd", timescale=MOVIE_SCALE, next_track_ID=2), trak]
    )
    ftyp = make_box(
        "ftyp", major_brand="isom", minor_version=512, compatible_brands=("isom", "iso2", "mp41")
    )
    boxes = [ftyp, moov]
    track = index(b"".join(map(build, boxes))).track(1)
    found = find(boxes, "moov")
    assert found is not None
    return boxes, Pattern(track, traks_of(boxes)[1], duration, True, 0)


_UNDETERMINED: Final = 0x55C4
"""The language und, five bits a letter (8.4.2.3)."""


def _avc_entry(syntax: NalUnits) -> Box:
    sets = [unit for (kind, _), unit in syntax.raw.items() if kind == avc.SPS]
    pictures = [unit for (kind, _), unit in syntax.raw.items() if kind == avc.PPS]
    sps = next(one for one in syntax.sets.values() if isinstance(one, avc.Sps))
    data = b"\1" + sps.identity + bytes([0xFC | syntax.length_size - 1, 0xE0 | len(sets)])
    data += b"".join(len(unit).to_bytes(2, "big") + unit for unit in sets)
    data += bytes([len(pictures)])
    data += b"".join(len(unit).to_bytes(2, "big") + unit for unit in pictures)
    # parameter sets stand in samples too
    return _entry("avc3", "avcC", data, sps.width, sps.height)


def _hevc_entry(syntax: NalUnits) -> Box:
    sps = next(one for one in syntax.sets.values() if isinstance(one, hevc.Sps))
    depths = bytes(0xF8 | depth - 8 for depth in sps.depths)
    data = b"\1" + sps.profile + b"\xf0\0\xfc" + bytes([0xFC | sps.chroma]) + depths + b"\0\0"
    data += bytes([sps.sub_layers << 3 | 4 | syntax.length_size - 1])
    kinds = (hevc.VPS, hevc.SPS, hevc.PPS)
    data += bytes([len(kinds)])
    for wanted in kinds:
        units = [unit for (kind, _), unit in syntax.raw.items() if kind == wanted]
        data += bytes([wanted]) + len(units).to_bytes(2, "big")
        data += b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)
    return _entry("hev1", "hvcC", data, sps.width, sps.height)


def _entry(code: str, config: str, data: bytes, width: int, height: int) -> Box:
    box = parse_box((len(data) + 8).to_bytes(4, "big") + config.encode() + data)
    return make_box(code, parent="stsd", width=width, height=height, children=[box])
