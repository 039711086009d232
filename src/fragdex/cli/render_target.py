"""Where `fragdex render` writes to: a file, files for each frame, or stdout."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fragdex.cli.output import emit, need_folder
from fragdex.cli.render_request import SEQUENCE, Kind

__all__ = ["target_of"]

_PIECE: Final = 1 << 20


@contextmanager
def target_of(output: str, kind: Kind) -> Iterator[tuple[Path, Callable[[], None]]]:
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
