"""Another peer: hyperframes, from npm with the Node that it needs, on the same Chromium.

It is given our page with what it asks of a page: a root with the size and the duration.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

from measure import PAGES
from watch import Cost, watched

__all__ = ["Hyperframes"]

SOURCE = Path(__file__).parent / "hyperframes" / "package.json"
_NODE = 22  # the oldest that it runs on
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}


class Hyperframes:
    """The program, installed into an ignored folder.

    Attributes:
        why: why there is none; empty where there is one.
    """

    def __init__(self, folder: Path, browser: str) -> None:
        self._folder, self._browser = folder, browser
        self._node = "node"
        self.why = self._install()

    @property
    def version(self) -> str:
        """Of what is installed, with that of its Node."""
        installed = json.loads((self._modules / "hyperframes" / "package.json").read_text())
        node = subprocess.run([self._node, "--version"], capture_output=True, text=True, check=True)
        return f"{installed['version']} (node {node.stdout.strip().lstrip('v')})"

    @property
    def _modules(self) -> Path:
        return self._folder / "node_modules"

    def render(self, site: Path, out: Path) -> Cost:
        """Render a page that `site_of` made, as it does by itself; it chooses its workers."""
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        environment = {
            "HOME": str(home),
            "DO_NOT_TRACK": "1",
            "HYPERFRAMES_NO_TELEMETRY": "1",
            "HYPERFRAMES_BROWSER_PATH": self._browser,
            "PRODUCER_HEADLESS_SHELL_PATH": self._browser,
        }
        words = [f"{name}={value}" for name, value in environment.items()]
        cost = watched(
            ["env", *words, self._node, str(self._modules / ".bin" / "hyperframes"), "render",
             str(site), "--output", str(out), "--no-browser-gpu", "--quiet"],
        )  # fmt: skip
        if not out.exists():
            raise FileNotFoundError(f"hyperframes wrote no film: {cost.said[-200:]}")
        return cost

    def site_of(self, page: str, folder: Path, seconds: int) -> Path:
        """One of our pages as it wants them."""
        folder.mkdir(exist_ok=True)
        before, style, rest = (PAGES / f"{page}.html").read_text().partition("</style>\n")
        content, script, end = rest.partition("<script>")
        root = (
            '<div id="root" data-composition-id="root" data-width="1280" data-height="720"'
            f' data-start="0" data-duration="{seconds}" data-fps="30" data-no-timeline>\n'
        )
        text = f"{before}{style}<body>\n{root}{content}</div>\n{script}{end}"
        (folder / "index.html").write_text(text)
        return folder

    def _install(self) -> str:
        if not (shutil.which("node") and shutil.which("npm")):
            return "no node"
        if not (shutil.which("ffmpeg") and shutil.which("ffprobe")):
            return "it needs ffmpeg"
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / SOURCE.name
        new = not place.exists() or place.read_bytes() != SOURCE.read_bytes()
        if new or not (self._modules / "hyperframes").exists():
            place.write_bytes(SOURCE.read_bytes())
            if not self._npm():
                return "npm could not install it"
        if _major("node") >= _NODE:
            return ""
        architecture = _ARCHITECTURES.get(platform.machine())
        package = f"node-linux-{architecture}"
        own = self._modules / package / "bin" / "node"
        if architecture and not own.exists():
            self._npm("--no-save", f"{package}@{_NODE}")
        if not own.exists() or _major(str(own)) < _NODE:
            return f"it needs Node {_NODE}"
        self._node = str(own)
        return ""

    def _npm(self, *more: str) -> bool:
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts",
             "--loglevel=error", *more],
            cwd=self._folder, check=False, capture_output=True, env=os.environ,
        )  # fmt: skip
        return done.returncode == 0


def _major(node: str) -> int:
    text = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(text.lstrip("v").split(".")[0]) if text.startswith("v") else 0
