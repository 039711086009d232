"""What is in a video, how it looks, and where its picture changes; done in a child."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fragdex.agents.work import Report, Video
from fragdex.decoding.picture_files import encoded, scaled_and_cropped
from fragdex.errors import InvalidRequest
from fragdex.frames.changes import changes as picture_changes
from fragdex.frames.changes import small_frames
from fragdex.frames.frames import Frames
from fragdex.seeking.show import clock
from fragdex.seeking.time_texts import parse_time

if TYPE_CHECKING:
    from fragdex import Index, Track

MOST_BYTES: Final = 700_000
"""Of all pictures of an answer, as files: as text they are a third more."""
MOST_PIXELS: Final = 4_000_000
MOST_FRAMES: Final = 12
MOST_TILES: Final = 64
MOST_CHANGES: Final = 300
MOST_TRACKS: Final = 100
MOST_CHAPTERS: Final = 200
MOST_TEXT: Final = 300
"""Characters of what a file says itself."""
MOST_FINDINGS: Final = 50
_QUALITIES: Final = (85, 70, 50, 30)
_COMPARED: Final = 1500
_LINE: Final = 14


def seconds_of(text: str | float) -> Fraction:
    """A time that an agent gave.

    Raises:
        InvalidRequest: it is not one.
    """
    try:
        return Fraction(parse_time(str(text)))
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(str(error), advice="give seconds (73.4) or a clock (1:13.4)") from None


def span_of(
    index: Index, start: str | float, stop: str | float | None
) -> tuple[Fraction, Fraction]:
    """The span that an agent gave, within the video."""
    end = max((track.stop.fraction for track in index.tracks if track.stop), default=Fraction(0))
    low = seconds_of(start)
    high = end if stop is None else min(seconds_of(stop), end)
    if low >= high:
        raise InvalidRequest(
            "there is nothing in this span",
            expected=f"start before stop, up to {float(end):.3f} s",
            found=f"{float(low):.3f} to {float(high):.3f} s",
        )  # fmt: skip
    return low, high


def describe(videos: Sequence[Video], report: Report) -> dict[str, Any]:
    """Tracks, length, chapters and findings."""
    index = videos[0].index

    def first(name: str, values: Sequence[Any], most: int) -> dict[str, Any]:
        return {name: values[:most], f"more_{name}": max(0, len(values) - most)}

    chapters = [
        {"start": one.seconds, "title": one.title[:MOST_TEXT]}
        for period in index.periods
        for one in period.movie.chapters
    ]
    return {
        "seconds": round(index.duration or 0.0, 3),
        "size": index.file.size,
        "complete": index.complete,
        **first("tracks", [_track(track) for track in index.tracks], MOST_TRACKS),
        **first("chapters", chapters, MOST_CHAPTERS),
        **first("findings", [str(one)[:MOST_TEXT] for one in index.findings], MOST_FINDINGS),
    }


def index(videos: Sequence[Video], report: Report) -> dict[str, Any]:
    """The index, as a file that is called so."""
    videos[0].index.save("index")
    return {}


def _track(track: Track) -> dict[str, Any]:
    info = track.info
    rate = track.rates.frame_rate if info.kind == "video" else None
    facts = {
        "id": track.id, "kind": info.kind, "codec": info.codec or info.format,
        "start": round(float(track.start), 3) if track.start else None,
        "stop": round(float(track.stop), 3) if track.stop else None,
        "samples": track.sample_count, "width": info.width, "height": info.height,
        "frame_rate": None if rate is None else round(float(rate), 3),
        "key_frames": int(track.sync_samples.count.sum()) if info.kind == "video" else None,
        "rotation": info.rotation or None, "channels": info.channel_count,
        "sample_rate": info.sample_rate, "language": info.extended_language or info.language,
        "title": info.title and info.title[:MOST_TEXT],
        "encrypted": info.encryption is not None or None,
        "not_shown_because": info.auxiliary,
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value is not None}


def frames(
    videos: Sequence[Video], report: Report, times: Sequence[str | float],
    numbers: Sequence[int], width: int,
) -> dict[str, Any]:  # fmt: skip
    """The frames at times, and those of some numbers, each as a picture of its own."""
    wanted = [*map(seconds_of, times)]
    with _opened(videos[0], width, len(wanted) + len(numbers)) as shown:
        last = len(shown) - 1
        if any(not 0 <= one <= last for one in numbers):
            raise InvalidRequest("there is no such frame", expected=f"0 to {last:,}")
        chosen = [*shown.numbers_at(wanted).tolist(), *numbers] if wanted else [*numbers]
        rest = chosen[MOST_FRAMES:]
        pictures: list[dict[str, Any]] = []
        left = MOST_BYTES
        batch = shown[chosen[:MOST_FRAMES]]
        for place in range(len(batch)):
            frame = batch[place]
            share = left // (len(batch) - place)
            data = _fitting(np.asarray(frame.data), share)
            left -= len(data)
            pictures.append({
                **_placed(frame),
                "until": round(float(frame.time.fraction + frame.duration.fraction), 6),
                **({"damaged": batch.missing[place]} if place in batch.missing else {}),
                "data": base64.b64encode(data).decode(),
            })  # fmt: skip
            report((place + 1) / len(batch), "frames")
        return {
            "pictures": pictures, "of": len(shown), "next": {"frames": rest} if rest else None,
        }  # fmt: skip


def sheet(
    videos: Sequence[Video], report: Report, start: str | float, stop: str | float | None,
    pictures: int, width: int,
) -> dict[str, Any]:  # fmt: skip
    """One picture of many frames over a span, each with its time and number below it."""
    low, high = span_of(videos[0].index, start, stop)
    count = max(1, min(pictures, MOST_TILES))
    step = (high - low) / count
    with _opened(videos[0], width, count) as shown:
        times = [low + step * n for n in range(count)]
        chosen = [_cheapest(shown, time, step) for time in times]
        kept = [*dict.fromkeys(chosen)]
        tiles: list[Any] = []
        for place in range(0, len(kept), 8):
            batch = shown[kept[place : place + 8]]
            tiles += [batch[n] for n in range(len(batch))]
            report(len(tiles) / len(kept), "pictures")
        drawn, columns = _sheet(
            [(one.data, f"{clock(float(one.time))} #{one.number}") for one in tiles]
        )
        data = _fitting(drawn, MOST_BYTES)
        return {
            "pictures": [{"data": base64.b64encode(data).decode()}],
            "columns": columns,
            "tiles": [_placed(one) for one in tiles],
            "start": float(low), "stop": float(high), "of": len(shown),
            "next": {"start": float(times[0]), "stop": float(times[1])} if count > 1 else None,
        }  # fmt: skip


def changes(
    videos: Sequence[Video], report: Report, start: str | float, stop: str | float | None,
    least: float,
) -> dict[str, Any]:  # fmt: skip
    """Where a picture differs from the one before, found by halves where not all are compared."""
    low, high = span_of(videos[0].index, start, stop)
    with small_frames(videos[0].source, videos[0].index) as shown:
        first, last = (int(one) for one in shown.numbers_at([low, high]))
        inside = np.arange(first, last + 1)
        if len(inside) > _COMPARED:
            keys = shown.key_frames
            inside = keys[(keys >= first) & (keys <= last)]
            if len(inside) > _COMPARED:
                inside = inside[np.linspace(0, len(inside) - 1, _COMPARED).astype(np.int64)]
            elif len(inside) < _COMPARED // 4:
                inside = np.linspace(first, last, _COMPARED).astype(np.int64)
            inside = np.unique([first, *inside, last])
        steps = int(np.diff(inside).max(initial=1))
        found, compared = picture_changes(
            shown, [*pairwise(inside.tolist())], least,
            lambda done: report(done / (len(inside) + 1), "comparing pictures"),
        )  # fmt: skip
        return {
            "changes": [
                {"number": one, "time": round(float(shown.times[one]), 6), "strength": round(by, 1)}
                for one, by in found[:MOST_CHANGES]
            ],
            "next": {"start": float(shown.times[found[MOST_CHANGES][0]])}
            if len(found) > MOST_CHANGES else None,
            "start": float(low), "stop": float(high),
            "compared": compared, "every_frame": steps == 1, "frames_between": steps,
        }  # fmt: skip


def _opened(video: Video, width: int, count: int) -> Frames:
    """Frames in a size of which so many are within the budget of pixels."""
    full = Frames(video.source, video.index)
    try:
        wide, high = full.full_size
        most = math.isqrt(max(1, MOST_PIXELS // max(1, min(count, MOST_TILES)) * wide // high))
        size, _ = scaled_and_cropped((wide, high), max(16, min(width, wide, most)), None, "contain")
    finally:
        full.close()
    return Frames(video.source, video.index, size=size, damaged="blank")


def _cheapest(shown: Frames, time: Fraction, step: Fraction) -> int:
    """A key frame where one is near enough in a sheet; else the frame of that time."""
    exact = int(shown.numbers_at([time])[0])
    try:
        key = shown.closest_key_frame(time)
    except LookupError:
        return exact
    return key if abs(Fraction(shown.times[key]) - time) * 2 <= step else exact


def _placed(frame: Any) -> dict[str, Any]:
    return {"number": int(frame.number), "time": round(float(frame.time), 6)}


def _sheet(tiles: Sequence[tuple[Any, str]]) -> tuple[np.ndarray[Any, Any], int]:
    """The pictures in rows, each over its label, and how many are in a row."""
    from PIL import Image, ImageDraw

    high, wide = np.asarray(tiles[0][0]).shape[:2]
    columns = max(1, min(len(tiles), round(math.sqrt(len(tiles) * (high + _LINE) / wide))))
    rows = -(-len(tiles) // columns)
    made = Image.new("RGB", (columns * wide, rows * (high + _LINE)), "black")
    draw = ImageDraw.Draw(made)
    for place, (pixels, label) in enumerate(tiles):
        row, column = divmod(place, columns)
        left, top = column * wide, row * (high + _LINE)
        made.paste(Image.fromarray(np.asarray(pixels)), (left, top))
        draw.text((left + 2, top + high + 1), label, fill="white")
    return np.asarray(made), columns


def _fitting(pixels: np.ndarray[Any, Any], most: int) -> bytes:
    """A JPEG of at most so many bytes: of less quality, then smaller."""
    for data in _smaller(pixels):
        if len(data) <= most:
            return data
    raise InvalidRequest("the pictures do not fit into an answer", advice="ask for fewer of them")


def _smaller(pixels: np.ndarray[Any, Any]) -> Iterator[bytes]:
    for _ in range(4):
        for quality in _QUALITIES:
            yield encoded(pixels, "jpeg", quality)
        pixels = pixels[::2, ::2]
