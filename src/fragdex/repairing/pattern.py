"""What a good file of the same camera says of samples that are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.fragments.table import SampleTable
from fragdex.indexing.access import family_of
from fragdex.indexing.codecs import RATES, Missing, aac_config, body, decoder_config
from fragdex.muxing.elementary_stream import parameter_sets
from fragdex.record import record
from fragdex.repairing.av1 import Av1
from fragdex.repairing.avc import Avc
from fragdex.repairing.between import MOST_PACKET, Even, Opus, first_samples, run_heads
from fragdex.repairing.flac import Flac, stream_info
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.rates import Gpmf
from fragdex.repairing.sound import Aac, Ac3, MpegAudio
from fragdex.repairing.syntax import HOLE, Syntax, Window
from fragdex.repairing.vp9 import HEAD, Vp9
from fragdex.repairing.vvc import Vvc
from fragdex.seeking.model import Track
from fragdex.sources import Source

LOOKED_AT: Final = 256
"""Samples of the good file on which a syntax is tried."""
LEAST_LOOKED_AT: Final = 64
LOOKED_AT_BYTES: Final = 4 << 20
"""Fewer of large samples: as many as fit into so many bytes, and no fewer than these."""
LARGE: Final = 1 << 20
MUCH: Final = 8
"""Bytes that a sample may have, and times as many as the largest of the good file."""
MOST_HEADS: Final = 1 << 16
"""Packets of Opus of the good file whose first bytes are looked at."""


@record(frozen=True, slots=True)
class Pattern:
    """A track of the good file.

    Attributes:
        duration: ticks of most of its samples.
        steady: whether all but the last have this duration.
        delay: ticks from the first decode time to the first composition time.
        negative: whether it has composition offsets below 0.
    """

    track: Track
    trak: Box
    duration: int
    steady: bool
    delay: int
    negative: bool = False

    @property
    def media_time(self) -> int:
        """What the edit list takes off at the start, in ticks."""
        return _media_time(self.track)


def _media_time(track: Track) -> int:
    return next((e.media_time for e in track.info.edits if e.media_time >= 0), 0)


def pattern_of(track: Track, trak: Box) -> Pattern:
    """What the times of a good track say."""
    samples = first_samples(track) if track.sample_count else SampleTable.empty()
    if not len(samples):
        return Pattern(track, trak, _default_duration(track), False, _media_time(track))
    durations = samples.duration[:-1] if len(samples) > 1 else samples.duration
    values, counts = np.unique(durations, return_counts=True)
    most = int(values[counts.argmax()])
    delay = int(samples.cts.min() - samples.dts[0])
    steady = bool((durations == most).all())
    return Pattern(track, trak, most, steady, delay, bool((samples.cts < samples.dts).any()))


AAC_FRAME: Final = 1024
"""Samples of a frame of AAC (ISO/IEC 14496-3, 4.5.2.1)."""
GUESSED_RATE: Final = 25


def _default_duration(track: Track) -> int:
    """Ticks of a sample where no sample is there to say it."""
    info = track.info
    if info.defaults is not None and info.defaults.duration:
        return info.defaults.duration
    if track.kind == "audio" and info.sample_rate:
        return AAC_FRAME * track.timescale // info.sample_rate
    return track.timescale // GUESSED_RATE


def syntax_of(track: Track, trak: Box, source: Source, *, tried: bool = True) -> Syntax | str:
    """How samples of such a track are found, or why they cannot be.

    Args:
        tried: whether the syntax is tried on them, and learns of them.
    """
    info = track.info
    if track.is_encrypted():
        return "it is encrypted"
    stsd = trak.find("mdia/minf/stbl/stsd")
    if stsd is None or not stsd.children:
        return "the good file has no sample entry for it"
    samples = first_samples(track) if track.sample_count else SampleTable.empty()
    if not len(samples) and (tried or track.info.format == "Opus"):
        return "the good file has no samples of it"
    if len(samples) and not samples.size.any():
        return "samples of the good file have no bytes"
    if len(samples) and (samples.size == samples.size[0]).all() and track.kind == "audio":
        framed = _sound(track, stsd.children[0])
        if framed is None or not isinstance(framed, (MpegAudio, Ac3, Flac)):
            return Even(samples)
    if info.format == "Opus":
        return Opus(samples, _heads(samples, source, MOST_PACKET))
    if info.format == "vp09":
        return _vp9(samples, source)
    syntax: Syntax | None = Gpmf() if info.format == "gpmd" else None
    syntax = syntax or _video(track, stsd.children) or _sound(track, stsd.children[0])
    if syntax is None:
        return f"how samples of {info.codec or info.format!r} end is not known here"
    if not tried:
        return syntax
    if isinstance(syntax, Aac):
        places = samples.offset[samples.size > 0][:MOST_HEADS].tolist()
        firsts = (source.read_up_to(ByteRange.of(at, 1)) for at in places)
        syntax.leads = {first[0] >> 5 for first in firsts if first}
    if isinstance(syntax, NalUnits):
        syntax.open_sync = marks_open_pictures(syntax, track, source)
    wrong = _misread(syntax, samples, source)
    if wrong:
        return f"{wrong} of its samples in the good file are not as its codec says"
    return syntax


def _heads(samples: SampleTable, source: Source, most: int) -> Iterator[bytes]:
    """The first bytes of the first samples."""
    pairs = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
    for at, size in islice(pairs, MOST_HEADS):
        yield source.read_up_to(ByteRange.of(at, min(size, most)))


def _vp9(samples: SampleTable, source: Source) -> Syntax | str:
    if not len(samples):
        return "the good file has no samples of it"
    syntax = Vp9(samples, list(_heads(samples, source, HEAD)))
    window = Window(source, int((samples.offset + samples.size).max()))
    ends = samples.offset + samples.size
    heads = run_heads(samples.offset, samples.size)
    chunks = zip(heads.tolist(), [*heads[1:].tolist(), len(samples)], strict=True)
    for first, stop in islice(chunks, LOOKED_AT):
        start, end = int(samples.offset[first]), int(ends[stop - 1])
        sizes = syntax.split(window, start, end, lambda count: True)
        if sizes != samples.size[first:stop].tolist():
            return "its frames in the good file do not begin alike, and nothing says where they end"
    return syntax


def _video(track: Track, entries: Any) -> Syntax | None:
    family = family_of(track.info.format)
    kinds: dict[str, type[Avc | Hevc | Vvc]] = {"avc": Avc, "hevc": Hevc, "vvc": Vvc}
    if family in kinds:
        syntax = kinds[family](track.info.nal_length_size or 4)
        for entry in entries:
            for unit in parameter_sets(entry):
                syntax.learn(unit)
        return syntax
    if track.info.format == "av01":
        box = entries[0].find("av1C")
        return Av1(b"" if box is None else body(box)[4:])
    return None


def _sound(track: Track, entry: Box) -> Syntax | None:
    info = track.info
    if info.format in ("ac-3", "ec-3"):
        return Ac3()
    if info.format == "fLaC":
        box = entry.find("dfLa")
        stream = None if box is None else stream_info(body(box)[4:])
        return None if stream is None else Flac(stream)
    if info.format in (".mp3", "ms\0U") or info.codec in ("mp4a.6B", "mp4a.69"):
        return MpegAudio(None)
    if (info.codec or "").startswith("mp4a.40.") or info.codec in ("mp4a.66", "mp4a.67"):
        for path in ("esds", "wave/esds"):
            for box in entry.find_all(path):
                try:
                    _, _, specific = decoder_config(body(box)[4:])
                    config = aac_config(specific)
                    kind, index = specific[0] >> 3, (specific[0] & 7) << 1 | specific[1] >> 7
                except (Missing, IndexError):
                    continue
                # AAC-LC, with or without SBR and PS
                is_known = kind in (2, 5, 29) and index < len(RATES)
                return Aac(index, config.channel_configuration) if is_known else None
    return None


def marks_open_pictures(syntax: Syntax, track: Track, source: Source) -> bool:
    """Whether a file marks pictures sync that are not sync samples by their types."""
    samples = first_samples(track)
    window = Window(source, int((samples.offset + samples.size).max()))
    for row in np.flatnonzero(samples.sync)[:LOOKED_AT].tolist():
        at = int(samples.offset[row])
        sample = syntax.find(window, at, at + int(samples.size[row]))
        if sample is not None and not sample.sync:
            return True
    return False


def _misread(syntax: Syntax, samples: SampleTable, source: Source) -> int:
    """Samples of the good file whose end the syntax does not find."""
    wrong = 0
    size = source.size or int((samples.offset + samples.size).max())
    window = Window(source, size)
    few = max(LEAST_LOOKED_AT, int(np.searchsorted(np.cumsum(samples.size), LOOKED_AT_BYTES)))
    tried = samples.rows(slice(0, min(few, LOOKED_AT)))
    for start, length in zip(tried.offset.tolist(), tried.size.tolist(), strict=True):
        ends = {sample.stop: sample for sample in syntax.finds(window, start, size)}
        sample = ends.get(start + length)
        wrong += sample is None
        if sample is not None:
            syntax.study(window, start, sample)
            syntax.accept(sample)
            if not syntax.holes and window.find(HOLE, start, start + length) is not None:
                syntax.holes = True
    syntax.interrupted()
    syntax.learned = True
    syntax.most = min(syntax.most, max(LARGE, MUCH * int(samples.size.max(initial=0))))
    return wrong if wrong * 50 > len(tried) else 0
