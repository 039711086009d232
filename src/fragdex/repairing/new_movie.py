"""A moov for what a stream says of itself: sample entries of its parameter sets."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.formats.clip_movie import traks_of
from fragdex.indexing.codecs import CHANNELS, RATES
from fragdex.indexing.making import index
from fragdex.repairing import avc, hevc, vvc
from fragdex.repairing.avc import Avc
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import AAC_FRAME, Pattern
from fragdex.repairing.vvc import Vvc

MOVIE_SCALE: Final = 1000
LEAST_SCALE: Final = 10_000


def movie_of(
    syntax: NalUnits, rate: Fraction, sound: tuple[int, int] | None = None
) -> tuple[list[Box], list[Pattern]]:
    """Ftyp and moov of a video track and one of sound, without samples, and what they say.

    Args:
        syntax: with its parameter sets.
        rate: pictures a second.
        sound: samplingFrequencyIndex and channelConfiguration of AAC; None: no sound.
    """
    factor = -(-LEAST_SCALE // rate.numerator)
    timescale, duration = rate.numerator * factor, rate.denominator * factor
    if isinstance(syntax, Vvc):
        entry = _vvc_entry(syntax)
    else:
        entry = _avc_entry(syntax) if isinstance(syntax, Avc) else _hevc_entry(syntax)
    wide, high = int(entry["width"]) << 16, int(entry["height"]) << 16
    traks = [
        _trak(
            make_box("tkhd", flags=3, track_ID=1, width=wide, height=high),
            _mdia(timescale, "vide", make_box("vmhd", flags=1), entry),
        )
    ]
    if sound is not None:
        traks.append(
            _trak(
                make_box("tkhd", flags=3, track_ID=2, volume=0x0100, alternate_group=1),
                _mdia(RATES[sound[0]], "soun", make_box("smhd"), _aac_entry(*sound)),
            )
        )
    mvhd = make_box("mvhd", timescale=MOVIE_SCALE, next_track_ID=len(traks) + 1)
    moov = make_box("moov", children=[mvhd, *traks])
    ftyp = make_box(
        "ftyp", major_brand="isom", minor_version=512, compatible_brands=("isom", "iso2", "mp41")
    )
    boxes = [ftyp, moov]
    known = index(b"".join(map(build, boxes)))
    durations = [duration, AAC_FRAME]
    return boxes, [
        Pattern(known.track(number), trak, durations[number - 1], True, 0)
        for number, trak in traks_of(boxes).items()
    ]


def _trak(tkhd: Box, mdia: Box) -> Box:
    return make_box("trak", children=[tkhd, mdia])


def _mdia(timescale: int, kind: str, header: Box, entry: Box) -> Box:
    tables = [
        make_box("stsd", children=[entry]),
        *(make_box(kind) for kind in ("stts", "stsc", "stsz", "stco")),
    ]
    here = make_box("dinf", children=[make_box("dref", children=[make_box("url ", flags=1)])])
    inner = [header, here, make_box("stbl", children=tables)]
    media = [
        make_box("mdhd", timescale=timescale, language=_UNDETERMINED),
        make_box("hdlr", handler_type=kind, name=_HANDLERS[kind]),
        make_box("minf", children=inner),
    ]
    return make_box("mdia", children=media)


_HANDLERS: Final = {"vide": "VideoHandler", "soun": "SoundHandler"}
_UNDETERMINED: Final = 0x55C4
"""The language und, five bits a letter (8.4.2.3)."""


def _aac_entry(rate_index: int, configuration: int) -> Box:
    specific = (2 << 11 | rate_index << 7 | configuration << 3).to_bytes(2, "big")
    decoder = b"\x40\x15" + bytes(11) + b"\x05" + bytes([len(specific)]) + specific
    stream = b"\0\0\0\x04" + bytes([len(decoder)]) + decoder + b"\x06\x01\x02"
    data = bytes(4) + b"\x03" + bytes([len(stream)]) + stream
    esds = parse_box((len(data) + 8).to_bytes(4, "big") + b"esds" + data)
    return make_box(
        "mp4a",
        parent="stsd",
        channelcount=CHANNELS[configuration],
        samplesize=16,
        samplerate=RATES[rate_index] << 16 if RATES[rate_index] < 1 << 16 else 0,
        children=[esds],
    )


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


def _vvc_entry(syntax: NalUnits) -> Box:
    """A VvcDecoderConfigurationRecord of the parameter sets (ISO/IEC 14496-15, 11.2.4.2)."""
    sps = next(one for one in syntax.sets.values() if isinstance(one, vvc.Sps))
    profile = sps.profile
    data = b"\0\0\0\0" + bytes([0xF8 | syntax.length_size - 1 << 1 | (profile is not None)])
    if profile is not None:
        value, bits = profile.constraints
        data += (sps.sub_layers << 4 | sps.chroma).to_bytes(2, "big")
        data += bytes([sps.depth - 8 << 5 | 31, bits + 2 >> 3])
        data += profile.head + (profile.marks << bits | value).to_bytes(bits + 2 >> 3, "big")
        if sps.sub_layers > 1:
            there = "".join(str(int(level is not None)) for level in profile.levels)
            data += bytes([int(there.ljust(8, "0"), 2)])
        data += bytes(level for level in profile.levels if level is not None)
        data += bytes([len(profile.parts)])
        data += b"".join(part.to_bytes(4, "big") for part in profile.parts)
        data += sps.width.to_bytes(2, "big") + sps.height.to_bytes(2, "big") + b"\0\0"
    arrays = [
        (wanted, [unit for (kind, _), unit in syntax.raw.items() if kind == wanted])
        for wanted in (vvc.VPS, vvc.SPS, vvc.PPS)
    ]
    arrays = [(wanted, units) for wanted, units in arrays if units]
    data += bytes([len(arrays)])
    for wanted, units in arrays:
        data += bytes([wanted]) + len(units).to_bytes(2, "big")
        data += b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)
    return _entry("vvi1", "vvcC", data, sps.width, sps.height)


def _entry(code: str, config: str, data: bytes, width: int, height: int) -> Box:
    box = parse_box((len(data) + 8).to_bytes(4, "big") + config.encode() + data)
    return make_box(code, parent="stsd", width=width, height=height, children=[box])
