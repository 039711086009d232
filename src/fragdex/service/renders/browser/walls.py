"""What a browser can be shut in with on this system: no network, another user, a bound of memory.

All of them are tried at once with a program that does nothing, and each by itself where that
fails; where one cannot be had, the render goes on without it and its record says so.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["NOBODY", "NO_SANDBOX", "Walls", "walls_for"]

NOBODY: Final = 65534
"""The user that owns nothing: user and group."""

NO_SANDBOX: Final = (
    "Chromium's own sandbox is off (it needs a user other than root and user namespaces)"
)

_DO_NOTHING: Final = ("true",)
_TRY_SECONDS: Final = 10

_NETWORK_OF_ROOT: Final = ("unshare", "--net")
_NETWORK: Final = ("unshare", "--user", "--map-current-user", "--net")
_DEMOTED: Final = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
)  # fmt: skip
# What Chromium's sandbox is made of.
_SANDBOX: Final = ("unshare", "--user", "--map-root-user", "--pid", "--net", "--fork")


@dataclass(frozen=True, slots=True)
class Walls:
    """How a browser is shut in.

    Args:
        before: the programs that start it, and their arguments.
        user: whom it runs as where that is not us.
        sandbox: whether Chromium's own sandbox can be on.
        missing: which walls could not be had, and what they would need.
    """

    before: tuple[str, ...]
    user: int | None
    sandbox: bool
    missing: tuple[str, ...]


@functools.cache
def walls_for(program: Path) -> Walls:
    """The walls that this system allows for a program; found out once."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    network = _NETWORK_OF_ROOT if is_root else _NETWORK
    all_of_them = (*network, "--", *((*_DEMOTED, "--") if is_root else ()))
    if _works((*all_of_them, *_SANDBOX, "--"), _can_be_run(program)):
        return Walls(all_of_them, NOBODY if is_root else None, sandbox=True, missing=())
    before: tuple[str, ...] = ()
    missing: list[str] = []
    if _works((*network, "--")):
        before += (*network, "--")
    else:
        missing.append(
            "the browser has no network namespace of its own (unshare is missing or not allowed); "
            "requests are stopped inside the browser alone"
        )
    user = None
    if is_root:
        if _works((*before, *_DEMOTED, "--"), _can_be_run(program)):
            before += (*_DEMOTED, "--")
            user = NOBODY
        else:
            missing.append(
                "the browser runs as root (setpriv is missing or not allowed, or the program "
                "cannot be read by others)"
            )
    runs_as_root = is_root and user is None
    sandbox = not runs_as_root and _works((*before, *_SANDBOX, "--"))
    if not sandbox:
        missing.append(NO_SANDBOX)
    return Walls(before, user, sandbox, tuple(missing))


def _can_be_run(program: Path) -> tuple[str, ...]:
    return ("test", "-x", str(program))


def _works(before: Sequence[str], command: Sequence[str] = _DO_NOTHING) -> bool:
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
