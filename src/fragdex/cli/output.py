"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["emit", "json_line", "need_folder", "to_stdout"]


def to_stdout(target: str | None) -> bool:
    """Whether an `-o` names stdout.

    >>> to_stdout(None), to_stdout("-"), to_stdout("a.json")
    (True, True, False)
    """
    return target is None or target == "-"


def json_line(value: Any) -> str:
    r"""One compact JSON document and a line break; NaN and infinities are refused.

    >>> json_line({"track": 1})
    '{"track": 1}\n'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def emit(pieces: Iterable[str | bytes], target: str | None) -> None:
    """Write pieces as they come to stdout, or to a file, which is replaced at the very end.

    Raises:
        OSError: as the system gives it.
    """
    if to_stdout(target):
        stream = sys.stdout.buffer
        for piece in _encoded(pieces):
            stream.write(piece)
        stream.flush()
        return
    assert target is not None
    # A device or a pipe cannot be replaced by a file.
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        with open(target, "wb") as stream:
            for piece in _encoded(pieces):
                stream.write(piece)
        return
    from fragdex.sources.writing import write_file

    need_folder(target)
    write_file(target, _encoded(pieces))


def need_folder(target: str) -> None:
    """Say plainly that the folder a file should go into is not there.

    Raises:
        FileNotFoundError: it is not.
    """
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)


def _encoded(pieces: Iterable[str | bytes]) -> Iterator[bytes]:
    for piece in pieces:
        # Box fields that are no UTF-8 hold lone surrogates: they go out as the bytes they were.
        yield piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
