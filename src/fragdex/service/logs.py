"""What the log says: an error with its driver's reason, nothing 1,400 times, no token, no key.

Lines are text for people or JSON for collectors. Each names the request that it comes from, in the
jobs that the request ordered as well, and the trace where traces are on.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from contextvars import ContextVar
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from fragdex.traces import current_ids

REQUEST_ID: ContextVar[str] = ContextVar("fragdex_request_id", default="")
"""The request that this thread or task works for; empty outside of requests and their jobs."""

_AUDIT: Final = logging.getLogger("fragdex.audit")

WINDOW_SECONDS: Final = 60.0
MAX_REMEMBERED: Final = 1000
_LONGEST_REASON: Final = 300


def explained(error: BaseException) -> str:
    """An error for an operator: its message, where it happened, and the reasons below it.

    Clients get the message alone: hosts, buckets and a driver's own words are not for them.
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


def audit(action: str, tenant_id: str, key_id: str | None, object_id: str, **more: str) -> None:
    """Log who changed what may be done: a line of `fragdex.audit`, whatever `log_level` is.

    Args:
        action: what was done, such as `key.create`.
        key_id: the key that requested it; None: nobody did over HTTP, and `by` of `more` says who.
        object_id: what it was done to.
        more: further fields.
    """
    by = more.get("by", "") if key_id is None else f"key {key_id}"
    fields = {"event": "audit", "action": action, "tenant": tenant_id, "key": key_id}
    _AUDIT.info(
        "%s %s of tenant %s by %s", action, object_id, tenant_id, by,
        extra={"fields": {**fields, "object": object_id, **more}},
    )  # fmt: skip


class OncePerMinute(logging.Filter):
    """Lets a line through once a minute; the next time it says how often it was left out.

    For handlers. Numbers and identifiers do not tell lines apart: else a counter or the id of a
    record would make each line another one. Lines with a traceback are told apart by the place that
    raised.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[object, ...], tuple[float, int]] = {}
        self._changing = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        if record.levelno < logging.WARNING:
            return True
        key = (record.name, _NUMBERS.sub("#", record.getMessage()), _raised_at(record))
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
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging calls it
        """The first line, without control characters."""
        line = super().formatMessage(record)
        ids = current_ids()
        origin = [REQUEST_ID.get(), f"trace {ids[0]}" if ids else ""]
        if any(origin):
            line += f" [{' '.join(filter(None, origin))}]"
        return _CONTROLS.sub(_escaped, line)

    def format(self, record: logging.LogRecord) -> str:
        """The line and its traceback, masked."""
        return _masked(super().format(record))


class JsonFormatter(SafeFormatter):
    """Writes a JSON object a line, masked like text; `fields` of a record stand next to it."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, on one line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{seconds}.{int(record.created * 1000) % 1000:03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage()),
        }
        if request_id := REQUEST_ID.get():
            fields["request_id"] = request_id
        if ids := current_ids():
            fields["trace_id"], fields["span_id"] = ids
        for name, value in getattr(record, "fields", {}).items():
            fields[name] = _masked(value) if isinstance(value, str) else value
        if record.exc_info:
            fields["traceback"] = _masked(self.formatException(record.exc_info))
        # ASCII: no character of a stranger ends a line, moves a cursor or cannot be written
        return json.dumps(fields, default=str)


def request_id_of(sent: str | None) -> str:
    """The id of a request: the one that a client or a proxy sent, if it can stand in a log."""
    return sent if sent and _SENT_ID.fullmatch(sent) else uuid.uuid4().hex


_SENT_ID: Final = re.compile(r"[\w.:/=+-]{1,128}", re.ASCII)


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


# with digits: ids and digests in hexadecimal, numbers with a point, an exponent or a unit's prefix
_NUMBERS: Final = re.compile(r"\b(?=[0-9a-f-]*[0-9])[0-9a-f]+(?:-[0-9a-f]+)*\b|[0-9]+(?:\.[0-9]+)?")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _masked(text: str) -> str:
    return _SECRETS.sub(r"\1***", text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _raised_at(record: logging.LogRecord) -> object:
    trace = record.exc_info[2] if record.exc_info else None
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename, trace.tb_lineno
