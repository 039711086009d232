"""What the service is held against, in the same kind of process: python plain.py FILE.

`/constant` is a FastAPI route that answers a constant; `/file` is Starlette's own file response,
bare: no framework around it.
"""

from __future__ import annotations

import logging
import sys

import uvicorn
from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

app = FastAPI()
path = sys.argv[1]


@app.get("/constant")
async def constant() -> dict[str, str]:
    """Some JSON."""
    return {"answer": "constant"}


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """Starlette's file response for `/file`, FastAPI for the rest."""
    if scope["type"] == "http" and scope["path"] == "/file":
        await FileResponse(path)(scope, receive, send)
    else:
        await app(scope, receive, send)


class Told(uvicorn.Server):
    """Says where it listens, as the service does."""

    async def startup(self, sockets: object = None) -> None:
        """Listen, and tell the URL."""
        await super().startup()
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"Serving http://127.0.0.1:{port} (plain)", flush=True)


logging.disable(logging.INFO)
Told(uvicorn.Config(bare, port=0, access_log=False, log_config=None, ws="none")).run()
