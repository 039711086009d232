"""SVT-AV1, kept from changing the process that calls it."""

from __future__ import annotations

import os


def only_errors() -> None:
    """Let it print errors alone; before its first encoder is opened."""
    os.environ.setdefault("SVT_LOG", "1")


def usual_class() -> None:
    """Put this thread back among those that share the processors.

    SVT-AV1 makes what calls it a real-time process where it may, and so all that this one starts.
    Only Linux has such classes for Python to see.
    """
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
