"""What the fuzzer starts from: the fixtures, and what the library makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fragdex
from fragdex.testing import movie

__all__ = ["fixtures", "seeds"]

ROOT = Path(__file__).resolve().parent.parent
MEDIA = {".mp4", ".m4s", ".m4a", ".mov", ".ismv", ".isma", ".3gp", ".3g2", ".f4v", ".avif", ".heic"}
LARGEST = 16_384
"""Bytes: small inputs are run more often, and what breaks on large ones breaks on small ones."""

HEADERS = (
    b"bytes=0-99",
    b"bytes=-500",
    b"bytes=500-",
    b"bytes=0-0,-1, 10-20 ,,30-",
    b"bytes 0-99/1000",
    b"bytes */1000",
    b"bytes 0-99/*",
    b"bytes=0-1/2",
    b"d41d8cd98f00b204e9800998ecf8427e",
    b"d41d8cd9-8f00-b204-e980-0998ecf8427e",
)


def fixtures() -> list[Path]:
    """The fixtures that are small enough, in order."""
    return [
        path
        for path in sorted((ROOT / "fixtures").rglob("*"))
        if path.suffix in MEDIA and path.stat().st_size <= LARGEST
    ]


def _media() -> Iterator[tuple[str, bytes]]:
    for path in fixtures():
        yield path.name, path.read_bytes()
    yield "made.mp4", movie(fragments=2, samples=3)
    yield "made-sidx.mp4", movie(fragments=3, samples=3, sidx=True)
    yield "made-mfra.mp4", movie(fragments=3, samples=3, mfra=True)
    yield "made-tracks.mp4", movie(fragments=2, tracks=3, samples=2)
    yield "made-progressive.mp4", movie(fragments=2, samples=4, fragmented=False)


def _indexes() -> Iterator[tuple[str, fragdex.FragmentIndex]]:
    for name, data in _media():
        try:
            yield name, fragdex.index(data)
        except fragdex.FragdexError:
            continue


def seeds(target: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every seed of a target (see targets.py)."""
    if target == "text":
        for number, text in enumerate(HEADERS):
            yield f"header-{number}", text
    elif target == "open_index":
        for name, index in _indexes():
            yield f"{name}.fidx", index.export("fidx")
            if all(track.has_samples for track in index.tracks):
                yield f"{name}.samples.fidx", index.export("fidx", samples=True)
    elif target == "json":
        for name, index in _indexes():
            try:
                yield f"{name}.json", index.export("json")
            except fragdex.FragdexError:
                continue
    else:
        yield from _media()
