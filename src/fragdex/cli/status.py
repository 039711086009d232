"""`fragdex status`: what a service has, and how far its work is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any

import typer

from fragdex.cli import options, remote
from fragdex.cli.inputs import Work
from fragdex.cli.output import emit, json_line
from fragdex.errors import FragdexError

__all__ = ["record_of", "status"]


def status(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Of files, renders or transcriptions. Default: the newest of each.",
            show_default=False,
        ),
    ] = None,
    server: remote.Server = None,
    key: remote.Key = None,
    most: Annotated[
        int, typer.Option("--most", min=1, metavar="N", help="So many of each kind.")
    ] = 10,
    json: options.Json = False,
) -> int:
    """Show files, renders and transcriptions of a service: id, status, what it is.

    Needs httpx (pip install 'fragdex[client]').

    Examples:
      fragdex status
      fragdex status 0193f0a2-… --json
    """
    work = Work("status")
    with remote.client_of(server, key) as client:

        def lines() -> Iterator[str]:
            if not ids:
                for kind, record in _newest(client, most):
                    yield _line(kind, record, json)
                return

            def asked(name: str) -> tuple[tuple[str, Any], tuple[str, ...]]:
                return record_of(client, name), ()

            for _, (kind, record) in work.each(asked, ids, 1):
                yield _line(kind, record, json)

        emit(lines(), None)
    return work.code


def _newest(client: Any, most: int) -> Iterator[tuple[str, Any]]:
    from fragdex.client import api

    for kind, request, member in (
        ("file", api.list_files(limit=min(most, 200)), "files"),
        ("render", api.list_renders(limit=min(most, 200)), "renders"),
        ("transcription", api.list_transcriptions(limit=min(most, 200)), "transcriptions"),
    ):
        records = (one for page in client.pages(request) for one in getattr(page, member))
        yield from ((kind, record) for record in islice(records, most))


def record_of(client: Any, id: str) -> tuple[str, Any]:
    """The kind and the record of an id.

    Raises:
        FragdexError: the tenant of the key has no such record.
    """
    from fragdex.client import NotFound, api

    asked: tuple[tuple[str, Any], ...] = (
        ("file", api.get_file(id)),
        ("render", api.get_render(id)),
        ("transcription", api.get_transcription(id)),
    )
    for kind, request in asked:
        with suppress(NotFound):
            return kind, client.send(request)
    raise FragdexError(f"there is no such file, render or transcription: {id}")


def _line(kind: str, record: Any, json: bool) -> str:
    if json:
        from msgspec import to_builtins

        return json_line({"kind": kind, **to_builtins(record)})
    return "\t".join((record.id, kind, record.status, *_about(record))) + "\n"


def _about(record: Any) -> Sequence[str]:
    problem = getattr(record, "problem", None)
    parts = [
        getattr(record, "filename", None),
        f"{record.byte_size:,} bytes" if getattr(record, "byte_size", None) else None,
        problem.detail if problem else None,
    ]
    return [part for part in parts if part]
