"""What is made of films in a process of its own: pictures, measures of sound, joint indexes."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import fragdex
from fragdex import ByteRange, Source
from fragdex.sandbox.channel import opened
from fragdex.seeking.model import FileInfo
from fragdex.views.view import SourceRange, View


def picture(source: Source, known: int, *, time: str, exact: bool, **how: Any) -> dict[str, Any]:
    """The picture of a moment; `how` as of `fragdex.thumbnail`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        made = fragdex.thumbnail(index, source, Fraction(time), exact=exact, **how)
    return _written({"picture": made.data}, made.media_type)


def sheets(source: Source, known: int, *, every: str, **how: Any) -> dict[str, Any]:
    """All sheets of a storyboard, and its WebVTT; `how` as of `fragdex.storyboard`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        with fragdex.storyboard(index, source, every=Fraction(every), **how) as board:
            made = {str(sheet.number): sheet.data for sheet in board.sheets()}
            lists = {"vtt": board.webvtt("{}").encode()}
            types = dict.fromkeys(lists, "text/vtt")
    found = _written(made | lists, board.media_type)
    return {"files": found["files"], "types": found["types"] | types}


def waveform(source: Source, known: int, *, samples_per_pixel: int, bits: int) -> dict[str, Any]:
    """The peaks of the sound, in both forms; arguments as of `fragdex.peaks`."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        made = fragdex.peaks(index, source, samples_per_pixel=samples_per_pixel, bits=bits)
    found = _written({"json": made.json(), "dat": made.dat()}, "application/octet-stream")
    return {"files": found["files"], "types": found["types"] | {"json": "application/json"}}


def measure(source: Source, known: int) -> dict[str, Any]:
    """How loud the sound is."""
    with opened(known, "index") as file:
        index = fragdex.open_index(file)
        made = fragdex.loudness(index, source)
    return _written({"json": json.dumps(asdict(made)).encode()}, "application/json")


def _written(made: dict[str, bytes], media_type: str) -> dict[str, Any]:
    for name, data in made.items():
        Path(name).write_bytes(data)
    return {"files": list(made), "types": dict.fromkeys(made, media_type)}


def indexes(source: Source, *, sizes: list[int], starts: str | None) -> dict[str, Any]:
    """Make the indexes of members and of the timeline that they make up, every sample known.

    Args:
        source: the members one behind the other, each an MP4 in fragments.
        sizes: bytes of each.
        starts: as of `fragdex.view`.

    Returns the names of the `files`: one for each member, and that of the timeline.

    Raises:
        FragdexError: as `fragdex.index` and `fragdex.view`.
    """
    known = FileInfo("", source.size, etag=source.etag)
    members, found, at = [], [], 0
    for size in sizes:
        part = [SourceRange(0, ByteRange.of(at, size))]
        view = View("video/mp4", [known], ["member", at], [size], partial(_only, part))
        members.append(view.as_source(source=source))
        found.append(fragdex.index(members[-1], exact=True))
        at += size
    whole = fragdex.view(found, "timeline", source=members, starts=starts)
    found.append(fragdex.index(whole.as_source(source=members), exact=True))
    names = [f"{number}.fidx" for number in range(len(found))]
    for name, index in zip(names, found, strict=True):
        index.save(Path(name), samples=True)
    return {"files": names}


def _only(part: list[SourceRange], _: int) -> list[SourceRange]:
    return part
