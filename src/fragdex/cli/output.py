"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from fragdex.errors import printable

__all__ = ["emit", "json_line", "json_text", "need_folder", "say", "to_stdout"]


FLUSH_S = 0.1
"""So long a reader of stdout waits at most for what is written."""


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
    return json_text(value) + "\n"


def json_text(value: Any) -> str:
    r"""A value as JSON, safe on a terminal; NaN and infinities are refused.

    >>> json_text("a\x9b")
    '"a\\u009b"'
    """
    return printable(json.dumps(value, ensure_ascii=False, allow_nan=False))


def emit(pieces: Iterable[str | bytes], target: str | None) -> None:
    """Write pieces as they come to stdout, or to a file, which is replaced at the very end.

    Text is for people or JSON: what a terminal would obey in it is escaped. Give bytes where a form
    has an escaping of its own.

    Raises:
        OSError: as the system gives it.
    """
    if to_stdout(target):
        stream = sys.stdout.buffer
        flushed = 0.0
        for piece in _encoded(pieces):
            stream.write(piece)
            # The first piece at once, and no system call for each of a million lines.
            if (now := time.monotonic()) - flushed > FLUSH_S:
                stream.flush()
                flushed = now
        stream.flush()
        return
    assert target is not None
    from fragdex.sources.files import write_file

    need_folder(target)
    write_file(target, _encoded(pieces))


def say(text: str, *, err: bool = False) -> None:
    """One line or a few for people, on stdout or stderr; what a terminal would obey is escaped."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(text, lines=True))
    stream.flush()


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
        if isinstance(piece, str):
            # Box fields that are no UTF-8 hold lone surrogates: they go out as the bytes they were.
            yield printable(piece, lines=True).encode("utf-8", "surrogateescape")
        else:
            yield piece
