"""`fragdex verify`: hold an index against its file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, stem
from fragdex.cli.output import emit, json_line
from fragdex.cli.report import byte_progress
from fragdex.errors import FragdexError

__all__ = ["verify"]


def verify(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The media file or URL.", show_default=False)
    ],
    indexes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INDEX",
            help="Its .fidx or JSON indexes. Default: the sidx or mfra inside FILE.",
            show_default=False,
        ),
    ] = None,
    init: options.Init = None,
    strict: options.Strict = False,
    json: options.Json = False,
    output: options.Output = None,
    max_bytes: options.MaxBytes = None,
    max_requests: options.MaxRequests = None,
) -> int:
    """Hold an index against its file, and say each difference; the exit code is 1 if there is one.

    Every fragment's header in FILE is read. Of a .fidx the checksums of all columns are tested,
    too, and the md5 of FILE if the index has one.

    Examples:
      fragdex verify movie.mp4 movie.fidx
      fragdex verify movie.mp4                 the sidx or mfra inside
    """
    work = Work("verify")
    opening = {
        "init": init,
        "strict": strict,
        "max_bytes": max_bytes,
        "max_requests": max_requests,
    }

    def pieces() -> Iterator[str]:
        try:
            truth = _exact(file, opening)
        except FragdexError as error:
            work.fail(file, str(error))
            return
        names: list[str | None] = [*(indexes or [])] or [None]
        for name in names:
            try:
                label, found = _compare(file, name, truth, opening)
            except (FragdexError, OSError) as error:
                work.fail(name or file, str(error))
                continue
            if found:
                work.code = max(work.code, 1)
            yield from _told(file, label, found, json)

    emit(pieces(), output)
    return work.code


def _exact(file: str, opening: dict[str, Any]) -> Any:
    import fragdex

    given = {key: value for key, value in opening.items() if value is not None}
    return fragdex.index(file, exact=True, **given)


def _compare(
    file: str, name: str | None, truth: Any, opening: dict[str, Any]
) -> tuple[str, list[Any]]:
    """What to call an index, and its differences from the file."""
    import fragdex
    from fragdex.fragments.findings import Finding
    from fragdex.seeking.difference import differences

    if name is None:
        return _embedded(file, truth, opening)
    from fragdex.cli.opening import open_any, saved_form

    form = saved_form(name)
    if form is None:
        raise FragdexError(
            f"{name} is no saved index", advice="verify FILE INDEX takes the media file first"
        )
    if form == "fidx":
        from fragdex.formats import fidx

        # raises DamagedIndex, as opening does where the head is damaged
        fidx.verify(name)
    claimed = open_any(name)
    found = list(differences(claimed, truth))
    if claimed.source.md5 is not None:
        with byte_progress(file) as bar:
            digest = fragdex.md5(file, progress=bar).hex
        if digest != claimed.source.md5:
            message = f"the md5 of the file is {digest}, the index says {claimed.source.md5}"
            found.append(Finding("md5", message))
    return name, found


def _embedded(file: str, truth: Any, opening: dict[str, Any]) -> tuple[str, list[Any]]:
    """The sidx or mfra inside a file; one that was not believed says why among the findings."""
    import fragdex
    from fragdex.seeking.difference import differences

    given = {
        key: opening[key]
        for key in ("init", "max_bytes", "max_requests")
        if opening[key] is not None
    }
    claimed = fragdex.index(file, **given)
    if claimed.how.method in ("sidx", "mfra"):
        return f"{stem(file)}'s {claimed.how.method}", list(differences(claimed, truth))
    doubts = [f for f in claimed.findings if f.code.startswith(("sidx", "mfra"))]
    if not doubts:
        raise FragdexError(
            f"{file} has no sidx and no mfra inside to be verified",
            advice="name an index: fragdex verify FILE INDEX",
        )
    return f"{stem(file)}'s index", doubts


def _told(file: str, label: str, found: list[Any], json: bool) -> Iterator[str]:
    if json:
        from dataclasses import asdict

        value = {"file": file, "index": label, "ok": not found}
        yield json_line({**value, "differences": [asdict(finding) for finding in found]})
        return
    for finding in found:
        yield f"{label}: {finding}\n"
    count = f"{len(found)} difference{'' if len(found) == 1 else 's'}"
    yield f"{label}: {'OK' if not found else f'FAILED, {count}'}\n"
