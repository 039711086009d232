"""`fragdex push`: send files to a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import typer

from fragdex.cli import options, remote
from fragdex.cli.inputs import Work, expand, is_url
from fragdex.cli.output import emit, json_line
from fragdex.cli.report import byte_progress, part_progress

__all__ = ["push", "wait_until_processed"]


def push(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Media, images, captions, or globs; no URLs."),
    ],
    server: remote.Server = None,
    key: remote.Key = None,
    kind: Annotated[
        Literal["video", "image", "caption"] | None,
        typer.Option(
            "--type",
            help="What each FILE is; video is any media.",
            show_default="as the suffix says",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until each file is processed, too.")
    ] = False,
    hash_first: Annotated[
        bool,
        typer.Option(
            "--hash-first/--hash-later",
            help="Look for each file by its md5 before it is sent.",
        ),
    ] = True,
    json: options.Json = False,
) -> int:
    """Send files to a service; prints the id of each.

    What is there already is not sent again, and what broke off is continued: also by the same
    command, if this one is ended. A file that is larger than the service takes is refused before
    its bytes are sent. Needs httpx (pip install 'fragdex[client]').

    Examples:
      fragdex push film.mp4
      fragdex push 'films/*.mp4' --server https://media.example.org --wait --json
    """
    names = expand(files)
    if urls := [name for name in names if is_url(name)]:
        raise typer.BadParameter(f"{urls[0]}: only files can be pushed")
    work = Work("push")
    with remote.client_of(server, key) as client:
        sending = partial(_send, client=client, kind=kind, wait=wait, hash_first=hash_first)

        def lines() -> Iterator[str]:
            for name, record in work.each(sending, names, 1):
                if record.status == "failed":
                    work.code = 2
                if json:
                    from msgspec import to_builtins

                    yield json_line({"file": name, **to_builtins(record)})
                else:
                    yield f"{record.id}\t{record.status}\t{name}\n"

        emit(lines(), None)
    return work.code


def _send(
    name: str, client: Any, kind: Any, wait: bool, hash_first: bool
) -> tuple[Any, Sequence[str]]:
    with byte_progress(name) as progress:
        record = client.push(name, type=kind, hash_first=hash_first, progress=progress)
    if wait:
        record = wait_until_processed(client, record, name)
    return record, [record.problem.detail] if record.problem else []


def wait_until_processed(client: Any, record: Any, name: str) -> Any:
    """The record of a file once its processing has ended, well or not; `name` is shown."""
    from fragdex.client import JobFailed, api

    if record.status != "processing":
        return record
    with part_progress(name, "% processed") as progress:
        try:
            for event in client.events(api.get_file_progress(record.id)):
                if event.data.progress is not None:
                    progress(round(event.data.progress * 100), 100)
        except JobFailed:
            pass  # its record says why
    return client.send(api.get_file(record.id))
