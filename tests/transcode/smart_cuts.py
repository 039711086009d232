"""What holds of a smart cut: its pictures are the source's, none is hidden, readers time it alike.

`python tests/transcode/smart_cuts.py 100` cuts every fixture at so many places, and prints what
came of it by codec.
"""

from __future__ import annotations

import io
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import floor
from pathlib import Path
from typing import Any

import av
import numpy as np

import fragdex
from fragdex.errors import BuildError, FragdexError
from fragdex.fragments.table import SampleTable
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.transcode.seams import LEAST_PSNR, psnr

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@cache
def index_of(name: str) -> fragdex.Index:
    return fragdex.index(str(FIXTURES / name), exact=True)


@cache
def pictures_of(name: str) -> list[Any]:
    """All pictures of a film in the order of showing."""
    return [frame for _, frame in decoded(str(FIXTURES / name), edits=False)[0]]


@cache
def samples_of(name: str) -> frozenset[bytes]:
    """The bytes of all samples of a film's pictures."""
    data = (FIXTURES / name).read_bytes()
    return frozenset(data[o : o + n] for o, n in rows_of(index_of(name).video.samples))


def decoded(what: str | bytes, *, edits: bool = True) -> tuple[list[Any], Fraction]:
    """Times and pictures, and the duration that libavformat gives the track."""
    file = what if isinstance(what, str) else io.BytesIO(what)
    with av.open(file, options={} if edits else {"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        frames = [(frame.pts * frame.time_base, frame) for frame in container.decode(stream)]
        return frames, Fraction(stream.duration or 0) * stream.time_base


def smart(name: str, start: Any, stop: Any) -> tuple[bytes, Any]:
    index = index_of(name)
    with fragdex.open_source(index.file.name) as source:
        view, clip = clip_view(index, source, ClipRequest(start, stop, smart=True))
        return view.read(source=source), clip


def check(name: str, at: Fraction, length: Fraction) -> tuple[int, int, float]:
    """Cut a film and hold the clip to what its source and two readers say.

    Args:
        at: where it begins, as a share of the film.
        length: how long it is, as a share of the rest.

    Returns: how many pictures it has, how many of them are encoded, the least PSNR of those.
    """
    track = index_of(name).video
    first, last = track.start.fraction, track.stop.fraction
    start = first + (last - first) * at
    data, clip = smart(name, start, start + (last - start) * length)
    order = np.argsort(track.samples.cts, kind="stable")
    cts = track.samples.cts[order].tolist()
    times = [(c + track.shift) / track.timescale for c in cts]
    # A picture is shown for one tick of its track at least; what an edit lasts is rounded to ticks.
    low = round(clip.start * track.timescale - track.shift)
    high = low + floor((clip.stop - clip.start) * track.timescale + Fraction(1, 2))
    shown = [
        number
        for number, tick in enumerate(cts)
        if tick < max(high, low + 1) and (number + 1 == len(cts) or cts[number + 1] > low)
    ]
    pictures, duration = decoded(data)
    clip_track = fragdex.index(data, exact=True).video
    if len(shown) == clip_track.sample_count + 1 and cts[shown[-1]] >= high - 1:
        shown = shown[:-1]  # one that would be shown for less than a tick
    # As many with an edit list as without, and not one more in the file.
    assert len(pictures) == len(shown) == clip_track.sample_count
    assert len(decoded(data, edits=False)[0]) == len(shown)
    tick = Fraction(1, min(track.timescale, 1_000_000))
    alike = []
    for (time, picture), number in zip(pictures, shown, strict=True):
        assert abs(time - (max(times[number], clip.start) - clip.start)) <= tick
        alike.append(psnr(pictures_of(name)[number], picture))
    least = min(alike)
    assert least >= LEAST_PSNR
    assert sum(one == float("inf") for one in alike) >= len(shown) - clip.encoded
    ours = clip_track.stop.fraction - clip_track.start.fraction
    assert abs(ours - duration) <= tick
    assert abs(ours - exact_duration(name, clip)) <= tick
    # What is not encoded is in the source, bit for bit.
    inside = samples_of(name)
    copied = sum(data[o : o + n] in inside for o, n in rows_of(clip_track.samples))
    assert copied >= len(shown) - clip.encoded
    return len(shown), clip.encoded, least


def exact_duration(name: str, clip: Any) -> Fraction:
    """Of the pictures of the clip that copies all."""
    copy = fragdex.clip(index_of(name), start=clip.start, stop=clip.stop)
    video = fragdex.index(copy, exact=True).video
    return video.stop.fraction - video.start.fraction


def rows_of(samples: SampleTable) -> list[tuple[int, int]]:
    return list(zip(samples.offset.tolist(), samples.size.tolist(), strict=True))


@dataclass
class Outcome:
    """What came of cuts."""

    films: int = 0
    cuts: int = 0
    pictures: int = 0
    encoded: int = 0
    least: float = float("inf")
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.films += other.films
        self.cuts += other.cuts
        self.pictures += other.pictures
        self.encoded += other.encoded
        self.least = min(self.least, other.least)
        self.refused += other.refused
        self.wrong += other.wrong

    def __str__(self) -> str:
        lines = [
            f"{self.films} films, {self.cuts} cuts, {self.encoded} of {self.pictures} pictures "
            f"encoded, least PSNR {self.least:.1f} dB, {len(self.wrong)} wrong",
            *(f"  {count} refused: {text}" for text, count in self.refused.items()),
            *(f"  wrong: {text}" for text in self.wrong),
        ]
        return "\n".join(lines)


def cuts_of(name: str, places: int) -> Outcome:
    """Cut a film at so many places, the same ones each time: down to a thousandth of it."""
    outcome = Outcome(films=1)
    draw = random.Random(name)
    for _ in range(places):
        at = Fraction(draw.randrange(1000), 1000)
        length = Fraction(draw.choice([1, 5, 50, draw.randint(1, 1000)]), 1000)
        try:
            pictures, encoded, least = check(name, at, length)
        except BuildError as error:
            outcome.refused[str(error)] += 1
        except (FragdexError, AssertionError, av.FFmpegError) as error:
            outcome.wrong.append(f"{name} {at} {length}: {type(error).__name__} {error}")
        else:
            outcome.cuts += 1
            outcome.pictures += pictures
            outcome.encoded += encoded
            outcome.least = min(outcome.least, least)
    return outcome


def main(places: int) -> None:
    """Cut every fixture that has pictures, and print what came of each, and of each codec."""
    by_codec: dict[str, Outcome] = defaultdict(Outcome)
    for path in sorted(FIXTURES.glob("*.*")):
        try:
            video = index_of(path.name).video
            pictures = pictures_of(path.name)
        except (FragdexError, av.FFmpegError, ValueError, IndexError, TypeError):
            continue  # no pictures, several movies, or damaged
        if video is None or video.start is None or len(pictures) != video.sample_count:
            continue  # cut off before its first picture, or in one
        format = video.info.format
        outcome = cuts_of(path.name, places)
        print(f"{path.name} ({format}): {outcome}", flush=True)
        by_codec[format].add(outcome)
        pictures_of.cache_clear()
    for format, outcome in sorted(by_codec.items()):
        print(f"{format}: {outcome}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
