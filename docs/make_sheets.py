"""Write the pictures of docs/renders: `python docs/make_sheets.py` (needs Chromium, Playwright).

A contact sheet shows frames of a finished film, in order, under their times. `beside.webp` shows
frames beside screenshots that an ordinary browser took of the same page, stopped at the same time
by other means: what was rendered is what one sees.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import av
from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = HERE / "renders"
PAGES = ROOT / "benchmarks" / "render" / "pages"
SHEETS = {
    "title": (ROOT / "demo" / "title", 4),
    "simple": (PAGES / "simple.html", 4),
    "heavy": (PAGES / "heavy.html", 4),
    "slides": (PAGES / "slides.html", 8),
}
"""Name of the sheet → the page, and for how many seconds it is shown."""
BESIDE = {"title": 1.5, "slides": 2.0, "simple": 0.8}
"""Page → the moment at which it is compared."""
COLUMNS, ROWS, WIDTH = 4, 2, 300
GAP, LINE = 8, 18


def render(page: Path, seconds: float, folder: Path) -> Path:
    """The film of a page, as the command makes it."""
    out = folder / f"{page.stem}.mp4"
    command = ["render", str(page), "-o", str(out), "--size", "1280x720"]
    subprocess.run(
        [sys.executable, "-m", "fragdex", *command, "--duration", str(seconds)], check=True
    )
    return out


def frames(film: Path) -> Iterator[tuple[float, Image.Image]]:
    """(seconds, picture) of every frame."""
    with av.open(str(film)) as opened:
        for frame in opened.decode(video=0):
            yield float(frame.time or 0), frame.to_image()


def sheet(pictures: list[tuple[str, Image.Image]], columns: int, width: int) -> Image.Image:
    """Pictures under their captions, row by row."""
    height = round(width * pictures[0][1].height / pictures[0][1].width)
    rows = -(-len(pictures) // columns)
    whole = Image.new(
        "RGB",
        (columns * (width + GAP) + GAP, rows * (height + LINE + GAP) + GAP),
        "white",
    )
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(13)
    for number, (caption, picture) in enumerate(pictures):
        x = GAP + number % columns * (width + GAP)
        y = GAP + number // columns * (height + LINE + GAP)
        pen.text((x, y), caption, "black", font)
        whole.paste(picture.resize((width, height), Image.Resampling.LANCZOS), (x, y + LINE))
    return whole


def contact(film: Path) -> Image.Image:
    """Frames that are evenly spread over a film."""
    every = list(frames(film))
    count = COLUMNS * ROWS
    chosen = [every[at * len(every) // count] for at in range(count)]
    return sheet([(f"{time:.2f} s", picture) for time, picture in chosen], COLUMNS, WIDTH)


def screenshots(folder: Path) -> dict[str, Image.Image]:
    """The pages of BESIDE in an ordinary browser, its clocks replaced, its animations stopped."""
    from playwright.sync_api import sync_playwright

    from fragdex.rendering.browser.finding import find_engine

    taken = {}
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=str(find_engine().path))
        for name, seconds in BESIDE.items():
            place = SHEETS[name][0]
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.clock.install(time=0)
            page.clock.pause_at(0.001)
            page.goto((place / "index.html" if place.is_dir() else place).as_uri())
            page.clock.run_for(round(1000 * seconds))
            page.evaluate(
                "t => document.getAnimations().forEach(a => { a.pause(); a.currentTime = t })",
                1000 * seconds,
            )
            path = folder / f"{name}.png"
            page.screenshot(path=path)
            taken[name] = Image.open(path).convert("RGB")
        browser.close()
    return taken


def main() -> int:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        films = {}
        for name, (page, seconds) in SHEETS.items():
            films[name] = render(page, seconds, folder)
            contact(films[name]).save(FOLDER / f"{name}.webp", quality=70, method=6)
        pictures = []
        for name, shot in screenshots(folder).items():
            at = BESIDE[name]
            frame = next(picture for time, picture in frames(films[name]) if time >= at - 1e-3)
            difference = ImageChops.difference(frame, shot).convert("L")
            mean = ImageStat.Stat(difference).mean[0]
            pictures += [
                (f"{name}: frame at {at:g} s", frame),
                (f"screenshot at {at:g} s", shot),
                (f"difference, mean {mean:.2f} of 255", difference.convert("RGB")),
            ]
        sheet(pictures, 3, 400).save(FOLDER / "beside.webp", quality=75, method=6)
    for path in sorted(FOLDER.iterdir()):
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
