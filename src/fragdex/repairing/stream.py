"""What a stream says of itself, where no other file does: its codecs, its sound, and its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.indexing import avc_sets, hevc_sets
from fragdex.indexing.codecs import CHANNELS, RATES
from fragdex.indexing.making import index
from fragdex.muxing.movie import traks_of
from fragdex.record import record
from fragdex.repairing import avc, hevc, vvc
from fragdex.repairing.avc import Avc
from fragdex.repairing.between import run_heads
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.media_data import Stretch
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import AAC_FRAME, Pattern
from fragdex.repairing.rates import (
    MOST_RATE,
    USUAL,
    Gpmf,
    Rate,
    moments_in,
    rate_between,
    rate_of_stamps,
    rates_of,
    stamps_of,
)
from fragdex.repairing.sound import DSE, ELEMENTS, END, FIL, Aac
from fragdex.repairing.syntax import FoundSample, Window
from fragdex.repairing.vvc import Vvc
from fragdex.repairing.walk import FoundSamples, UnclaimedBytes, Walk, broken_rows, order_begins
from fragdex.sources import Source

SEARCHED: Final = 1 << 24
"""Bytes of media data in which parameter sets are looked for."""
IN_A_ROW: Final = 3
"""Samples that have to follow one another where parameter sets are believed."""
FRAMES_IN_A_ROW: Final = 12
"""The same where they are believed with sound: its frames and pictures."""
MOST_TRIED: Final = 64
"""Places at which sound is tried."""
_BANDS: Final = (4, 5, 6, 8, 0, 2, 11)
"""samplingFrequencyIndex: one of each sort of scale factor bands, frequent ones first."""
_ALIKE: Final = {4: (3, 4), 6: (6, 7), 8: (8, 9, 10), 0: (0, 1), 11: (11, 12)}
"""Those that cannot be told apart by the syntax of frames."""
_CONFIGURATIONS: Final = (1, 2, 3, 4, 5, 6, 7)

_FIRST_SETS: Final[tuple[tuple[type[NalUnits], tuple[int, ...]], ...]] = (
    (Avc, (avc.SPS,)),
    (Hevc, (hevc.VPS, hevc.SPS)),
    (Vvc, (vvc.VPS, vvc.SPS)),
)
"""Parameter sets with which a stream may begin."""


@record(slots=True)
class Sound:
    """Sound of AAC that no file has described.

    Attributes:
        syntax: of its frames.
        rate_index: samplingFrequencyIndex of some that have the same syntax.
        configuration: channelConfiguration.
    """

    syntax: Aac
    rate_index: int
    configuration: int

    @property
    def indexes(self) -> tuple[int, ...]:
        """Each samplingFrequencyIndex that it may have."""
        return _ALIKE.get(self.rate_index, (self.rate_index,))

    def index_at(self, pace: Fraction) -> int:
        """The samplingFrequencyIndex that is nearest to so many frames a second."""
        return min(self.indexes, key=lambda one: abs(Fraction(RATES[one], AAC_FRAME) - pace))


@record(slots=True)
class Stream:
    """What stands in media data, as far as they say it.

    Attributes:
        pictures: with the parameter sets that stand among them.
        sound: what stands between them; None: it is of no known kind.
        telemetry: of cameras.
    """

    pictures: NalUnits
    sound: Sound | None = None
    telemetry: Gpmf = field(default_factory=Gpmf)

    def lanes(self) -> list[FoundSamples]:
        """A lane each for pictures, telemetry, and sound if there is any."""
        sound = [] if self.sound is None else [FoundSamples(self.sound.syntax)]
        return [FoundSamples(self.pictures), FoundSamples(self.telemetry), *sound]


def stream_in(source: Source, stretches: Sequence[Stretch]) -> Stream | None:
    """AVC, HEVC or VVC whose parameter sets stand among the samples; None: there are none."""
    tried = 0
    for stretch in stretches:
        if stretch.kind not in ("mdat", ""):
            continue
        window = Window(source, stretch.stop, cut=stretch.cut)
        data = window.take(stretch.start, SEARCHED)
        for kind, wanted in _FIRST_SETS:
            for place in kind().starts(data):
                head = data[place + 4 : place + 6]
                if len(head) < 2 or kind.type_of(head) not in wanted:
                    continue
                stream, at = Stream(kind()), stretch.start + place
                first = stream.pictures.find(window, at, stretch.stop)
                if first is None:
                    continue
                believed = Walk(stream.lanes()).follows(window, at, IN_A_ROW)
                if not believed and tried < MOST_TRIED:
                    tried += 1
                    stream.sound = _sound_at(stream, window, first.stop)
                if believed or stream.sound is not None:
                    _study(stream, source, stretch, at)
                    return stream
    return None


def _sound_at(stream: Stream, window: Window, at: int) -> Sound | None:
    """Sound that begins here, as far as its frames and the pictures after them follow."""
    head = window.take(at, 1)
    kind = head[0] >> 5 if head else END
    for rate_index in _BANDS:
        for configuration in _CONFIGURATIONS:
            if kind not in (ELEMENTS[configuration][0], DSE, FIL):
                continue
            sound = Sound(Aac(rate_index, configuration), rate_index, configuration)
            sound.syntax.leads = {ELEMENTS[configuration][0], DSE, FIL}
            frame = sound.syntax.find(window, at, window.stop)
            if frame is None or (window.cut and frame.stop == window.stop):
                continue  # nothing follows a frame that ends where the file was cut off
            trial = Stream(stream.pictures, sound, stream.telemetry)
            if Walk(trial.lanes()).follows(window, at, FRAMES_IN_A_ROW):
                return sound
    return None


def _study(stream: Stream, source: Source, stretch: Stretch, at: int) -> None:
    """Find sound, and learn what stands in front of pictures that directly follow a sample."""
    window = Window(source, min(stretch.stop, at + SEARCHED), cut=True)
    lanes, lost = _walked(stream, window, at)
    for one in [] if stream.sound is not None else lost[:MOST_TRIED]:
        # the last picture before sound is not confirmed by anything yet
        picture = stream.pictures.find(window, one.start, one.stop)
        stream.sound = _sound_at(stream, window, one.start if picture is None else picture.stop)
        if stream.sound is not None:
            lanes, lost = _walked(stream, window, at)
            break
    ends = {at + size for lane in lanes for at, size in zip(lane.offset, lane.size, strict=True)}
    for start, size in zip(lanes[0].offset, lanes[0].size, strict=True):
        if start in ends:
            stream.pictures.study(window, start, FoundSample(start + size))
    stream.telemetry = Gpmf()
    for lane in lanes:
        lane.syntax.interrupted()
        lane.syntax.spent = 0


def _walked(
    stream: Stream, window: Window, at: int
) -> tuple[list[FoundSamples], list[UnclaimedBytes]]:
    walk = Walk(stream.lanes(), others=True)
    for _ in walk.over(window, at):
        pass
    return walk.lanes, walk.lost


def rate_in(syntax: NalUnits) -> Rate | None:
    """Pictures a second that a parameter set says (VUI; of HEVC, the VPS as well), or None.

    Where pictures of AVC need not last equally long, it says the most that there may be.
    """
    clocks = [
        (one.ticks, 2, one.steady) if isinstance(one, avc_sets.Sps) else (one.ticks, 1, True)
        for one in syntax.sets.values()
        if isinstance(one, avc_sets.Sps | hevc_sets.Sps)
    ]
    if isinstance(syntax, hevc.Hevc):
        video = (unit for (kind, _), unit in syntax.raw.items() if kind == hevc.VPS)
        clocks += [(hevc_sets.ticks_of_vps(unit), 1, True) for unit in video]
    for ticks, fields, steady in clocks:
        if ticks is None:
            continue
        rate = Rate(Fraction(ticks[1], fields * ticks[0]), "parameter sets")
        if not steady:
            rate = replace(rate, low=Fraction(0))
            if not any(Rate(one, "").fits(Rate(rate.value, "")) for one in USUAL):
                return None  # of a clock alone
        return rate if 1 <= rate.value <= MOST_RATE else None
    return None


def rates_in(
    source: Source,
    stream: Stream,
    lanes: Sequence[FoundSamples],
    lost: Sequence[UnclaimedBytes],
) -> list[Rate]:
    """Pictures a second as the stream says, those first that are believed first."""
    pictures, payloads, *sound = lanes
    offsets = np.array(pictures.offset, np.int64)
    parts = (
        ByteRange.of(at, size) for at, size in zip(payloads.offset, payloads.size, strict=True)
    )
    holes = sorted(one.start for one in lost if one.lasts)
    rates = [
        rate_in(stream.pictures),
        rate_of_timestamps(source, stream.pictures, pictures),
        *rates_of(moments_in(source, parts), offsets, holes),
    ]
    if stream.sound is not None:
        rates.append(_rate_of_sound(stream.sound, sound[0], offsets))
    return [one for one in rates if one is not None]


def rate_of_timestamps(source: Source, syntax: NalUnits, lane: FoundSamples) -> Rate | None:
    """Pictures a second that the clock timestamps of found pictures count."""
    return rate_of_clock(
        source, syntax, lane.offset, lane.order, order_begins(lane), broken_rows(lane)
    )


def rate_of_clock(
    source: Source,
    syntax: NalUnits,
    offsets: Sequence[int],
    order: Sequence[int],
    begins: Int64,
    breaks: Sequence[int],
) -> Rate | None:
    """Pictures a second that clock timestamps count; None: there are none, or they do not say it.

    Args:
        offsets: where pictures begin, in decode order.
        order: of each its number in the order in which they are shown, which begins again at
            the rows `begins`.
        breaks: rows before which pictures are missing, and the first one.
    """
    stamps = stamps_of(syntax, source, offsets)
    if not stamps:
        return None
    part = np.searchsorted(begins, np.arange(len(stamps)), side="right")
    ranked = np.lexsort((np.array(order[: len(stamps)], np.int64), part))
    run_of = np.searchsorted(breaks, ranked, side="right")
    return rate_of_stamps(
        [[stamps[row] for row in ranked[run_of == run]] for run in np.unique(run_of)]
    )


def _rate_of_sound(sound: Sound, lane: FoundSamples, pictures: Int64) -> Rate | None:
    """Pictures a second at the one rate of sound with which that is usual; None: there is none."""
    offset = np.array(lane.offset, np.int64)
    heads = run_heads(offset, np.array(lane.size, np.int64)) if len(offset) else offset
    numbers = np.searchsorted(pictures, offset[heads]).tolist()
    rates = []
    for one in sound.indexes:
        times = [Fraction(row * AAC_FRAME, RATES[one]) for row in heads.tolist()]
        rate = rate_between(numbers, times, f"frames of sound (at {RATES[one]:,} Hz)")
        if rate is not None and rate.value in USUAL:
            rates.append(rate)
    return rates[0] if len(rates) == 1 else None


# A moov for what a stream says of itself: sample entries of its parameter sets.

MOVIE_SCALE: Final = 1000
LEAST_SCALE: Final = 10_000


def movie_of(
    syntax: NalUnits, rate: Fraction, sound: tuple[int, int] | None = None
) -> tuple[list[Box], list[Pattern]]:
    """Ftyp and moov of a video track and one of sound, without samples, and what they say.

    Args:
        sound: samplingFrequencyIndex and channelConfiguration of AAC; None: no sound.
    """
    factor = -(-LEAST_SCALE // rate.numerator)
    timescale, duration = rate.numerator * factor, rate.denominator * factor
    entries = {Avc: _avc_entry, Hevc: _hevc_entry, Vvc: _vvc_entry}
    entry = entries[type(syntax)](syntax)
    wide, high = int(entry["width"]) << 16, int(entry["height"]) << 16
    tkhd = make_box("tkhd", flags=3, track_ID=1, width=wide, height=high)
    traks = [_trak(tkhd, timescale, "vide", make_box("vmhd", flags=1), entry)]
    if sound is not None:
        tkhd = make_box("tkhd", flags=3, track_ID=2, volume=0x0100, alternate_group=1)
        hertz = RATES[sound[0]]
        traks.append(_trak(tkhd, hertz, "soun", make_box("smhd"), _aac_entry(*sound)))
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


def _trak(tkhd: Box, timescale: int, kind: str, header: Box, entry: Box) -> Box:
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
    return make_box("trak", children=[tkhd, make_box("mdia", children=media)])


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


def _units(syntax: NalUnits, wanted: int) -> tuple[int, bytes]:
    """The parameter sets of a type: how many, and all of them after their lengths."""
    units = [unit for (kind, _), unit in syntax.raw.items() if kind == wanted]
    return len(units), b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)


def _arrays(syntax: NalUnits, kinds: Sequence[int]) -> bytes:
    """Arrays of parameter sets, as records of HEVC and VVC end (ISO/IEC 14496-15, 8.3.3.1)."""
    data = bytes([len(kinds)])
    for kind in kinds:
        count, units = _units(syntax, kind)
        data += bytes([kind]) + count.to_bytes(2, "big") + units
    return data


def _avc_entry(syntax: NalUnits) -> Box:
    count, sets = _units(syntax, avc.SPS)
    pictures, picture_sets = _units(syntax, avc.PPS)
    sps = next(one for one in syntax.sets.values() if isinstance(one, avc_sets.Sps))
    data = b"\1" + sps.identity + bytes([0xFC | syntax.length_size - 1, 0xE0 | count]) + sets
    data += bytes([pictures]) + picture_sets
    # parameter sets stand in samples too
    return _entry("avc3", "avcC", data, sps.width, sps.height)


def _hevc_entry(syntax: NalUnits) -> Box:
    sps = next(one for one in syntax.sets.values() if isinstance(one, hevc_sets.Sps))
    depths = bytes(0xF8 | depth - 8 for depth in sps.depths)
    data = b"\1" + sps.profile + b"\xf0\0\xfc" + bytes([0xFC | sps.chroma]) + depths + b"\0\0"
    data += bytes([sps.sub_layers << 3 | 4 | syntax.length_size - 1])
    data += _arrays(syntax, (hevc.VPS, hevc.SPS, hevc.PPS))
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
    kinds = [kind for kind in (vvc.VPS, vvc.SPS, vvc.PPS) if _units(syntax, kind)[0]]
    data += _arrays(syntax, kinds)
    return _entry("vvi1", "vvcC", data, sps.width, sps.height)


def _entry(code: str, config: str, data: bytes, width: int, height: int) -> Box:
    box = parse_box((len(data) + 8).to_bytes(4, "big") + config.encode() + data)
    return make_box(code, parent="stsd", width=width, height=height, children=[box])
