"""Results made from videos in a separate process: pictures, measures of sound, joint indexes."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import fragdex
from fragdex import ByteRange, Source
from fragdex.muxing.view import SourceRange, View
from fragdex.sandbox.channel import opened
from fragdex.seeking.model import FileInfo


def picture(source: Source, known: int, *, time: str, exact: bool, **how: Any) -> dict[str, Any]:
    """The picture of a moment; `how` as of `fragdex.decoding.thumbnail`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        thumbnail = fragdex.decoding.thumbnail(
            index, source, Fraction(time), at="frame" if exact else "key_frame", **how
        )
    return _written({"picture": thumbnail.data}, thumbnail.media_type)


def sheets(source: Source, known: int, *, every: str, **how: Any) -> dict[str, Any]:
    """All sheets of a storyboard, and its WebVTT; `how` as of `fragdex.decoding.storyboard`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        with fragdex.decoding.storyboard(index, source, every=Fraction(every), **how) as board:
            pictures = {str(sheet.number): sheet.data for sheet in board.sheets()}
            lists = {"vtt": board.webvtt("{}").encode()}
            types = dict.fromkeys(lists, "text/vtt")
    written = _written(pictures | lists, board.media_type)
    return {"files": written["files"], "types": written["types"] | types}


def waveform(source: Source, known: int, *, samples_per_pixel: int, bits: int) -> dict[str, Any]:
    """The peaks of the sound, in both forms; arguments as of `fragdex.decoding.peaks`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        peaks = fragdex.decoding.peaks(
            index, source, samples_per_pixel=samples_per_pixel, bits=bits
        )
    written = _written({"json": peaks.json(), "dat": peaks.dat()}, "application/octet-stream")
    return {"files": written["files"], "types": written["types"] | {"json": "application/json"}}


def measure(source: Source, known: int) -> dict[str, Any]:
    """How loud the sound is."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        loudness = fragdex.decoding.loudness(index, source)
    return _written({"json": json.dumps(asdict(loudness)).encode()}, "application/json")


def _written(parts: dict[str, bytes], media_type: str) -> dict[str, Any]:
    for name, data in parts.items():
        Path(name).write_bytes(data)
    return {"files": list(parts), "types": dict.fromkeys(parts, media_type)}


def indexes(source: Source, *, sizes: list[int], starts: str | None) -> dict[str, Any]:
    """Make the indexes of members and of the timeline that they make up, every sample known.

    Args:
        source: the members one after the other, each an MP4 in fragments.
        sizes: bytes of each.
        starts: as of `fragdex.view`.

    Returns the names of the `files`: one for each member, and that of the timeline.

    Raises:
        FragdexError: as `fragdex.index` and `fragdex.view`.
    """
    known = FileInfo("", source.size, etag=source.etag)
    members, indexes, at = [], [], 0
    for size in sizes:
        part = [SourceRange(0, ByteRange.of(at, size))]
        view = View("video/mp4", [known], ["member", at], [size], partial(_only, part))
        members.append(view.as_source(source=source))
        indexes.append(fragdex.index(members[-1], exact=True))
        at += size
    whole = fragdex.join(indexes, source=members, starts=starts)
    indexes.append(fragdex.index(whole.as_source(source=members), exact=True))
    names = [f"{number}.fidx" for number in range(len(indexes))]
    for name, index in zip(names, indexes, strict=True):
        index.save(Path(name), samples=True)
    return {"files": names}


def _only(part: list[SourceRange], _: int) -> list[SourceRange]:
    return part
