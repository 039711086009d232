"""`fragdex verify`: hold an index against its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand, stem
from fragdex.cli.output import emit, json_line
from fragdex.cli.report import byte_progress
from fragdex.errors import FragdexError

__all__ = ["verify"]


@options.opens("init", "strict", "max_bytes", "max_requests")
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
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Check an index against its file and list every difference; exit code 1 if there is one.

    Every fragment's header in FILE is read. For a .fidx the checksums of all columns are tested
    too, and the md5 of FILE if the index has one.

    Examples:
      fragdex verify movie.mp4 movie.fidx
      fragdex verify movie.mp4                 the sidx or mfra inside
    """
    # FILE may have changed since an earlier call in this process.
    _exact.cache_clear()
    _md5.cache_clear()
    work = Work("verify")
    comparing = partial(_compare, file=file, opening=opening)

    def pieces() -> Iterator[str]:
        # Without the truth of FILE there is nothing to hold any index against.
        try:
            _exact(file, **opening)
        except FragdexError as error:
            work.fail(file, str(error))
            return
        names = expand(indexes) if indexes else [file]
        for _, (label, found) in work.each(comparing, names, jobs):
            if found:
                work.code = max(work.code, 1)
            yield from _report(file, label, found, json)

    emit(pieces(), output)
    return work.code


@cache
def _exact(file: str, **opening: Any) -> Any:
    """What FILE says itself, read once in each process."""
    import fragdex

    given = {key: value for key, value in opening.items() if value is not None}
    return fragdex.index(file, exact=True, **given)


@cache
def _md5(file: str) -> str:
    import fragdex

    with byte_progress(file) as bar:
        return fragdex.md5(file, progress=bar).hex


def _compare(
    name: str, file: str, opening: dict[str, Any]
) -> tuple[tuple[str, list[Any]], Sequence[str]]:
    """What to call an index, and its differences from the file; FILE itself: the index inside."""
    from fragdex.fragments.findings import Finding
    from fragdex.seeking.difference import differences

    truth = _exact(file, **opening)
    if name == file:
        return _embedded(file, truth, opening), ()
    from fragdex.cli.opening import open_any, saved_form

    form = saved_form(name)
    if form is None:
        raise FragdexError(
            f"{name} is no saved index that verify takes: a .fidx, or JSON (fragdex index -f fidx "
            "or json)",
            advice="the sidx or mfra inside a file is verified by: fragdex verify FILE",
        )
    if form == "fidx":
        from fragdex.formats import fidx

        # raises DamagedIndex, as opening does where the head is damaged
        fidx.verify(name)
    claimed = open_any(name, compare=False)
    if opening["init"] is None and _knows_more(claimed, truth):
        # made with an initialization segment, which the index knows and the file does not
        truth = _exact(file, **{**opening, "init": claimed})
    found = list(differences(claimed, truth))
    if claimed.source.md5 is not None:
        digest = _md5(file)
        if digest != claimed.source.md5:
            message = f"the md5 of the file is {digest}, the index says {claimed.source.md5}"
            found.append(Finding("md5", message))
    return (name, found), ()


def _knows_more(claimed: Any, truth: Any) -> bool:
    """Whether an index has the tracks of a moov, and the file has no moov."""
    return not any(period.movie.tracks for period in truth.periods) and any(
        period.movie.tracks for period in claimed.periods
    )


def _embedded(file: str, truth: Any, opening: dict[str, Any]) -> tuple[str, list[Any]]:
    """The sidx or mfra inside a file; one that was not believed says why among the findings."""
    import fragdex
    from fragdex.seeking.difference import differences
    from fragdex.sources import open_source

    budget = {key: opening[key] for key in ("max_bytes", "max_requests")}
    with open_source(file, **budget) as source:
        # A local file is walked as a rule: that is cheap, and its mfra is not looked at.
        source.remote = True
        claimed = fragdex.index(source, init=opening["init"])
    if claimed.how.method in ("sidx", "mfra"):
        return f"{stem(file)}'s {claimed.how.method}", list(differences(claimed, truth))
    doubts = [f for f in claimed.findings if f.code.startswith(("sidx", "mfra"))]
    if not doubts:
        raise FragdexError(
            f"{file} has no sidx and no mfra inside to be verified",
            advice="name an index: fragdex verify FILE INDEX",
        )
    return f"{stem(file)}'s index", doubts


def _report(file: str, label: str, found: list[Any], json: bool) -> Iterator[str]:
    if json:
        from dataclasses import asdict

        value = {"file": file, "index": label, "ok": not found}
        yield json_line({**value, "differences": [asdict(finding) for finding in found]})
        return
    for finding in found:
        yield f"{label}: {finding}\n"
    count = f"{len(found)} difference{'' if len(found) == 1 else 's'}"
    yield f"{label}: {'OK' if not found else f'FAILED, {count}'}\n"
