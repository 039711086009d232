"""The peer: Remotion, installed from npm into an ignored folder, with the same Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from watch import Cost, Failed, watched

__all__ = ["Remotion"]

SOURCE = Path(__file__).parent / "remotion"
FILES = ("package.json", "render.mjs", "root.jsx")


class Remotion:
    """A bundle of the pages, and the program that renders it.

    Attributes:
        why: why there is none; empty where there is one.
    """

    def __init__(self, folder: Path, browser: str) -> None:
        self._folder, self._browser = folder, browser
        self._bundle = folder / "bundle"
        self.concurrency = 1
        self.why = self._install()

    @property
    def version(self) -> str | None:
        """Of what is installed."""
        file = self._folder / "node_modules" / "remotion" / "package.json"
        return None if self.why else str(json.loads(file.read_text())["version"])

    def render(self, page: str, out: Path, frames: int) -> Cost:
        """Render a page from its bundle; packing the bundle is not counted."""
        return watched(
            ["node", "render.mjs", "film", str(self._bundle), page, str(out), self._browser,
             str(frames), str(self.concurrency)],
            cwd=self._folder,
        )  # fmt: skip

    def choose(self, page: str, out: Path) -> str:
        """Take the number of tabs with which it is quickest on this machine."""
        walls = {}
        for tabs in (1, 2):
            self.concurrency = tabs
            walls[tabs] = self.render(page, out, 60).wall
        self.concurrency = min(walls, key=lambda tabs: walls[tabs])
        return ", ".join(f"{tabs} tabs {wall:.1f} s" for tabs, wall in walls.items())

    def _install(self) -> str:
        if not (shutil.which("node") and shutil.which("npm")):
            return "no node"
        self._folder.mkdir(parents=True, exist_ok=True)
        new = False
        for name in FILES:
            text, place = (SOURCE / name).read_bytes(), self._folder / name
            if not place.exists() or place.read_bytes() != text:
                place.write_bytes(text)
                new = True
        if not (self._folder / "node_modules" / "remotion").exists():
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
                 "--ignore-scripts", "--loglevel=error"],
                cwd=self._folder, check=False, capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                return "npm could not install it"
        if new or not self._bundle.exists():
            try:
                watched(["node", "render.mjs", "bundle", str(self._bundle)], cwd=self._folder)
            except Failed as error:
                return f"it could not pack its bundle: {error}"
        return ""
