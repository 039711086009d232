"""Every error that fragdex raises on purpose, as one tree.

    FragdexError
    ├── FormatError                  bytes that break the rules of their format
    │   ├── NotISOBMFF               nothing in the input is an ISO base media file
    │   ├── MalformedBox             a box contradicts itself, its parent or the standard
    │   ├── TruncatedInput           the input ends before what it announces
    │   ├── LimitExceeded            a claimed number passes one of our named limits
    │   ├── DamagedIndex             a saved index (.fidx, JSON …) that cannot be trusted
    │   ├── MalformedCaptions        WebVTT, SubRip or JSON that cannot be read
    │   └── InvalidDigest            text that is not an md5
    ├── BuildError                   a value that cannot be written in its field
    ├── InvalidRange                 byte positions that make no range, or lie outside
    ├── SourceError                  reading the input failed
    │   ├── SourceNotFound           there is no such file or object
    │   ├── SourceUnavailable        it did not answer, after bounded retries
    │   ├── SourceChanged            it is not the one that was indexed or first seen
    │   ├── RangeIgnored             the server answers with the whole file instead of a range
    │   └── BudgetExceeded           the next read would pass max_bytes or max_requests
    ├── TrackNotFound                no such track, or one in each of several periods
    ├── InexactIndex                 the answer needs samples that this index does not hold
    ├── NoSyncSample                 the track has no sample at which decoding could start
    ├── UnverifiedSync               it is unknown whether decoding can start at a sample
    ├── IndexMismatch                the index does not describe this file
    ├── UndecodableMedia             samples that cannot be decoded, or that are encrypted
    ├── MissingExtra                 an optional package is not installed
    └── ServiceError                 a request to an engine or the service fails
        ├── RecordNotFound           no such record of this tenant
        │   ├── NotYet               a part of a result that is still being made
        │   └── UploadIncomplete     an upload whose bytes are not all here
        ├── Unauthenticated          no key, an unknown one, or a revoked one
        ├── Forbidden                a URL token or key that does not allow this
        ├── InvalidRequest           a field or parameter that breaks a rule
        │   ├── IdempotencyMismatch  the same Idempotency-Key with another request
        │   └── UploadLengthMismatch lengths of a resumable upload that contradict each other
        ├── Unprocessable            bytes that cannot be used
        │   ├── DigestMismatch       bytes that have another md5 than announced
        │   ├── BodyLengthMismatch   a body that is shorter or longer than announced
        │   └── PageFailed           a page that cannot be rendered, by its own fault
        ├── BrowserGone              the browser of a render ended; another one is started
        ├── Conflict                 the record does not allow this request
        │   ├── RequestRunning       the first request with the same Idempotency-Key is running
        │   ├── Obstructed           something else has to be changed or deleted first
        │   ├── Finished             the record is final
        │   │   └── UploadCompleted  a resumable upload that takes no more bytes
        │   ├── UploadGap            a chunk that starts beyond the bytes that are here
        │   ├── UploadOffsetMismatch bytes of a resumable upload that begin elsewhere
        │   ├── UploadBusy           another upload of the same bytes is running
        │   │   └── Superseded       a later request of the same upload took its place
        │   └── NotReady             the result is being made
        │       ├── BytesMissing     bytes of it are to be uploaded first
        │       └── NeverReady       it failed or was cancelled: there will be no result
        ├── TooLarge                 over a limit of this service
        │   └── QuotaExceeded        the tenant stores as much as it may
        ├── TooManyRequests          over the key's rate limit, or the tenant's jobs
        ├── RequestTimedOut          the body of a request stopped coming
        ├── NotAcceptable            none of the forms the caller takes is one we have
        ├── UnsupportedMediaType     a body of another type than this path takes
        ├── UnsupportedVersion       an unsupported version of a protocol
        ├── ChecksumMismatch         the bytes of a request have another checksum
        ├── StoreFull                no room left where bytes are kept
        ├── MediaUnavailable         the server of remote media does not answer
        ├── Unavailable              the database or the store does not answer
        │   └── EngineUnavailable    a browser, model or encoder that is not installed
        └── ConfigError              a setting that cannot be used

An error says what is wrong, where (box path, byte offset), what was expected, what was found and
what to do. It knows nothing of HTTP: the service maps classes to status codes in one table.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

__all__ = [
    "BodyLengthMismatch",
    "BrowserGone",
    "BudgetExceeded",
    "BuildError",
    "BytesMissing",
    "ChecksumMismatch",
    "ConfigError",
    "Conflict",
    "DamagedIndex",
    "DigestMismatch",
    "EngineUnavailable",
    "Finished",
    "Forbidden",
    "FormatError",
    "FragdexError",
    "IdempotencyMismatch",
    "IndexMismatch",
    "InexactIndex",
    "InvalidDigest",
    "InvalidRange",
    "InvalidRequest",
    "LimitExceeded",
    "MalformedBox",
    "MalformedCaptions",
    "MediaUnavailable",
    "MissingExtra",
    "NeverReady",
    "NoSyncSample",
    "NotAcceptable",
    "NotISOBMFF",
    "NotReady",
    "NotYet",
    "Obstructed",
    "PageFailed",
    "QuotaExceeded",
    "RangeIgnored",
    "RecordNotFound",
    "RequestRunning",
    "RequestTimedOut",
    "ServiceError",
    "SourceChanged",
    "SourceError",
    "SourceNotFound",
    "SourceUnavailable",
    "StoreFull",
    "Superseded",
    "TooLarge",
    "TooManyRequests",
    "TrackNotFound",
    "TruncatedInput",
    "Unauthenticated",
    "Unavailable",
    "UndecodableMedia",
    "Unprocessable",
    "UnsupportedMediaType",
    "UnsupportedVersion",
    "UnverifiedSync",
    "UploadBusy",
    "UploadCompleted",
    "UploadGap",
    "UploadIncomplete",
    "UploadLengthMismatch",
    "UploadOffsetMismatch",
]

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str, *, lines: bool = False) -> str:
    """A text of a file as it is safe on a terminal: what a terminal would obey is escaped.

    That is the controls (C0, DEL, C1), ends of lines, and what turns the direction of text around.
    The escapes are those of JSON, so that a JSON text stays one.

    Args:
        lines: keep line feeds and tabs, for a text of several lines.
    """

    def escaped(match: re.Match[str]) -> str:
        character = match[0]
        return character if lines and character in "\n\t" else f"\\u{ord(character):04x}"

    return _UNSAFE.sub(escaped, text)


def __dir__() -> list[str]:
    return sorted(__all__)


class FragdexError(Exception):
    """The root of the tree: catch it to catch everything fragdex raises on purpose.

    Attributes:
        message: one sentence, without the position.
        path: the box path (`moov/trak[2]/mdia`), or None.
        offset: bytes from the start of the file, or None.
        expected: what the rule requires, or None.
        found: the actual content, or None.
        advice: what to do about it, or None.

    >>> error = FragdexError("the run is too long", path="moof/traf/trun", offset=96)
    >>> str(error)
    'the run is too long (moof/traf/trun at byte 96)'
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        expected: object = None,
        found: object = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.offset = offset
        self.expected = expected
        self.found = found
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its attributes, so that it can be raised in another process."""
        # An ImportError has a `path` of its own, which is not in its dict.
        known = {"path": self.path, **self.__dict__}
        state = {name: _sendable(value) for name, value in known.items()}
        return _restored, (type(self), tuple(map(_sendable, self.args)), state)

    def placed(self, path: str, offset: int) -> FragdexError:
        """Add the place on the way up: `path` is put before the known one, `offset` is added.

        Returns the error itself, so that a parser can write `raise error.placed(...)`.

        >>> FragdexError("bad", path="trun", offset=4).placed("moof/traf", 100).path
        'moof/traf/trun'
        """
        self.path = f"{path}/{self.path}" if self.path else path
        self.offset = offset + (self.offset or 0)
        return self

    def __str__(self) -> str:
        text = self.message
        if self.expected is not None:
            text += f": expected {self.expected}"
            text += "" if self.found is None else f", found {self.found}"
        place = self.path or ""
        if self.offset is not None:
            place += f"{' ' if place else ''}at byte {self.offset}"
        if place:
            text += f" ({place})"
        if self.advice:
            text += f"; {self.advice}"
        return text


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The known name that is nearest to a wrong one, as the end of a sentence; "" where none is."""
    from difflib import get_close_matches

    near = get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse arguments by names that are not known.

    Raises:
        TypeError: one of them is not.
    """
    for name in given:
        if name not in known:
            raise TypeError(f"{what} takes no argument {name}{did_you_mean(name, known)}")


def _restored(
    kind: type[FragdexError], args: tuple[object, ...], state: dict[str, object]
) -> FragdexError:
    error = kind.__new__(kind, *args)
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error


def _sendable(value: object) -> object:
    """A value as it is where it can be pickled, else its text."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if isinstance(value, memoryview):
        return bytes(value)
    import pickle

    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001  # whatever a value of another library raises
        return str(value)
    return value


class FormatError(FragdexError):
    """Bytes that break the rules of their format."""


class NotISOBMFF(FormatError):
    """Nothing in the input is an ISO base media file (ISO/IEC 14496-12, 4.2)."""


class MalformedBox(FormatError):
    """A box contradicts itself, its parent or the standard."""


class TruncatedInput(FormatError):
    """The input ends before what it announces, and nothing before that could be used."""


class LimitExceeded(FormatError):
    """A number that the input claims passes a named limit of fragdex; nothing was allocated."""


class DamagedIndex(FormatError):
    """A saved index that cannot be trusted: wrong magic, version, checksum, or columns outside."""


class MalformedCaptions(FormatError):
    """WebVTT, SubRip or JSON captions that cannot be read.

    Attributes:
        line: number of the line, from 1, or None.

    >>> str(MalformedCaptions("this is not a timing", line=3))
    'this is not a timing (line 3)'
    """

    def __init__(self, message: str, *, line: int | None = None, **place: Any) -> None:
        super().__init__(message if line is None else f"{message} (line {line})", **place)
        self.line = line


class InvalidDigest(FormatError, ValueError):
    """Text that is not an md5: neither 32 hex digits nor the dashed 8-4-4-4-12 form."""


class BuildError(FragdexError, ValueError):
    """A value that cannot be written in its field: too large, of the wrong type, or missing."""


class InvalidRange(FragdexError, ValueError):
    """Byte positions that make no range, or lie outside of what they address."""


class SourceError(FragdexError, OSError):
    """Reading the input failed."""


class SourceNotFound(SourceError, FileNotFoundError):
    """There is no such file or object; also a FileNotFoundError, with its `errno`.

    Attributes:
        filename: path or URL of what is missing; None where it has no name.

    >>> error = SourceNotFound("there is no file a.mp4", filename="a.mp4")
    >>> isinstance(error, FileNotFoundError), error.filename, str(error)
    (True, 'a.mp4', 'there is no file a.mp4')
    """

    def __init__(self, message: str, *, filename: str | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.errno, self.strerror, self.filename = errno.ENOENT, message, filename

    def __reduce__(self) -> tuple[Any, ...]:
        restored, (kind, args, state) = super().__reduce__()
        system = {"errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return restored, (kind, args, {**state, **system})


class SourceUnavailable(SourceError):
    """The source did not answer, or answered wrongly, after bounded retries."""


class SourceChanged(SourceError):
    """The object is not the one first seen: its ETag or its length differs."""


class RangeIgnored(SourceError):
    """The server answers a range request with the whole file; it was left at its first answer."""


class BudgetExceeded(SourceError):
    """The next read would pass `max_bytes` or `max_requests`; it was not made."""


class TrackNotFound(FragdexError, LookupError):
    """No such track, or one of that id in each of several periods."""


class InexactIndex(FragdexError):
    """The answer needs samples, and this index holds fragments only."""


class NoSyncSample(FragdexError, LookupError):
    """The track has no sync sample, or no sample at all: there is nowhere to seek to."""


class UnverifiedSync(FragdexError):
    """The bytes of a sample do not show whether a decoder can start there.

    >>> raise UnverifiedSync("it is encrypted")
    Traceback (most recent call last):
    ...
    fragdex.errors.UnverifiedSync: it is encrypted
    """


class IndexMismatch(FragdexError):
    """The index does not describe this file."""


class UndecodableMedia(FragdexError):
    """Samples that cannot be decoded: encrypted, damaged, or of a codec without a decoder.

    Attributes:
        start, stop: seconds of presentation time that are concerned (exclusive), or None: all.

    >>> UndecodableMedia("the sound is encrypted", start=2.0, stop=4.0).stop
    4.0
    """

    def __init__(
        self,
        message: str,
        *,
        start: float | None = None,
        stop: float | None = None,
        advice: str | None = None,
    ) -> None:
        if start is not None and stop is not None:
            message = f"{message} ({start:.3f} s to {stop:.3f} s)"
        super().__init__(message, advice=advice)
        self.start, self.stop = start, stop


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'fragdex[{extra}]'"


class MissingExtra(FragdexError, ImportError):
    """An optional package is not installed; `advice` says how to install it.

    Args:
        message: one sentence: what needs which package.
        extra: the extra of pyproject.toml that has the package.
        advice: instead of the command that installs the extra.
    """

    def __init__(
        self, message: str, *, extra: str | None = None, advice: str | None = None, **place: Any
    ) -> None:
        if advice is None and extra is not None:
            advice = install_command(extra)
        super().__init__(message, advice=advice, **place)


class ServiceError(FragdexError):
    """The root of what the service raises on purpose.

    Args:
        message: one sentence for the caller; never a path, a query or another tenant's data.
        pointer: JSON pointer (RFC 6901) into the request body, or the name of a parameter.
        header: the name of a header field, where the fault is there.
        more: members for the answer besides the standard ones (`next_byte`, `limit` …).
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        header: str | None = None,
        more: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.pointer = pointer
        self.header = header
        self.more = dict(more or {})
        self.retry_after = retry_after


class RecordNotFound(ServiceError, LookupError):
    """No such record of this tenant; another tenant's record is not found either."""


class NotYet(RecordNotFound):
    """A part of a result that is still being made; `more["state"]` says how far the record is."""


class UploadIncomplete(RecordNotFound):
    """Bytes of an upload are missing; it continues at `more["next_byte"]`."""


class Unauthenticated(ServiceError):
    """The request carries no key, an unknown one, or a revoked one."""


class Forbidden(ServiceError):
    """The token or key is genuine, and does not allow this."""


class InvalidRequest(ServiceError, ValueError):
    """A field or parameter that breaks a rule; `pointer` or `header` names it."""


class IdempotencyMismatch(InvalidRequest):
    """The Idempotency-Key was used for another request before."""


class UploadLengthMismatch(InvalidRequest):
    """The lengths of a resumable upload contradict each other, or its bytes pass them."""


class Unprocessable(ServiceError):
    """The bytes cannot be used: they are of another format, damaged, or over a limit."""


class DigestMismatch(Unprocessable):
    """The bytes have another md5 than announced: they were damaged on the way, or are others."""


class BodyLengthMismatch(Unprocessable):
    """A body that is shorter or longer than announced; it continues at `more["next_byte"]`."""


class PageFailed(Unprocessable):
    """A page that cannot be rendered, by its own fault: it hangs, crashes, or never says how long.

    Trying again does not help. `more` may hold what the page said until then: `console`,
    `blocked`, `refused`.
    """


class BrowserGone(ServiceError, ConnectionError):
    """The browser ended though its page is not known to be guilty; another one may do it."""


class Conflict(ServiceError):
    """The record does not allow this request; another request may do it."""


class RequestRunning(Conflict):
    """The first request with the same Idempotency-Key is running."""


class Obstructed(Conflict):
    """Something else has to be changed or deleted first; `advice` says what."""


class Finished(Conflict):
    """The record is final: complete, failed or cancelled. `more["state"]` says which."""


class UploadGap(Conflict):
    """The chunk starts after a gap; resume at `more["next_byte"]`."""


class UploadOffsetMismatch(Conflict):
    """The bytes begin at another offset than the upload's; `more["expected-offset"]` is that."""


class UploadCompleted(Finished):
    """The upload was completed: it takes no more bytes."""


class UploadBusy(Conflict):
    """Another request is writing these bytes; its lease ends in seconds if it is dead."""


class Superseded(UploadBusy):
    """A later request of the same upload took the place of this one."""


class NotReady(Conflict):
    """The requested result is being made; `more["state"]` says how far it is."""


class BytesMissing(NotReady):
    """Bytes that the result is made of are to be uploaded first."""


class NeverReady(NotReady):
    """The requested result failed or was cancelled; `more["state"]` says which."""


class TooLarge(ServiceError):
    """More than this service takes; `more["limit"]` is the limit in bytes."""


class QuotaExceeded(TooLarge):
    """The tenant would store more than its quota; nothing of it was kept."""


class TooManyRequests(ServiceError):
    """Over the rate limit of the key, or the limit of jobs in progress of the tenant.

    `retry_after` says when to come again.
    """


class RequestTimedOut(ServiceError):
    """The body of a request stopped coming; the connection is closed."""


class NotAcceptable(ServiceError):
    """None of the forms that the caller takes is one there is."""


class UnsupportedMediaType(ServiceError):
    """A body of another type than this path takes."""


class UnsupportedVersion(ServiceError):
    """An unsupported version of a protocol."""


class ChecksumMismatch(ServiceError):
    """The bytes of a request have another checksum than it says; nothing of them was taken."""


class StoreFull(ServiceError, OSError):
    """No room left where bytes are kept; nothing that was here is lost."""


class MediaUnavailable(ServiceError):
    """The server of remote media does not answer, or they change while they are read."""


class Unavailable(ServiceError):
    """The database or the store does not answer; the service recovers by itself."""


class EngineUnavailable(Unavailable):
    """A program, model or encoder is missing; `advice` says how to get it."""


class ConfigError(ServiceError):
    """A setting that cannot be used; names the setting and where its value came from."""
