"""What the commands that ask a service share: where it is, and with which key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fragdex.cli.report import complain
from fragdex.errors import FragdexError, MissingExtra

if TYPE_CHECKING:
    from fragdex.client import Client
    from fragdex.client.exchange import Request

__all__ = ["Key", "Server", "cancelled_by_ctrl_c", "client_of", "follow"]

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="FRAGDEX_URL",
        help="The service, with the path before /api/v1 where it has one.",
        show_default="http://127.0.0.1:8000",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="FRAGDEX_KEY",
        help="API key of the service.",
        show_default=False,
    ),
]


def client_of(server: str | None, key: str | None) -> Client:
    """A client of the service.

    Raises:
        MissingExtra: the extra `client` is not installed.
    """
    try:
        from fragdex.client import Client
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"a client needs {error.name}", advice="pip install 'fragdex[client]'"
        ) from error
    return Client(server, key)


@contextmanager
def cancelled_by_ctrl_c(client: Client, cancel: Request[Any], job: str) -> Iterator[None]:
    """Have the service cancel a job at Ctrl+C; a second one does not wait for its response.

    Args:
        cancel: such as `api.cancel_render(id)`.
        job: what it is, for the message.
    """
    try:
        yield
    except KeyboardInterrupt:
        complain(f"cancelling {job}; Ctrl+C again leaves at once")
        try:
            client.send(cancel)
        except FragdexError as error:
            complain(f"{job} may go on: {error}")
        else:
            complain(f"{job} was cancelled")
        raise


def follow(client: Client, events: Request[Any], shown: Callable[[int, int], object]) -> None:
    """Wait for the end of a job, good or bad.

    Args:
        events: of the job, such as `api.get_render_progress(id)`.
        shown: called with the parts done and those in all, once these are known.
    """
    from fragdex.client import JobFailed

    done = size = 0
    try:
        for event in client.events(events):
            size = event.data.size or size
            done += event.data.count or 0
            if size:
                shown(done, size)
    except JobFailed:
        pass  # its record says why
