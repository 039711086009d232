"""The machine, the browser, and the versions of who takes part."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from typing import Any

import machine
from remotion import Remotion

from fragdex.rendering.browser.finding import find_engine

__all__ = ["browser", "surroundings"]


def browser() -> str:
    """The program that everybody renders with."""
    return str(find_engine().path)


def surroundings(peer: Remotion) -> dict[str, Any]:
    """What stands at the head of the results."""
    described = machine.describe()
    done = subprocess.run([browser(), "--version"], capture_output=True, text=True, check=False)
    versions = {
        "fragdex": version("fragdex"),
        "Chromium": next((word for word in done.stdout.split() if word[0].isdigit()), "?"),
        "PyAV": version("av"),
        "python": described["versions"]["python"],
    }
    if not peer.why:
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
        versions |= {"Remotion": str(peer.version), "node": node.stdout.strip().lstrip("v")}
    return {**described, "versions": versions}
