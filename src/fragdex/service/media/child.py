"""The media work as a process of its own: `python -m fragdex.service.media.child INPUT FOLDER`.

With `scrub` behind them, the scrub track alone is made.

Says what it does in JSON lines on its output: `{"progress": 0…1}` several times a second, then
`{"made": […]}` or `{"unprocessable": {…}}`. Ends by itself when its input is closed, that is when
whoever started it is gone.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from fragdex.service.processes import Speech, bounded

# No file that a hostile input makes us write is larger than this many times the input …
_GROWTH: Final = 8
# … or this, for a small input whose pictures are large.
_LEAST_BOUND: Final = 4 << 30
# Address space: far above what is ever needed, far below what would take the machine along.
_MEMORY: Final = 8 << 30


def main() -> int:
    """Process one file."""
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    scrub_alone = sys.argv[3:] == ["scrub"]
    speech = Speech()
    speech.listen()
    written = max(_GROWTH * path.stat().st_size, _LEAST_BOUND)
    bounded([("RLIMIT_CORE", 0), ("RLIMIT_AS", _MEMORY), ("RLIMIT_FSIZE", written)])
    os.nice(5)  # requests come first
    import av.logging

    from fragdex.service.errors import Unprocessable
    from fragdex.service.media.process import process_file

    av.logging.set_level(None)
    last = 0.0

    def progress(part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= 0.2 or part >= 1:
            last = now
            speech.say(progress=round(part, 4))

    try:
        with path.open("rb") as file:
            made = process_file(file, folder, progress, scrub_alone=scrub_alone)
    except Unprocessable as error:
        speech.say(unprocessable={"detail": error.message, "more": error.more})
        return 0
    speech.say(made=[one.as_json() for one in made])
    return 0


if __name__ == "__main__":
    sys.exit(main())
