"""Which walls cannot be had on this system, found out by a child that does nothing else."""

from __future__ import annotations

import threading

from fragdex.service.processes.channel import Channel
from fragdex.service.processes.child import ChildProcess
from fragdex.service.processes.failures import Failures
from fragdex.service.processes.walls import Walls

__all__ = ["log_missing_walls", "main", "missing_walls"]


def main(channel: Channel) -> None:
    """The child's part."""
    channel.serve({"look": lambda: {"walls": channel.missing}})


def missing_walls() -> list[str]:
    """A sentence for each wall that this system does not have."""
    failures = Failures("the trial of walls", "nothing")
    with ChildProcess("fragdex.service.processes.check", Walls(1 << 30, 0), failures) as child:
        found: list[str] = child.do("look")["walls"]
    return found


def log_missing_walls() -> None:
    """Start a child, so that the log says what its walls lack; nobody waits for it."""
    threading.Thread(target=missing_walls, name="walls", daemon=True).start()
