"""What a child runs first: `python -m fragdex.sandbox.start MODULE WALLS`.

The walls stand before the module is imported; whatever it prints goes to the log of its parent.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
from contextlib import suppress

from fragdex.sandbox.walls import Walls, shut_in


def main() -> None:
    """Shut this process in, and run the module's `main(channel)`."""
    module, plain = sys.argv[1:]
    more = json.loads(plain)
    missing = shut_in(Walls(**{**more, "readable": tuple(more["readable"])}))
    with suppress(OSError):
        os.nice(5)  # requests come first
    from fragdex.sandbox.channel import Channel, Lines

    channel = Channel(Lines(socket.socket(fileno=os.dup(0))), missing)
    channel.send(missing=missing)
    importlib.import_module(module).main(channel)


if __name__ == "__main__":
    main()
