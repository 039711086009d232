"""What a clip presents, held against its source: pictures, sound, and lengths in three readers.

Pictures and sound are those that FFmpeg decodes. It is asked for all samples of the source, whose
times our index knows; of the clip it presents what the edit list says.
"""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import av
import numpy as np

import fragdex
from fragdex.errors import BuildError, FragdexError, NoSyncSample
from fragdex.muxing.clip import clip
from fragdex.muxing.clip_span import Clip
from muxing.durations import presented
from muxing.timecoded import counter_at

FIXTURES = Path(__file__).parents[2] / "fixtures"
SUFFIXES = (".mp4", ".m4a", ".mov", ".ismv", ".f4v", ".3gp", ".3g2")
PATHS = sorted(
    path
    for path in [*FIXTURES.glob("*"), *(FIXTURES / "made").glob("*")]
    if path.suffix in SUFFIXES
)
LOSSLESS = ("alac", "fLaC", "sowt", "twos", "raw ", "ipcm", "fpcm", "lpcm", "in24", "ulaw")
EXACT, NOISY = 1e-6, 0.05
"""Sound may differ by so much of full scale: decoders of AAC, AC-3 and others make noise of their
own, from where they start on; the error of the whole span stays below a tenth of that."""


@dataclass
class Comparison:
    """What was compared, and what differs."""

    pictures: int = 0
    sound: int = 0
    samples: int = 0
    lengths: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Source:
    """A fixture, decoded once from its first to its last sample."""

    data: bytes
    index: fragdex.Index
    pictures: dict[int, list[tuple[Fraction, Fraction, str]]]
    sound: dict[int, tuple[int, int, np.ndarray]]


SHORT = Fraction(1, 4)


def digest(frame: av.VideoFrame) -> str:
    """Of the picture alone, whatever memory it lies in."""
    return hashlib.md5(frame.to_ndarray().tobytes()).hexdigest()


@lru_cache(maxsize=2)
def source_of(path: Path) -> Source | None:
    """None where nothing can be indexed."""
    data = path.read_bytes()
    try:
        index = fragdex.index(data, exact=True)
    except FragdexError:
        return None
    pictures, sound = {}, {}
    for track in index.tracks if len(index.periods) == 1 else ():
        if not track.sample_count or track.info.encryption:
            continue
        if track.kind == "video":
            decoded = decoded_pictures(data, track.id, ignore_editlist="1")
            samples = track.samples
            order = np.argsort(samples.cts, kind="stable").tolist()
            if decoded is None or len(decoded) != len(order):
                continue  # no decoder, or damaged
            times = [track.presentation(int(samples.cts[n])).fraction for n in order]
            lasts = [Fraction(int(samples.duration[n]), track.timescale) for n in order]
            rows = zip(times, lasts, (frame for _, frame in decoded), strict=True)
            pictures[track.id] = list(rows)
        elif track.kind == "audio":
            heard = decoded_sound(data, track.id)
            if heard is not None and not track.info.edits:
                # Without a tfdt FFmpeg counts from 0.
                late = track.presentation(int(track.samples.cts[0])).fraction
                heard = heard[0], round(late * heard[0]), heard[2]
            if heard is not None:
                sound[track.id] = heard
    return Source(data, index, pictures, sound)


def stream_of(container: av.container.InputContainer, track: int) -> av.stream.Stream | None:
    return next((s for s in container.streams if s.id == track), None)


def decoded_pictures(data: bytes, track: int, **options: str) -> list[tuple[Fraction, str]] | None:
    """Time and digest of each picture in order of presentation."""
    try:
        with av.open(io.BytesIO(data), options=options) as container:
            stream = stream_of(container, track)
            if stream is None or stream.type != "video":
                return None
            stream.codec_context.thread_count = 1
            return [
                (frame.pts * Fraction(frame.time_base), digest(frame))
                for frame in container.decode(stream)
            ]
    except (av.FFmpegError, ValueError):
        return None


def decoded_sound(data: bytes, track: int) -> tuple[int, int, np.ndarray] | None:
    """Rate, position of the first sample in presentation time, and all samples by channel."""
    parts = []
    try:
        with av.open(io.BytesIO(data)) as container:
            stream = stream_of(container, track)
            if stream is None or stream.type != "audio":
                return None
            rate = stream.codec_context.sample_rate
            for frame in container.decode(stream):
                values = frame.to_ndarray()
                if not frame.format.is_planar:
                    values = values.reshape(-1, frame.layout.nb_channels).T
                kind = values.dtype
                scale = 1 if kind.kind == "f" else 1 / np.iinfo(kind).max
                at = round(frame.pts * Fraction(frame.time_base) * frame.sample_rate)
                parts.append((at, values.astype(np.float64) * scale))
                rate = frame.sample_rate
    except (av.FFmpegError, ValueError):
        return None
    if not parts:
        return None
    first = min(at for at, _ in parts)
    length = max(at + values.shape[1] for at, values in parts) - first
    joined = np.full((parts[0][1].shape[0], length), np.nan)
    for at, values in parts:
        joined[:, at - first : at - first + values.shape[1]] = values
    return rate, first, joined


def spans(index: fragdex.Index, count: int, seed: str) -> Iterator[tuple[float, float]]:
    """The whole, its two halves, and others anywhere, down to one frame."""
    starts = [float(t.start) for t in index.tracks if t.start is not None]
    ends = [float(t.stop) for t in index.tracks if t.stop is not None]
    if not starts:
        return
    begin, end = min(starts), max(ends)
    middle = (begin + end) / 2
    yield from [(begin - 1, float("inf")), (begin, middle), (middle, end)][:count]
    draw = random.Random(seed)
    for number in range(count - 3):
        start = draw.uniform(begin, end)
        length = draw.uniform(0.02, 0.2) if number % 2 else draw.uniform(0.1, end - begin)
        yield round(start, 3), round(min(start + length, end + 0.1), 3) + 0.001


def compare(path: Path, count: int) -> Comparison:
    """Cut so many clips out of a fixture, and compare each of them."""
    result = Comparison()
    source = source_of(path)
    if source is None:
        return result
    data, index = source.data, source.index
    for start, stop in spans(index, count, path.name):
        try:
            got = clip(index, lambda part: bytes(data[part.start : part.stop]), start, stop)
        except NoSyncSample:
            continue
        except BuildError as error:
            # A span that several movies show is refused by name; each of them alone is not.
            if len(index.periods) < 2 or "several periods" not in str(error):
                raise
            continue
        out = b"".join(p if isinstance(p, bytes) else data[p.start : p.stop] for p in got.pieces)
        before = len(result.wrong)
        compare_one(source, got, out, result)
        result.wrong[before:] = [f"{path.name} {start}–{stop}: {w}" for w in result.wrong[before:]]
    return result


def compare_one(source: Source, got: Clip, out: bytes, result: Comparison) -> None:
    after = fragdex.index(out, exact=True, strict=True)
    compare_samples(source, got, after, out, result)
    if got.exact:
        compare_lengths(got, after, out, result)
    for track in after.tracks:
        if not got.exact or not track.sample_count:
            continue
        if track.id in source.pictures:
            compare_pictures(source, got, track, out, result)
        elif track.id in source.sound:
            compare_sound(source, got, track, out, result)


def compare_samples(
    source: Source, got: Clip, after: fragdex.Index, out: bytes, result: Comparison
) -> None:
    """Each sample's bytes are those of samples of the source that follow each other.

    The first one of a timecode track counts from the clip's start on.
    """
    for track in after.tracks:
        mine, whole = track.samples, []
        for theirs in (t.samples for t in source.index.tracks if t.id == track.id):
            rows = zip(theirs.offset, theirs.size, strict=True)
            whole += [source.data[at : at + size] for at, size in rows]
        part = [out[a : a + n] for a, n in zip(mine.offset, mine.size, strict=True)]
        result.samples += len(part)
        if track.kind == "timecode":
            wanted = counter_at(source.data, source.index, got.start)
            if not got.exact or counter_at(out, after, Fraction(0)) != wanted:
                result.wrong.append(f"track {track.id}: another timecode than {wanted}")
            part = part[1:]
        if not set(part) <= set(whole):
            result.wrong.append(f"track {track.id}: bytes that are no sample of the source")
        # Several edits take several stretches.
        elif len(track.info.edits) < 3 and not any(
            whole[n : n + len(part)] == part for n in range(len(whole))
        ):
            result.wrong.append(f"track {track.id}: samples do not follow each other")


def compare_lengths(got: Clip, after: fragdex.Index, out: bytes, result: Comparison) -> None:
    """Ours, a plain reader's, FFmpeg's, and what was promised."""
    result.lengths += 1
    wanted = float(got.stop - got.start)
    lengths = {"ours": after.duration, "plain": float(presented(out))}
    with av.open(io.BytesIO(out)) as container:
        if container.duration is not None:
            lengths["FFmpeg"] = container.duration / 1e6
    # FFmpeg counts in microseconds, and rounds both ends of each track to its own ticks.
    tick = 2 / min(track.timescale for track in after.tracks if track.sample_count) + 1e-6
    if any(length is None or abs(length - wanted) > tick for length in lengths.values()):
        result.wrong.append(f"lasts {wanted}, but {lengths}")


def compare_pictures(
    source: Source, got: Clip, track: fragdex.Track, out: bytes, result: Comparison
) -> None:
    # FFmpeg gives some pictures that are hidden, with times before 0.
    decoded = [row for row in decoded_pictures(out, track.id) or [] if row[0] >= 0]
    slack = Fraction(1, track.timescale) + Fraction(1, 1_000_000)
    original = next(t for t in source.index.tracks if t.id == track.id)
    if len(original.info.edits) > 2:
        return
    hidden = original.start.fraction if original.start is not None else Fraction(0)
    end = min(got.stop, original.stop.fraction if original.stop is not None else got.stop)
    rows = source.pictures[track.id]
    begin = max(got.start, hidden)
    # The picture on show at the start begins there.
    shown = max((time for time, _, _ in rows if time <= begin + slack / 2), default=begin)
    wanted = [
        (max(time, begin) - got.start, picture) for time, _, picture in rows if shown <= time < end
    ]
    if len(wanted) == len(decoded) + 1 and wanted[-1][0] > end - got.start - slack:
        wanted = wanted[:-1]  # shown for less than a tick
    result.pictures += len(decoded)
    if [picture for _, picture in decoded] != [picture for _, picture in wanted]:
        result.wrong.append(
            f"track {track.id}: {len(decoded)} pictures at {[float(t) for t, _ in decoded[:3]]}, "
            f"not {len(wanted)} at {[float(t) for t, _ in wanted[:3]]}"
        )
    elif any(abs(a - b) > slack for (a, _), (b, _) in zip(decoded, wanted, strict=True)):
        gaps = [float(a - b) for (a, _), (b, _) in zip(decoded, wanted, strict=True)]
        result.wrong.append(f"track {track.id}: pictures are {min(gaps)} to {max(gaps)} s off")


def compare_sound(
    source: Source, got: Clip, track: fragdex.Track, out: bytes, result: Comparison
) -> None:
    rate, first, original = source.sound[track.id]
    # FFmpeg takes what an edit hides for decoded samples, whatever the timescale; and it drops a
    # packet that holds both ends of an edit.
    if track.timescale != rate or got.stop - got.start < SHORT:
        return
    heard = decoded_sound(out, track.id)
    if heard is None or heard[0] != rate:
        result.wrong.append(f"track {track.id}: no sound")
        return
    _, at, values = heard
    shift = round(got.start * rate)
    low = max(first - shift, 0)
    high = min(first + original.shape[1] - shift, round((got.stop - got.start) * rate))
    high = min(high, round(track.stop.fraction * rate) if track.stop is not None else high)
    if high <= low:
        return
    wanted = original[:, low + shift - first : high + shift - first]
    mine = np.full_like(wanted, np.nan)
    begin, end = max(low, at), min(high, at + values.shape[1])
    mine[:, begin - low : max(end, begin) - low] = values[:, begin - at : max(end, begin) - at]
    known = ~np.isnan(wanted)
    result.sound += int(known.sum())
    missing = int((np.isnan(mine) & known).sum())
    # FFmpeg counts decoded samples, where the source may have stretched its first packet.
    length = track.samples.duration
    stretched = int(length[0] - length[1]) * rate // track.timescale if len(length) > 2 else 0
    if missing > (2 + max(0, stretched)) * wanted.shape[0]:
        result.wrong.append(f"track {track.id}: {missing} of {known.sum()} samples are missing")
        return
    error = np.nan_to_num(np.abs(mine - wanted))
    most = EXACT if track.info.format in LOSSLESS else NOISY
    if error.max(initial=0) > most or np.sqrt((error**2).mean()) > most / 10 + EXACT:
        where = np.flatnonzero(error.max(axis=0) > most / 10)
        result.wrong.append(
            f"track {track.id}: sound differs by {error.max():.4f}, samples {where[0]} to "
            f"{where[-1]} of {wanted.shape[1]}"
        )
