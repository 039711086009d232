"""What the fuzzer starts from: the fixtures, and what the library makes of them."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fragdex
from fragdex.testing import movie

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from repeats import DIMENSIONS

__all__ = ["PACKED", "fixtures", "seeds"]

PACKED = Path(__file__).with_name("corpus.zip")
"""What `./dev fuzz --merge --pack` kept: the smallest inputs that reached code of their own."""

ROOT = Path(__file__).resolve().parent.parent
MEDIA = {".mp4", ".m4s", ".m4a", ".mov", ".ismv", ".isma", ".3gp", ".3g2", ".f4v", ".avif", ".heic"}
LARGEST = 16_384
"""Bytes: small inputs are run more often, and what breaks on large ones breaks on small ones."""

CAPTIONS = {
    "small.vtt": b"WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.000 line:0\n<b>Hello</b>\n\nNOTE x\n",
    "small.srt": b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n\r\n2\n00:00:03,0 --> 0:0:4,0\nx",
    "small.json": b'[{"start": 1.0, "end": 2.0, "text": "Hello"}]',
    "cues.json": b'{"segments": [{"start": 0, "end": 1, "text": "a"}]}',
}
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


def _indexes() -> Iterator[tuple[str, fragdex.Index]]:
    for name, data in _media():
        try:
            yield name, fragdex.index(data)
        except fragdex.FragdexError:
            continue


def _images() -> Iterator[tuple[str, bytes]]:
    from PIL import Image

    for form in ("PNG", "JPEG", "GIF", "WEBP"):
        with io.BytesIO() as file:
            Image.new("RGB", (3, 2), "red").save(file, form)
            yield f"small.{form.lower()}", file.getvalue()
    yield "small.svg", b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 2"/>'


def _archives() -> Iterator[tuple[str, bytes]]:
    for form in ("zip", "tar", "tar.gz"):
        with io.BytesIO() as file:
            if form == "zip":
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr("index.html", "<p>page</p>")
            else:
                with tarfile.open(fileobj=file, mode="w:gz" if "gz" in form else "w") as tar:
                    member = tarfile.TarInfo("index.html")
                    member.size = 4
                    tar.addfile(member, io.BytesIO(b"page"))
            yield f"site.{form}", file.getvalue()


def _packed(target: str) -> Iterator[tuple[str, bytes]]:
    """What earlier runs found."""
    with zipfile.ZipFile(PACKED) as archive:
        for name in archive.namelist():
            if name.startswith(f"{target}/"):
                yield name.replace("/", "-"), archive.read(name)


def seeds(target: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every seed of a target (see targets.py)."""
    yield from _packed(target)
    if target == "text":
        for number, text in enumerate(HEADERS):
            yield f"header-{number}", text
    elif target == "open_index":
        for name, index in _indexes():
            yield f"{name}.fidx", index.export("fidx")
            if all(track.has_samples for track in index.tracks):
                yield f"{name}.samples.fidx", index.export("fidx", samples=True)
    elif target == "large":
        for number, name in enumerate(DIMENSIONS):
            for work in range(6):
                yield f"{name}-{work}", bytes((number, 0, work, 0))
    elif target == "captions":
        yield from CAPTIONS.items()
    elif target == "images":
        yield from _images()
    elif target == "archives":
        yield from _archives()
    elif target == "json":
        for name, index in _indexes():
            try:
                yield f"{name}.json", index.export("json")
            except fragdex.FragdexError:
                continue
    else:
        yield from _media()
