"""What an index has to say about odd files: nothing is dropped or repaired silently."""

from __future__ import annotations

from dataclasses import replace

from fragdex.record import record

__all__ = ["Finding", "Findings"]

MAX_KINDS = 1000
"""Different findings kept of one file; a hostile file must not fill the memory with complaints."""


@record(frozen=True, slots=True)
class Finding:
    """One problem of a file, and how often it occurs.

    Attributes:
        code: short name, listed in docs/findings.md.
        message: one sentence.
        offset: byte of its first occurrence, or None.
        path: box path of its first occurrence, or None.
        track: track_ID it concerns, or None.
        count: number of occurrences.

    >>> print(Finding("stale-base-offset", "the base offset is stale", offset=96, track=1))
    stale-base-offset: the base offset is stale (track 1, byte 96)
    """

    code: str
    message: str
    offset: int | None = None
    path: str | None = None
    track: int | None = None
    count: int = 1

    def __str__(self) -> str:
        places = []
        if self.track is not None:
            places.append(f"track {self.track}")
        if self.path:
            places.append(self.path)
        if self.offset is not None:
            places.append(f"byte {self.offset:,}")
        if self.count > 1:
            places.append(f"{self.count:,} times")
        return f"{self.code}: {self.message}" + (f" ({', '.join(places)})" if places else "")


class Findings:
    """A collector: the same finding on the same track is counted, not repeated."""

    def __init__(self, known: tuple[Finding, ...] = ()) -> None:
        self._found = {(f.code, f.track): f for f in known}

    def add(
        self,
        code: str,
        message: str,
        *,
        offset: int | None = None,
        path: str | None = None,
        track: int | None = None,
        count: int = 1,
    ) -> None:
        """Note a finding; its first place is kept."""
        key = (code, track)
        if key in self._found:
            before = self._found[key]
            self._found[key] = replace(before, count=before.count + count)
        elif len(self._found) < MAX_KINDS:
            self._found[key] = Finding(code, message, offset, path, track, count)

    def all(self) -> tuple[Finding, ...]:
        """Everything found, in file order; what has no place comes first."""
        return tuple(sorted(self._found.values(), key=lambda f: (f.offset or 0, f.code)))
