"""What the figures were measured on and with: no figure means anything without it."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import peers


def revision() -> str:
    """The commit measured, marked where the library was not as committed."""
    here = str(peers.HERE.parent)
    commit = _first_line("git", "-C", here, "rev-parse", "--short", "HEAD")
    changed = _first_line("git", "-C", here, "status", "--porcelain", "--", "src")
    return f"{commit or 'unknown'}{' and changes' if changed else ''}"


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else None


def _version(*command: str) -> str | None:
    """The first word with a digit in it: ffprobe and openssl say more than their version."""
    line = _first_line(*command)
    return next((word for word in (line or "").split() if word[0].isdigit()), line)


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1) if match else platform.machine()


def _memory_gib() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError):
        return None


def _package(name: str) -> str | None:
    """The version of an npm package, from what is installed."""
    file = peers.NODE / "node_modules" / name / "package.json"
    return json.loads(file.read_text())["version"] if file.exists() else None


def _pymp4() -> str | None:
    if not peers.PYMP4.exists():
        return None
    code = "import importlib.metadata as m; print(m.version('pymp4'))"
    return _first_line(str(peers.PYMP4), "-c", code)


def _python(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _compiled_hop() -> bool:
    try:
        importlib.import_module("fragdex._native")
    except ImportError:
        return False
    return True


def describe() -> dict[str, Any]:
    """The machine and the versions of everybody in the race; None is what is not there."""
    import av  # its libavformat is the peer, not ffmpeg's

    versions = {
        "python": platform.python_version(),
        "numpy": _python("numpy"),
        "construct": _python("construct"),
        "fragdex": _python("fragdex"),
        "PyAV": _python("av"),
        "libavformat in PyAV": ".".join(map(str, av.library_versions["libavformat"])),
        "ffprobe": _version("ffprobe", "-version"),
        "pymp4": _pymp4(),
        "node": _first_line("node", "--version"),
        "mp4box.js": _package("mp4box"),
        "mediabunny": _package("mediabunny"),
        "openssl": _version("openssl", "version"),
        "compiler of the floor": _first_line(os.environ.get("CC", "cc"), "--version"),
    }
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
        "compiled_hop": _compiled_hop(),
        "versions": versions,
    }
