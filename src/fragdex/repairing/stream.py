"""What a stream says of itself, where no other file does: its codecs, its sound, and its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.indexing.codecs import RATES
from fragdex.repairing import avc, hevc, vvc
from fragdex.repairing.avc import Avc
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.media_data import Stretch
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import AAC_FRAME
from fragdex.repairing.rates import MOST_RATE, USUAL, Rate, rate_between
from fragdex.repairing.sound import DSE, ELEMENTS, END, FIL, Aac
from fragdex.repairing.syntax import Found, Window
from fragdex.repairing.telemetry import Gpmf, moments_in, rates_of
from fragdex.repairing.timestamps import rate_of_stamps, stamps_of
from fragdex.repairing.vvc import Vvc
from fragdex.repairing.walk import Lane, Lost, Walk, broken_rows, order_begins
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


@dataclass(slots=True)
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
        """The samplingFrequencyIndex that is nearest to so many frames a second.

        >>> RATES[Sound(Aac(4, 2), 4, 2).index_at(Fraction(47))]
        48000
        """
        return min(self.indexes, key=lambda one: abs(Fraction(RATES[one], AAC_FRAME) - pace))


@dataclass(slots=True)
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

    def lanes(self) -> list[Lane]:
        """A lane each for pictures, telemetry, and sound if there is any."""
        sound = [] if self.sound is None else [Lane(self.sound.syntax)]
        return [Lane(self.pictures), Lane(self.telemetry), *sound]


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
            if sound.syntax.find(window, at, window.stop) is None:
                continue
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
            stream.pictures.study(window, start, Found(start + size))
    stream.telemetry = Gpmf()
    for lane in lanes:
        lane.syntax.interrupted()
        lane.syntax.spent = 0


def _walked(stream: Stream, window: Window, at: int) -> tuple[list[Lane], list[Lost]]:
    walk = Walk(stream.lanes(), others=True)
    for _ in walk.over(window, at):
        pass
    return walk.lanes, walk.lost


def rate_in(syntax: NalUnits) -> Rate | None:
    """Pictures a second that a parameter set says (VUI; of HEVC, the VPS as well), or None.

    Where pictures of AVC need not last equally long, it says the most that there may be.
    """
    clocks = [
        (one.ticks, 2, one.steady) if isinstance(one, avc.Sps) else (one.ticks, 1, True)
        for one in syntax.sets.values()
        if isinstance(one, avc.Sps | hevc.Sps)
    ]
    if isinstance(syntax, hevc.Hevc):
        video = (unit for (kind, _), unit in syntax.raw.items() if kind == hevc.VPS)
        clocks += [(hevc.ticks_of_vps(unit), 1, True) for unit in video]
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
    lanes: Sequence[Lane],
    lost: Sequence[Lost],
) -> list[Rate]:
    """Pictures a second as the stream says, those first that are believed first.

    Args:
        lanes: `Stream.lanes`, with their samples.
        lost: what is in none of them.
    """
    pictures, payloads, *sound = lanes
    offsets = np.array(pictures.offset, np.int64)
    parts = (
        ByteRange.of(at, size) for at, size in zip(payloads.offset, payloads.size, strict=True)
    )
    holes = sorted(one.start for one in lost if one.lasts)
    said = [
        rate_in(stream.pictures),
        rate_of_timestamps(source, stream.pictures, pictures),
        *rates_of(moments_in(source, parts), offsets, holes),
    ]
    if stream.sound is not None:
        said.append(_rate_of_sound(stream.sound, sound[0], offsets))
    return [one for one in said if one is not None]


def rate_of_timestamps(source: Source, syntax: NalUnits, lane: Lane) -> Rate | None:
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


def _rate_of_sound(sound: Sound, lane: Lane, pictures: Int64) -> Rate | None:
    """Pictures a second at the one rate of sound with which that is usual; None: there is none."""
    offset = np.array(lane.offset, np.int64)
    before = offset[:-1] + np.array(lane.size, np.int64)[:-1]
    heads = np.append(0, np.flatnonzero(offset[1:] != before) + 1) if len(offset) else offset
    numbers = np.searchsorted(pictures, offset[heads]).tolist()
    rates = []
    for one in sound.indexes:
        times = [Fraction(row * AAC_FRAME, RATES[one]) for row in heads.tolist()]
        rate = rate_between(numbers, times, f"frames of sound (at {RATES[one]:,} Hz)")
        if rate is not None and rate.value in USUAL:
            rates.append(rate)
    return rates[0] if len(rates) == 1 else None
