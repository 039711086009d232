"""How far players are behind the writer: python benchmarks/live/run.py [PLAYER ...] [--group 1].

A program writes a film whose pictures say their number, in real time, and the origin serves it.
Each player, at its defaults, shows it in Chromium; the page reads the number of the picture on
show, and the writer's log says when that was taken. Figures are seconds, the middle and the 95th
percentile of what is seen after the first five seconds of play.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLAYER_FILES = ROOT / "tests" / "players"
sys.path.insert(0, str(ROOT / "tests"))

from players.conftest import MODULES, SCRIPTS  # noqa: E402

ADDRESSES = {"hls": "hls/master.m3u8", "dash": "dash/manifest.mpd"}
WAYS = {
    "hls.js": ("hls.js", "hls"),
    "shaka-hls": ("shaka", "hls"),
    "shaka-dash": ("shaka", "dash"),
    "dash.js": ("dash.js", "dash"),
}
BY_ITSELF = """
() => {
  PLAYERS["dash.js"] = async (address) => {
    player = dashjs.MediaPlayer().create();
    player.initialize(video, address, true);
  };
}
"""
"""dash.js plays as soon as it can; it does not come nearer to the end by itself."""
SETTLES = 5.0
"""Seconds after the first picture that are not counted."""
STARTS = 30.0
"""Seconds that a player has to show its first picture."""


def taken(log: Path) -> dict[int, float]:
    """When the writer took the last picture of each number."""
    lines = (line.split() for line in log.read_text().splitlines())
    return {int(number): float(at) for number, at in filter(lambda one: len(one) == 2, lines)}


def watch(page: Any, origin: str, way: str, log: Path, seconds: float) -> dict[str, Any]:
    """Play a film with one player, and look how far it is behind."""
    player, kind = WAYS[way]
    page.goto(f"{origin}/")
    page.set_content('<video width="320" height="180" muted></video>')
    page.add_script_tag(path=MODULES / SCRIPTS[player])
    page.add_script_tag(path=PLAYER_FILES / "players.js")
    counts: dict[str, int] = {}

    def answered(response: Any) -> None:
        name = f"{response.url.partition('?')[0].rpartition('.')[2]} {response.status}"
        counts[name] = counts.get(name, 0) + 1

    page.on("response", answered)
    page.evaluate(BY_ITSELF)
    page.evaluate(
        "([name, address]) => { start(name, address).then(() => video.play()); }",
        [player, f"{origin}/live.mp4/{ADDRESSES[kind]}"],
    )
    asked = time.time()
    first: float | None = None
    behind: list[float] = []
    moved: list[tuple[float, float]] = []
    while time.time() - (first or asked + STARTS - seconds) < seconds:
        page.wait_for_timeout(200)
        now = time.time()
        at, ready = page.evaluate("[video?.currentTime ?? 0, video?.readyState ?? 0]")
        number = page.evaluate("number()") if ready >= 2 else None
        if not isinstance(number, int) or number not in (known := taken(log)):
            continue
        first = first or now
        if now - first > SETTLES:
            behind.append(now - known[number])
            moved.append((now, at))
    stalled = sum(b[0] - a[0] for a, b in pairwise(moved) if b[1] - a[1] < 0.02)
    wrong = page.evaluate("wrong")
    return {
        "player": way,
        "starts after": None if first is None else round(first - asked, 2),
        "median": round(statistics.median(behind), 2) if behind else None,
        "95 %": round(sorted(behind)[int(0.95 * (len(behind) - 1))], 2) if behind else None,
        "stalled": round(stalled, 1),
        "wrong": wrong[:3],
        "requests a second": {
            name: round(n / (time.time() - asked), 1) for name, n in sorted(counts.items())
        },
    }


def main() -> None:
    """Measure each player that is named, or all."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("ways", nargs="*", metavar="PLAYER", default=list(WAYS))
    options.add_argument("--group", type=float, default=1, help="seconds between key frames")
    options.add_argument("--fragment", type=float, default=0.2, help="seconds of a fragment")
    options.add_argument("--segment-duration", type=float, default=1)
    options.add_argument("--seconds", type=float, default=30, help="that each player is watched")
    given = options.parse_args()
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    film = folder / "live.mp4"
    long = (given.seconds + STARTS) * len(given.ways) + STARTS
    writer = [sys.executable, HERE / "writer.py", film, long, given.group, given.fragment]
    serve = [sys.executable, "-m", "fragdex", "origin", folder, "--port", "0", "--log", "none"]
    serve += ["--segment-duration", given.segment_duration]
    browser_path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    writing = subprocess.Popen(list(map(str, writer)))
    origin = subprocess.Popen(list(map(str, serve)), stdout=subprocess.PIPE, text=True)
    try:
        assert origin.stdout is not None
        address = re.search(r"http://\S+(?=/)", origin.stdout.readline())
        assert address is not None
        time.sleep(max(6.0, 5 * given.segment_duration))  # the film has begun
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=browser_path)
            for way in given.ways:
                page = browser.new_context().new_page()
                print(watch(page, address[0], way, Path(f"{film}.log"), given.seconds), flush=True)
                page.close()
            browser.close()
    finally:
        for process in (writing, origin):
            process.terminate()
            process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
