"""A process before another server: `python relay.py PORT TO_PORT`, both on loopback.

Where a server keeps what it was given in memory, this is what can be killed of it: every
connection breaks, and none is taken until it is started again, as if the server had died and
kept its disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

BUFFER = 1 << 16


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(BUFFER):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def main(port: int, to: int) -> None:
    """Pass on connections for ever."""

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    server = await asyncio.start_server(taken, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
