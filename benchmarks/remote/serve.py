"""A server with a delay, in a process of its own: python serve.py FILE BYTES FAULTS (as JSON).

Prints its URL; at a line on its input prints requests, bytes and most requests at once since the
line before, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fragdex.testing import Faults, RangeServer


def main() -> None:
    """Serve the first bytes of a file until the input ends."""
    path, size, faults = sys.argv[1:4]
    with Path(path).open("rb") as file:
        content = file.read(int(size) or -1)
    with RangeServer(content, faults=Faults(**json.loads(faults))) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            print(json.dumps([len(server.requests), server.bytes_sent, server.most_at_once]))
            sys.stdout.flush()
            server.requests.clear()
            server.most_at_once = 0


if __name__ == "__main__":
    main()
