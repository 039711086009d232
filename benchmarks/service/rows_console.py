"""The console in a browser: when something is seen, and what a seek in two hours asks for."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

from measure import Amount, Measured, Row, Setting, Want
from processes import Server

FIRST, FRAME = "first paint, nothing kept", "seek to the frame"
REQUESTS, BYTES = "requests of a seek", "bytes of a seek"
NAMES = ("chromium-headless-shell", "chromium")
SEEKS = 12  # a round
LAST = 7100  # seconds of a film of two hours
CHUNK = 8 << 20
SIGNED_IN = "key => sessionStorage.setItem('fragdex.key', key)"
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const [first] = list.getEntriesByName("first-contentful-paint");
  if (first) done(first.startTime);
}).observe({ type: "paint", buffered: true }))"""
SEEK = """(time) => new Promise((done) => {
  const video = document.querySelector("video");
  const begun = performance.now();
  video.requestVideoFrameCallback(() => done(performance.now() - begun));
  video.currentTime = time;
})"""
QUIET = """() => {
  const video = document.querySelector("video");
  return !video.seeking && document.querySelector("#film").dataset.state === "ready";
}"""


def console(setting: Setting, server: Server, film: Path) -> Measured:
    """Visits of a browser that has kept nothing, and seeks in a film of two hours."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("FRAGDEX_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise SystemExit("no browser: on Debian, apt-get install chromium-headless-shell")
    file_id = _send(server, film)
    amounts = {
        FIRST: Amount("ms", "the library, key known"),
        FRAME: Amount("ms", f"{film.stat().st_size / 2**20:.0f} MiB, to the frame that is shown"),
        REQUESTS: Amount("", "ranges of tracks"),
        BYTES: Amount("KiB", "their sum"),
    }
    draw = random.Random(4)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        for _ in range(setting.rounds):
            setting.wait()
            _visit(browser, server, file_id, draw, amounts)
        browser.close()
    wants = [
        Want("first paint, the slowest", max(amounts[FIRST].runs), 500, at_most=True, unit="ms"),
        Want("frame after a seek, median", _median(amounts[FRAME]), 150, at_most=True, unit="ms"),
        Want("requests of a seek, the most", max(amounts[REQUESTS].runs), 3, at_most=True, unit=""),
        Want(
            "bytes of a seek, the most", max(amounts[BYTES].runs), 2e6 / 1024, at_most=True,
            unit="KiB",
        ),
    ]  # fmt: skip
    return Row("console", "the console, a film of two hours", wants=wants), amounts


def _visit(
    browser: Any, server: Server, file_id: str, draw: random.Random, amounts: dict[str, Amount]
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.add_init_script(f"({SIGNED_IN})({server.key!r})")
        page.goto(f"{server.url}/")
        amounts[FIRST].runs.append(page.evaluate(PAINT))
        page.goto(f"{server.url}/files/{file_id}")
        page.locator("#film[data-state=ready]").wait_for(timeout=60_000)
        asked: list[str] = []
        page.on(
            "request",
            lambda one: asked.append(one.headers["range"]) if "/tracks/" in one.url else 0,
        )
        for _ in range(SEEKS):
            page.wait_for_function(QUIET)
            asked.clear()
            amounts[FRAME].runs.append(page.evaluate(SEEK, draw.uniform(1, LAST)))
            page.wait_for_function(QUIET)
            spans = [one.removeprefix("bytes=").split("-") for one in asked]
            amounts[REQUESTS].runs.append(len(spans))
            size = sum(int(last) - int(first) + 1 for first, last in spans)
            amounts[BYTES].runs.append(size / 1024)


def _median(amount: Amount) -> float:
    median: float = amount.as_dict()["median"]
    return median


def _send(server: Server, film: Path) -> str:
    """The id of the film, once it can be played."""
    size = film.stat().st_size
    with server.client() as client, film.open("rb") as file:
        new = {"filename": film.name, "type": "video", "byte_size": size}
        file_id: str = client.post("/files", json=new).raise_for_status().json()["id"]
        for first in range(0, size, CHUNK):
            data = file.read(CHUNK)
            headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"}
            client.post(
                f"/files/{file_id}/upload", content=data, headers=headers
            ).raise_for_status()
        while (status := client.get(f"/files/{file_id}").json()["status"]) == "processing":
            time.sleep(0.5)
    if status != "ready":
        raise SystemExit(f"{film.name} came to a bad end: {status}")
    return file_id
