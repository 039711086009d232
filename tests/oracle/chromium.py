"""Chromium's word on codec strings: a page of our own, run by a headless browser as a process."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--dump-dom",
)
PAGE = """<!doctype html><pre></pre><script>
document.querySelector("pre").textContent =
  JSON.stringify(%s.map(type => MediaSource.isTypeSupported(type)))
</script>"""


def browser() -> str | None:
    """The program that FRAGDEX_CHROMIUM names, or the first Chromium on the path."""
    named = os.environ.get("FRAGDEX_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def supported(program: str, types: Sequence[str], folder: Path) -> list[bool]:
    """What MediaSource.isTypeSupported says of each media type."""
    page = folder / "types.html"
    page.write_text(PAGE % json.dumps(list(types)), "utf-8")
    done = subprocess.run(
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    match = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert match is not None, done.stderr
    answers: list[bool] = json.loads(html.unescape(match[1]))
    return answers
