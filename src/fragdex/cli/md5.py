"""`fragdex md5`: print digests like md5sum, and check them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import STDIN, Work, expand
from fragdex.cli.output import emit, json_line
from fragdex.cli.report import byte_progress, complain

__all__ = ["md5"]

# What md5sum writes: digest, space, space or star (text or binary), name; a backslash first if
# backslashes and line breaks in the name are written as \\ and \n.
_LINE = re.compile(r"(\\?)([0-9A-Fa-f-]{32,36}) [ *](.+)", re.DOTALL)
_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


@options.opens("max_bytes", "max_requests")
def md5(
    files: options.Files,
    check: Annotated[
        bool,
        typer.Option(
            "--check", "-c", help="FILEs are lists of digests; check the files that they name."
        ),
    ] = False,
    dashed: Annotated[
        bool, typer.Option("--dashed", help="Print digests in the 8-4-4-4-12 form of UUIDs.")
    ] = False,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Print or check md5 digests of whole files, as md5sum does; - is stdin.

    With -c, each line of FILE is a digest (plain or dashed) and a name, and the exit code is 1 if
    any differs or cannot be read.

    Examples:
      fragdex md5 *.mp4 > sums.md5
      fragdex md5 -c sums.md5
    """
    hashing = partial(_digest, opening=opening, progress=jobs == 1)
    if check:
        checking = _Check(hashing, json, jobs)
        emit(checking.lines(expand(files)), output)
        return checking.code

    work = Work("md5")

    def lines() -> Iterator[str | bytes]:
        for name, (plain, uuid_form) in work.each(hashing, expand(files), jobs):
            digest = uuid_form if dashed else plain
            if json:
                yield json_line({"file": name, "md5": digest})
            else:
                safe = "".join(_ESCAPED.get(c, c) for c in name)
                # As bytes: md5sum's escaping, and no other, so that names can be read again.
                line = f"{'' if safe == name else chr(92)}{digest}  {safe}\n"
                yield line.encode("utf-8", "surrogateescape")

    emit(lines(), output)
    return work.code


def _digest(
    name: str, *, opening: dict[str, Any], progress: bool
) -> tuple[tuple[str, str], Sequence[str]]:
    """Hex and dashed digest of one input."""
    if name == STDIN:
        from fragdex.digest import Md5

        running = Md5()
        while piece := sys.stdin.buffer.read(1 << 20):
            running.update(piece)
        digest = running.digest()
    else:
        from fragdex.sources import md5 as md5_of

        with byte_progress(name) if progress else _unwatched() as bar:
            digest = md5_of(name, progress=bar, **opening)
    return (digest.hex, digest.dashed), ()


class _unwatched:  # noqa: N801 — a context that gives nothing
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


class _Check:
    """Lists of digests held against the files they name."""

    def __init__(
        self, hashing: partial[tuple[tuple[str, str], Sequence[str]]], json: bool, jobs: int
    ) -> None:
        self.hashing, self.json, self.jobs = hashing, json, jobs
        self.code = self.differing = self.unread = self.malformed = 0

    def lines(self, lists: Sequence[str]) -> Iterator[str]:
        """`name: OK` or `name: FAILED` for each line; counts of what went wrong on stderr."""
        expected: list[tuple[str, str]] = []
        for name in lists:
            expected += self._read(name)
        work = Work("md5 -c")
        names = [name for name, _ in expected]
        found = dict(work.each(self.hashing, list(dict.fromkeys(names)), self.jobs))
        for name, digest in expected:
            if name not in found:
                self.unread += 1
                verdict = "FAILED open or read"
            elif digest == found[name][0]:
                verdict = "OK"
            else:
                self.differing += 1
                verdict = "FAILED"
            yield (
                json_line({"file": name, "ok": verdict == "OK"})
                if self.json
                else (f"{name}: {verdict}\n")
            )
        self._count("line", self.malformed, "is improperly formatted", "are improperly formatted")
        self._count("listed file", self.unread, "could not be read", "could not be read")
        self._count("computed checksum", self.differing, "did NOT match", "did NOT match")
        if self.differing or self.unread:
            self.code = max(self.code, 1)

    def _read(self, name: str) -> list[tuple[str, str]]:
        if name == STDIN:
            text = sys.stdin.read()
        else:
            with open(name, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        listed, malformed = [], 0
        for line in text.splitlines():
            entry = _entry(line)
            if entry is not None:
                listed.append(entry)
            elif line.strip() and not line.startswith("#"):
                malformed += 1
        if not listed:
            complain(f"{name}: no properly formatted md5 lines found")
            self.code = 2
        else:
            self.malformed += malformed
        return listed

    @staticmethod
    def _count(noun: str, count: int, one: str, many: str) -> None:
        if count:
            complain(
                f"WARNING: {count} {noun}{'' if count == 1 else 's'} {one if count == 1 else many}"
            )


def _entry(line: str) -> tuple[str, str] | None:
    """Name and hex digest of one line, or None where it is no such line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    from fragdex.digest import parse_digest
    from fragdex.errors import InvalidDigest

    escaped, digest, name = match.groups()
    if escaped:
        name = re.sub(r"\\([\\nr])", lambda m: {"\\": "\\", "n": "\n", "r": "\r"}[m[1]], name)
    try:
        return name, parse_digest(digest).hex
    except InvalidDigest:
        return None
