"""What the log says: an error with its driver's reason, nothing 1,400 times, no token, no key."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Final

from sqlalchemy.exc import DBAPIError

__all__ = ["OncePerMinute", "SafeFormatter", "explained"]

WINDOW_SECONDS: Final = 60.0
MAX_REMEMBERED: Final = 1000
_LONGEST_REASON: Final = 300


def explained(error: BaseException) -> str:
    """An error for an operator: its message, where it happened, and the reasons below it.

    Clients get the message alone: hosts, buckets and a driver's own words are not for them.

    >>> try:
    ...     try:
    ...         raise OSError("connection refused")
    ...     except OSError as reason:
    ...         raise RuntimeError("the store does not answer") from reason
    ... except RuntimeError as error:
    ...     explained(error)
    'the store does not answer: connection refused'
    """
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen.orig if isinstance(seen, DBAPIError) and seen.orig else seen)
        notes = getattr(seen, "__notes__", [])
        line = " ".join(text.split())[:_LONGEST_REASON]
        parts.append(f"{line} ({'; '.join(notes)})" if notes else line)
        # what SQLAlchemy wraps stands in `orig` already
        seen = None if isinstance(seen, DBAPIError) else seen.__cause__
    return ": ".join(part for part in parts if part)


class OncePerMinute(logging.Filter):
    """Lets a line through once a minute; the next time it says how often it was left out.

    For handlers. Lines with a traceback are told apart by the place that raised.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[object, ...], tuple[float, int]] = {}
        self._changing = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        if record.levelno < logging.WARNING:
            return True
        key = (record.name, record.getMessage(), _raised_at(record))
        now = time.monotonic()
        with self._changing:
            since, left_out = self._known.get(key, (-WINDOW_SECONDS, 0))
            if now - since < WINDOW_SECONDS:
                self._known[key] = since, left_out + 1
                return False
            self._known.pop(key, None)  # put at the end: the oldest are forgotten first
            self._known[key] = now, 0
            if len(self._known) > MAX_REMEMBERED:
                del self._known[next(iter(self._known))]
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} times more)", ()
        return True


class SafeFormatter(logging.Formatter):
    """Writes a line an event, and `***` where it, or its traceback, has a URL token or an API key.

    The server's access log has the whole target of a request; `?token=` may be in it. A message may
    quote what strangers sent: control characters, which would begin a line of their own or move a
    terminal's cursor, are escaped.

    >>> record = logging.makeLogRecord({"msg": "GET /a?limit=1&token=eyJhb.eyJle.x HTTP/1.1"})
    >>> SafeFormatter("%(message)s").format(record)
    'GET /a?limit=1&token=*** HTTP/1.1'
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging calls it
        """The first line, without control characters."""
        return _CONTROLS.sub(_escaped, super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """The line and its traceback, masked."""
        return _SECRETS.sub(r"\1***", super().format(record))


# A name in a query may be percent-encoded, letter by letter.
_TOKEN_NAME = "".join(f"(?:{letter}|%{ord(letter):02x})" for letter in "token")
_SECRETS: Final = re.compile(
    # `token` in a query
    rf"((?i:[?&;]{_TOKEN_NAME}=))[^&;#\s\"']+"
    # a JWT elsewhere: two parts of JSON and a signature, in Base64
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    # an API key
    r"|\bef_[0-9a-zA-Z-]+_[0-9a-f-]+"
)


_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _raised_at(record: logging.LogRecord) -> object:
    trace = record.exc_info[2] if record.exc_info else None
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename, trace.tb_lineno
