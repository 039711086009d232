"""What the commands that ask a service share: where it is, and with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fragdex.errors import MissingExtra

if TYPE_CHECKING:
    from fragdex.client import Client

__all__ = ["Key", "Server", "client_of"]

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
