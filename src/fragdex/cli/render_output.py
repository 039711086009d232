"""What `fragdex render` writes and tells: the file, files for each frame or stdout, and notes."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fragdex.cli.output import complain, emit, need_folder
from fragdex.cli.render_fields import SEQUENCE, FileKind

if TYPE_CHECKING:
    from fragdex.client.api import RenderRecord
    from fragdex.rendering.browser.model import Notes
    from fragdex.rendering.outputs import Film
    from fragdex.rendering.render import Rendered

INCOMPLETE: Final = 3
"""The exit code where a script of the page failed, was blocked or is missing."""
_NOTES: Final = ("blocked", "browser", "browser_versions", "console", "glyphs", "incomplete",
                 "refused")  # fmt: skip
_PIECE: Final = 1 << 20


def tell_notes(notes: Notes | RenderRecord) -> None:
    """Complain about what happened on a page: of a render here, or in a service's record."""
    from fragdex.rendering.browser.model import missing_fonts

    for one in notes.blocked:
        complain(f"blocked: {one.url}: {one.reason}")
    for kind in ("refused", "browser", "console", "incomplete"):
        for line in getattr(notes, kind):
            # what was thrown stands in the console, too
            if kind != "console" or line.removeprefix("error: ") not in notes.incomplete:
                complain(f"{kind}: {line}")
    glyphs = getattr(notes, "glyphs", None)  # a record has none
    for line in missing_fonts(glyphs) if glyphs else ():
        complain(f"fonts: {line}")


@contextmanager
def target_of(output: str, kind: FileKind) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Where to render to, and what is done with it in the end."""
    if kind.image is not None:
        need_folder(output)
        with tempfile.TemporaryDirectory(prefix=".fragdex-", dir=Path(output).parent) as folder:
            path = Path(folder, "frames.zip")
            yield path, lambda: _unpack(path, output)
        return
    if output != "-":
        need_folder(output)
        yield Path(output), lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="fragdex-") as folder:
        path = Path(folder, "film.mp4")

        def copy() -> None:
            with path.open("rb") as file:
                emit(iter(lambda: file.read(_PIECE), b""), "-")

        yield path, copy


def _unpack(archive: Path, output: str) -> None:
    """Write the pictures of an archive where they are wanted, each whole or not at all."""
    from fragdex.rendering.join import frame_of

    folder, name = Path(output).parent, Path(output).name
    number = SEQUENCE.search(name)
    assert number is not None
    with zipfile.ZipFile(archive) as pictures:
        for picture in pictures.namelist():
            new = Path(pictures.extract(picture, archive.parent))
            text = number[0] % frame_of(picture)
            new.replace(folder / (name[: number.start()] + text + name[number.end() :]))


def facts_of(
    page: str, output: str, film: Film, rendered: Rendered, seconds: float,
    given: Mapping[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """What `--json` tells of a render.

    Args:
        page, output: as they were written.
        film: how it is stored.
        seconds: that it took.
        given: the data of the page.
    """
    from fragdex.rendering.site import recorded

    notes = rendered.notes.as_json()
    data, data_sha256 = recorded(given)
    width, height = (None, None) if film.is_sound else rendered.view.frame
    return {
        "page": page,
        "file": output,
        "byte_size": os.path.getsize(rendered.path),
        "width": width,
        "height": height,
        "scale": rendered.view.scale,
        "frame_rate": str(rendered.view.fps),
        "first_frame": rendered.slices[0].first,
        "frames": rendered.frames,
        "duration": round(rendered.seconds, 6),
        "sound": rendered.sound,
        "loudness": rendered.loudness,
        "unchanged_frames": sum(one.unchanged for one in rendered.slices),
        "data": data,
        "data_sha256": data_sha256,
        "seconds": round(seconds, 3),
        "slices": [
            {"first_frame": one.first, "frames": one.frames, "seconds": one.seconds}
            for one in rendered.slices
        ],
        **{kind: notes[kind] for kind in _NOTES},
    }


def line_of(facts: Mapping[str, Any]) -> str:
    """The same in one line for people."""
    size = f"{facts['width']}×{facts['height']}"
    if facts["width"] is None:
        size = "sound" if facts["sound"] else "silence, as the page plays nothing"
    kib = f"{facts['byte_size'] / 1024:,.1f} KiB"
    took = f"rendered in {facts['seconds']:.1f} s"
    if not facts["duration"]:
        return f"{facts['file']}: {kib}, {size}, {took}\n"
    sound = ", with sound" if facts["sound"] and facts["width"] is not None else ""
    many = "frame" if facts["frames"] == 1 else "frames"
    loudness = _loudness(facts["loudness"])
    return (
        f"{facts['file']}: {kib}, {facts['duration']:.3f} s, {size}, {facts['frames']:,} {many}"
        f"{sound}{loudness}, {took}\n"
    )


def _loudness(loudness: dict[str, Any] | None) -> str:
    """What was done about the loudness; nothing where none was asked for, or there is none."""
    if loudness is None or loudness["integrated"] is None:
        return ""
    return f", {loudness['integrated'] + loudness['gain']:.1f} LUFS by {loudness['gain']:+.1f} dB"
