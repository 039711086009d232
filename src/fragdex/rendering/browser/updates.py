"""Whether the package manager offers a newer Chromium than the one that is here."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Package", "package_of"]

LISTS: Final = Path("/var/lib/apt/lists")
_SECONDS: Final = 10.0
_DAY: Final = 86_400.0
_VERSIONS: Final = re.compile(r"^  (Installed|Candidate): (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """A package of apt.

    Args:
        name: of the package.
        installed: its version.
        candidate: the version that apt would install.
        days: since the package lists were fetched; None: they never were, or were deleted.
    """

    name: str
    installed: str
    candidate: str
    days: float | None

    @property
    def is_behind(self) -> bool:
        """Whether apt offers another version, which is newer unless somebody pinned an older."""
        return self.candidate not in {self.installed, "(none)"}


def package_of(program: Path) -> Package | None:
    """The package of apt that a program belongs to; None: it came another way."""
    owner = _said("dpkg-query", "-S", str(program)).partition(":")[0].strip()
    if not owner:
        return None
    versions = dict(_VERSIONS.findall(_said("apt-cache", "policy", owner)))
    if len(versions) < len(("Installed", "Candidate")):
        return None
    return Package(owner, versions["Installed"], versions["Candidate"], _days())


def _days() -> float | None:
    # The lists have the times of their servers; this folder has that of the last update.
    if not any(LISTS.glob("*_Packages*")):
        return None
    try:
        return (time.time() - (LISTS / "partial").stat().st_mtime) / _DAY
    except OSError:
        return None


def _said(*words: str) -> str:
    """What a program says; nothing where it is not there, or fails."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
