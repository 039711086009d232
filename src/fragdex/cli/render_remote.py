"""`fragdex render --server`: the page is sent to a service, which renders it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fragdex.cli import remote
from fragdex.cli.inputs import is_url
from fragdex.cli.output import byte_progress, json_line, part_progress, say
from fragdex.cli.render_notes import INCOMPLETE, tell
from fragdex.cli.render_report import line_of
from fragdex.cli.render_request import Kind, crop_of, milliseconds, size_of, stdin_html
from fragdex.cli.render_target import target_of
from fragdex.errors import FragdexError

if TYPE_CHECKING:
    from fragdex.client import Client
    from fragdex.client.api import RenderRecord

__all__ = ["fields_of", "render_remotely"]

_OF_PICTURES: Final = ("codec", "crf", "bit_rate", "preset", "pixel_format", "gop", "color")
_OF_SOUND: Final = {"audio": "codec", "audio_bit_rate": "bit_rate", "loudness": "loudness"}
_CROP: Final = ("x", "y", "width", "height")
_SAID: Final = (
    "scale", "frame_rate", "frames", "data", "data_sha256", "blocked", "browser", "console",
    "incomplete", "refused", "loudness", "slices",
)  # fmt: skip


def fields_of(
    kind: Kind, *, still: Mapping[str, Any], film: Mapping[str, Any], size: str | None, fps: str,
    page_fps: str | None, scale: str, crop: str | None, duration: str | None, start: str | None,
    stop: str | None, at: str | None,
) -> dict[str, Any]:  # fmt: skip
    """The fields of `api.create_render`; whether they go together, the service decides.

    Args: as those of `render_request.wanted_of`.

    Raises:
        typer.BadParameter: one of them cannot be read.
    """
    width, height = size_of(size)
    cropped = crop_of(crop)
    output = {
        "container": kind.container,
        "image": kind.image,
        "quality": still["quality"],
        "transparency": film["transparency"],
        "fragmented": film["fragmented"],
        "video": _asked({name: film[name] for name in _OF_PICTURES}),
        "audio": _asked({new: film[name] for name, new in _OF_SOUND.items()}),
        "silent": not film["sound"],
    }
    return {
        "output": _asked(output),
        "width": width,
        "height": height,
        "scale": None if scale == "1" else _number(scale),
        "fps": _number(fps),
        "page_fps": None if page_fps is None else _number(page_fps),
        "crop": None if cropped is None else dict(zip(_CROP, cropped, strict=True)),
        "duration_ms": milliseconds("--duration", duration, least=1),
        "from_ms": milliseconds("--from", start, least=0),
        "to_ms": milliseconds("--to", stop, least=1),
        "time_ms": milliseconds("--at", at, least=0),
    }


def _asked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was asked for: each container refuses fields that it does not have."""
    return {name: value for name, value in fields.items() if value or type(value) is int}


def _number(text: str) -> float | str:
    """As a number, so that 29.97 means what it does everywhere; else as it is written."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def render_remotely(
    page: str, output: str, kind: Kind, fields: Mapping[str, Any], server: str, key: str | None,
    *, json: bool, allow_incomplete: bool,
) -> int:  # fmt: skip
    """Send a page, have it rendered, receive the result and print what was made.

    Args:
        page: a file, a folder, an archive, or `-`; output: the file to be written.
        fields: of `api.create_render`.

    Returns: the exit code.

    Raises:
        FragdexError: the page cannot be sent, or its render failed.
        ClientError: the service refuses, or does not answer.
    """
    if is_url(page):
        raise FragdexError(f"{page}: only files and folders can be sent to a service")
    if os.path.isdir(page) and not os.path.isfile(os.path.join(page, "index.html")):
        raise FragdexError(f"{page}: there is no index.html in the folder")
    from fragdex.client import api

    name, began = Path(page).name, time.monotonic()
    with (
        remote.client_of(server, key) as client,
        target_of(output, kind) as (target, finish),
    ):
        record = _rendered(client, page, name, fields)
        progress: Any
        with byte_progress(output) as progress:
            # by this name the service gives any result, with its true type
            client.download(api.download_render(record.id, "mp4"), target, progress=progress)
        facts = _facts(page, output, record, time.monotonic() - began)
        finish()
    tell(record)
    say(json_line(facts) if json else line_of(facts))
    return INCOMPLETE if record.incomplete and not allow_incomplete else 0


def _rendered(client: Client, page: str, name: str, fields: Mapping[str, Any]) -> RenderRecord:
    """The record of the render, once it is complete."""
    from fragdex.client import api

    progress: Any
    if page == "-":
        record = client.render(html=stdin_html(), **fields)
    else:
        with byte_progress(name) as progress:
            record = client.render(page, progress=progress, **fields)
    cancelled = remote.cancelled_by_ctrl_c(
        client, api.cancel_render(record.id), f"render {record.id}"
    )
    with cancelled, part_progress(name, "frames") as shown:
        remote.follow(client, api.get_render_progress(record.id), shown)
    record = client.send(api.get_render(record.id))
    if record.status != "complete":
        why = record.problem.detail if record.problem else f"the render is {record.status}"
        raise FragdexError(f"{page}: {why} (render {record.id})")
    return record


def _facts(page: str, output: str, record: RenderRecord, seconds: float) -> dict[str, Any]:
    from msgspec import to_builtins

    told: dict[str, Any] = to_builtins(record)
    is_sound = record.media_type.startswith("audio/")
    sides = record.crop or record
    width, height = (
        None if is_sound or side is None else round(side * record.scale)
        for side in (sides.width, sides.height)
    )
    return {
        "page": page,
        "file": output,
        "id": record.id,
        "byte_size": record.byte_size,
        "width": width,
        "height": height,
        "duration": 0 if record.time_ms is not None else _seconds(record),
        "sound": is_sound,
        "seconds": round(seconds, 3),
        **{name: told[name] for name in _SAID},
    }


def _seconds(record: RenderRecord) -> float:
    """The length of a film."""
    return round(float((record.frames or 0) / Fraction(record.frame_rate)), 6)
