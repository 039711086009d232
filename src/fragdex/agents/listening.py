"""The words of a video, as its captions have them, and how loud it is; done in a child."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex import ByteRange, Track
from fragdex.agents.looking import span_of
from fragdex.agents.work import Report, Video
from fragdex.decoding.audio import AudioReader
from fragdex.decoding.sound_levels import measured
from fragdex.errors import LimitExceeded, TrackNotFound
from fragdex.packaging.subtitles import CUES, SAMPLE_BYTES, captions_of, cues_of_sample

MOST_TEXT: Final = 2000
"""Characters of a cue."""
MOST_CUES: Final = 200
"""Cues of an answer."""
MOST_SECONDS: Final = 3600
"""Of sound that is measured for an answer."""
_MOST_FILE: Final = 8 << 20
_RATE: Final = 48_000
_WINDOW: Final = _RATE // 10
_ROWS: Final = 60
_VOICE: Final = re.compile(r"<v(?:\.[^ \t>]*)?[ \t]+([^>]*)>")
_TAG: Final = re.compile(r"<[^>]*>")


class Line(NamedTuple):
    """What is shown from a time to another, in seconds."""

    start: float
    stop: float
    text: str
    speaker: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        speaker = {} if self.speaker is None else {"speaker": self.speaker[:100]}
        start, stop = round(self.start, 3), round(self.stop, 3)
        return {"start": start, "stop": stop, "text": self.text[:MOST_TEXT], **speaker}


def line_of(start: float, stop: float, payload: str) -> Line:
    """A cue of WebVTT as plain text, and who speaks (a voice span)."""
    voice = _VOICE.search(payload)
    text = " ".join(html.unescape(_TAG.sub("", payload)).split())
    return Line(start, stop, text, (voice and html.unescape(voice[1]).strip()) or None)


def page_of(lines: Sequence[Line], search: str, further: float | None = None) -> dict[str, Any]:
    """The first lines of an answer that have a text, in any case, and how to continue.

    Args:
        further: where a next answer begins, if all lines are in this one.
    """
    wanted = " ".join(search.casefold().split())
    lines = [one for one in lines if wanted in one.text.casefold()]
    further = lines[MOST_CUES].start if len(lines) > MOST_CUES else further
    return {
        "lines": [one.as_json() for one in lines[:MOST_CUES]],
        "next": None if further is None else {"start": further},
    }


def words(
    videos: Sequence[Video], report: Report, start: str | float, stop: str | float | None,
    search: str, language: str,
) -> dict[str, Any]:  # fmt: skip
    """The captions of a span: of the first track of text that can be read, else of a file."""
    video, *files = videos
    low, high = span_of(video.index, start, stop)
    texts = [track for track in video.index.tracks if track.info.kind == "text"]
    kinds: list[tuple[str, str | None, Any]] = [
        (f"track {one.id}", one.info.extended_language or one.info.language, one)
        for one in texts
        if one.info.format in CUES and not one.info.auxiliary
    ]
    kinds += [(one.name, language_in(one.name), one) for one in files]
    chosen = next((one for one in kinds if not language or _speaks(one[1], language)), None)
    others = [{"from": name, "language": spoken} for name, spoken, _ in kinds]
    answer = {"start": float(low), "stop": float(high), "captions": others}
    unread = [f"track {one.id} ({one.info.format})" for one in texts if one.info.format not in CUES]
    if unread:
        answer["not_read"] = unread
    if chosen is None:
        return {**answer, "from": None, **page_of([], "")}
    name, spoken, what = chosen
    lines = (
        [*_of_track(what, video, low, high)]
        if isinstance(what, Track)
        else [one for one in _of_file(what) if one.stop > low and one.start < high]
    )
    return {**answer, "from": name, "language": spoken, **page_of(lines, search)}


def language_in(name: str) -> str | None:
    """The language that the name of a caption file says: talk.en.vtt."""
    parts = name.rpartition("/")[2].split(".")
    return parts[-2] if len(parts) > 2 else None


def _speaks(own: str | None, language: str) -> bool:
    return own is not None and own.lower()[:2] == language.lower()[:2]


def _of_track(track: Track, video: Video, low: Fraction, high: Fraction) -> Iterator[Line]:
    table, scale = track.samples, track.timescale
    shift = Fraction(track.shift) / scale
    first, last = ((at - shift) * scale for at in (low, high))
    shown = (table.cts < math.ceil(last)) & (table.cts + table.duration > math.floor(first))
    rows = np.flatnonzero(shown & (table.size > 2) & (table.size <= SAMPLE_BYTES))
    for at in range(0, len(rows), 1000):
        part = rows[at : at + 1000]
        places = zip(table.offset[part].tolist(), table.size[part].tolist(), strict=True)
        ranges = [ByteRange.of(*place) for place in places]
        for row, data in zip(part.tolist(), video.source.read_many(ranges), strict=True):
            begin = track.presentation(int(table.cts[row])).fraction
            end = begin + Fraction(int(table.duration[row]), scale)
            for cue in cues_of_sample(data, track.info.format, begin, end):
                yield line_of(float(cue.start), float(cue.end), cue.text)


def _of_file(file: Video) -> Iterator[Line]:
    data = file.source.read_up_to(ByteRange(0, _MOST_FILE + 1))
    if len(data) > _MOST_FILE:
        raise LimitExceeded(f"{file.name} has more than {_MOST_FILE:,} bytes of captions")
    kind = f".{file.name.rpartition('.')[2].lower()}"
    for cue, _ in captions_of(data, kind).cues:
        yield line_of(cue.start_ms / 1000, cue.end_ms / 1000, cue.text)


def sound(
    videos: Sequence[Video], report: Report, start: str | float, stop: str | float | None,
    quiet: float,
) -> dict[str, Any]:  # fmt: skip
    """Loudness (EBU R 128), levels and silences of a span."""
    video = videos[0]
    low, high = span_of(video.index, start, stop)
    until = min(high, low + MOST_SECONDS)
    tracks = [track for track in video.index.tracks if track.info.kind == "audio"]
    if not tracks:
        raise TrackNotFound("there is no track of sound")
    channels = 1 if tracks[0].info.channel_count == 1 else 2
    levels: list[tuple[float, float]] = []

    with AudioReader(
        video.index, video.source, rate=_RATE, channels=channels, dtype=np.float32
    ) as reader:

        def pieces() -> Iterator[np.ndarray[Any, Any]]:
            at = low
            while at < until:
                end = min(at + 10, until)
                data = reader.read(at, end).reshape(-1, channels)
                for n in range(0, len(data), _WINDOW):
                    part = np.nan_to_num(data[n : n + _WINDOW].astype(np.float64))
                    levels.append((float((part**2).mean()), float(np.abs(part).max())))
                yield data
                report(float((end - low) / (until - low)), "sound")
                at = end

        loud = measured(pieces(), rate=_RATE, layout="mono" if channels == 1 else "stereo")
        gaps = reader.gaps(low, until)
    power = np.array([one for one, _ in levels])
    peaks = np.array([one for _, one in levels])
    seconds = _WINDOW / _RATE
    per_row = max(1, math.ceil(len(levels) / _ROWS))
    begin = float(low)
    return {
        "start": begin, "stop": float(until),
        "next": {"start": float(until)} if until < high else None,
        "integrated_lufs": loud.integrated, "range_lu": loud.range,
        "true_peak_dbtp": loud.true_peak,
        "loudest_at": round(begin + int(power.argmax()) * seconds, 1),
        "levels": [
            {
                "start": round(begin + n * seconds, 1),
                "rms_db": _db(power[n : n + per_row].mean(), 10),
                "peak_db": _db(peaks[n : n + per_row].max(), 20),
            }
            for n in range(0, len(levels), per_row)
        ],
        "silences": [
            {"start": round(begin + a * seconds, 1), "stop": round(begin + b * seconds, 1)}
            for a, b in _runs(power < 10 ** (quiet / 10))
            if (b - a) * seconds >= 0.5
        ][:MOST_CUES],
        "without_sound": [one.reason for one in gaps[:10]],
    }  # fmt: skip


def _db(value: float, factor: int) -> float | None:
    return None if value <= 0 else round(factor * math.log10(value), 1)


def _runs(is_quiet: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_quiet.astype(np.int8), [0]])))
    return [*zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
