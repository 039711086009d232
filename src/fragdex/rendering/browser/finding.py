"""Where a Chromium is, what it can do, and whether it is out of date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

from fragdex.errors import EngineUnavailable
from fragdex.record import record

LISTS: Final = Path("/var/lib/apt/lists")
_SECONDS: Final = 10.0
_DAY: Final = 86_400.0
_VERSIONS: Final = re.compile(r"^  (Installed|Candidate): (\S+)$", re.MULTILINE)


@record(frozen=True, slots=True)
class SystemPackage:
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


def package_of(program: Path) -> SystemPackage | None:
    """The package of apt that a program belongs to; None: it came another way."""
    owner = _output_of("dpkg-query", "-S", str(program)).partition(":")[0].strip()
    if not owner:
        return None
    versions = dict(_VERSIONS.findall(_output_of("apt-cache", "policy", owner)))
    if len(versions) < len(("Installed", "Candidate")):
        return None
    return SystemPackage(owner, versions["Installed"], versions["Candidate"], _days())


def _days() -> float | None:
    # The lists have the times of their servers; this folder has that of the last update.
    if not any(LISTS.glob("*_Packages*")):
        return None
    try:
        return (time.time() - (LISTS / "partial").stat().st_mtime) / _DAY
    except OSError:
        return None


def _output_of(*words: str) -> str:
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


VARIABLE: Final = "FRAGDEX_CHROMIUM"
VERSION_SECONDS = 10.0
"""How long a program may take to say its version."""

OLDEST: Final = 150
"""The oldest Chromium that is supported: its release; older ones draw nothing."""

ADVICE: Final = (
    "on Debian: apt-get update && apt-get install chromium-headless-shell; on other Linux, macOS "
    f"and Windows: playwright install --only-shell chromium; or name a Chromium in {VARIABLE}"
)

_VERSION: Final = re.compile(r"\b(\d+)\.\d+\.\d+\.\d+\b")

# The headless shell alone gives frames on request. What Debian puts on the path is a script that
# stays between us and the program.
_SHELLS: Final = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "headless_shell",
)
_WHOLE: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_OF_PLAYWRIGHT: Final = (
    "chromium_headless_shell-*/chrome-*/headless_shell",
    "chromium_headless_shell-*/chrome-*/chrome-headless-shell",
    "chromium_headless_shell-*/chrome-*/*headless*shell.exe",
)


@record(frozen=True, slots=True)
class Browser:
    """A Chromium on this machine.

    Args:
        path: the program.
        is_shell: whether it is the headless shell.
    """

    path: Path
    is_shell: bool


def find_engine() -> Browser:
    """The Chromium that FRAGDEX_CHROMIUM names, or the headless shell on this machine.

    Raises:
        EngineUnavailable: there is none, or one alone that gives no frames on request: what its
            frames show depends on the machine. It is taken where it is named.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        if path is None:
            raise EngineUnavailable(f"{VARIABLE} names no program: {named}", advice=ADVICE)
        return _engine(Path(path))
    for name in _SHELLS:
        path = shutil.which(name)
        if path is not None:
            return _engine(Path(path))
    for program in _of_playwright():
        return _engine(program)
    for name in _WHOLE:
        path = shutil.which(name)
        if path is not None:
            raise EngineUnavailable(
                f"{path} cannot render single frames: its videos may differ from run to run",
                expected="chromium-headless-shell",
                found=path,
                advice=ADVICE,
            )
    raise EngineUnavailable("there is no Chromium on this machine", advice=ADVICE)


def version_of(path: Path) -> str | None:
    """What a Chromium says of its version, such as `Chromium 130.0.6723.58`; None: nothing.

    It is started once, and again when the program was replaced.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return None
    return _version(path, changed)


@lru_cache(maxsize=4)
def _version(path: Path, changed: int) -> str | None:
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return " ".join(done.stdout.decode("utf-8", "replace").split())[:100] or None


def need_supported(version: str) -> None:
    """Raise where a Chromium is too old; one that does not say its version is taken.

    Args:
        version: with a product's name before it, or not.

    Raises:
        EngineUnavailable: it is older than `OLDEST`.
    """
    match = _VERSION.search(version)
    if match is not None and int(match[1]) < OLDEST:
        raise EngineUnavailable(
            f"this Chromium is too old: {OLDEST} is the oldest that is supported",
            expected=f"Chromium {OLDEST} or later",
            found=version,
            advice=ADVICE,
        )


def _engine(path: Path) -> Browser:
    path = path.resolve()
    behind = Path(_SHELLS[0])
    if path == Path("/usr/bin/chromium-headless-shell") and behind.exists():
        path = behind
    return Browser(path, "headless" in path.name)


def _of_playwright() -> list[Path]:
    """What Playwright installed, the newest first."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if named and named != "0":
        folder = Path(named)
    else:
        caches = {
            "darwin": Path.home() / "Library/Caches",
            "win32": Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local"),
        }
        usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = caches.get(sys.platform, usual) / "ms-playwright"
    programs = [path for pattern in _OF_PLAYWRIGHT for path in folder.glob(pattern)]
    return sorted(programs, key=_build, reverse=True)


def _build(path: Path) -> tuple[int, str]:
    number = path.parent.parent.name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else 0), str(path)
