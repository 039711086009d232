"""Whether Chromium's own sandbox can be on, within the walls of the process that starts it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["NO_SANDBOX", "allows_sandbox"]

NO_SANDBOX: Final = (
    "Chromium's own sandbox is off (it needs a user other than root and user namespaces)"
)

_TRY_SECONDS: Final = 10
_NOBODY: Final = 65534
# What the walls make of a process: of root's somebody else, of others one in a network of its own.
_DEMOTED: Final = (
    "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
    "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--",
)  # fmt: skip
_OWN_NETWORK: Final = ("unshare", "--user", "--map-current-user", "--net", "--")
# What Chromium's sandbox is made of.
_SANDBOX: Final = ("unshare", "--user", "--map-root-user", "--pid", "--net", "--fork", "--")


@functools.cache
def allows_sandbox(program: Path) -> bool:
    """Whether this system allows a program what Chromium's sandbox needs; found out once."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    within = (_DEMOTED,) if is_root else (_OWN_NETWORK, ())
    can_be_run = ("test", "-x", str(program))
    return any(_works((*walls, *_SANDBOX), can_be_run) for walls in within)


def _works(before: Sequence[str], command: Sequence[str]) -> bool:
    if shutil.which(before[0]) is None:
        return False
    try:
        tried = subprocess.run(
            [*before, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0
