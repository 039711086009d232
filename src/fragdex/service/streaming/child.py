"""What is made of a film in a process of its own: pictures of it, and measures of its sound."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import fragdex
from fragdex import Source
from fragdex.sandbox.channel import opened

__all__ = ["measure", "picture", "sheets", "waveform"]


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
