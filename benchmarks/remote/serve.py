"""A server with a delay, in a process of its own: python serve.py FILE BYTES FAULTS (as JSON).

FILE may be a folder, whose files are served by their paths in it. Prints its URL; at a line on its
input prints requests, bytes and most requests at once since the line before, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fragdex.testing import Faults, RangeServer


def main() -> None:
    """Serve the first bytes of a file, or those of a folder's files, until the input ends."""
    path, size, faults = sys.argv[1:4]

    def first(file: Path) -> bytes:
        with file.open("rb") as opened:
            return opened.read(int(size) or -1)

    where = Path(path)
    content: bytes | dict[str, bytes] = first(where) if where.is_file() else {
        str(one.relative_to(where)): first(one) for one in where.rglob("*") if one.is_file()
    }  # fmt: skip
    with RangeServer(content, faults=Faults(**json.loads(faults))) as server:
        print(server.url if where.is_file() else server.at("").rstrip("/"), flush=True)
        for _ in sys.stdin:
            print(json.dumps([len(server.requests), server.bytes_sent, server.most_at_once]))
            sys.stdout.flush()
            server.requests.clear()
            server.most_at_once = 0


if __name__ == "__main__":
    main()
