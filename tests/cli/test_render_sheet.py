"""`fragdex render --contact-sheet`: many frames in one picture."""

import json

import pytest
from PIL import Image

# Its brightness is that of its time: 100 for each second.
BRIGHTER = """<!doctype html><style>
html { width: 160px; height: 90px; animation: go 2s linear both }
@keyframes go { from { background: rgb(0, 0, 0) } to { background: rgb(200, 200, 200) } }
</style>"""


def test_frames_stand_in_a_grid_with_their_times(call, tmp_path, chromium):
    (tmp_path / "page.html").write_text(BRIGHTER)
    ran = call(
        "render", "page.html", "-o", "sheet.png", "--contact-sheet", "3x2", "--fps", "10",
        "--start", "0.5", "--json",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    report = json.loads(ran.out)
    assert report["frames"] == [5, 8, 11, 13, 16, 19]
    assert report["times"] == [0.5, 0.8, 1.1, 1.3, 1.6, 1.9]
    with Image.open(tmp_path / "sheet.png") as sheet:
        gray = sheet.convert("L")
    assert gray.size == (report["width"], report["height"]) == (3 * 168 + 8, 2 * 120 + 8)
    for n, seconds in enumerate(report["times"]):
        left, top = 8 + n % 3 * 168, 8 + n // 3 * 120
        assert gray.crop((left, top, left + 160, top + 90)).getextrema() == pytest.approx(
            (100 * seconds, 100 * seconds), abs=1
        )
        # the label, light on dark
        low, high = gray.crop((left, top + 90, left + 160, top + 112)).getextrema()
        assert (low, high > 150) == (24, True)


def test_a_short_film_of_a_large_page_fits(call, tmp_path, chromium):
    (tmp_path / "page.html").write_text(BRIGHTER)
    ran = call(
        "render", "page.html", "-o", "sheet.webp", "--contact-sheet", "20x20", "--duration", "0.1",
        "--size", "1920x1080", "--scale", "2", "--quality", "50",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    with Image.open(tmp_path / "sheet.webp") as sheet:
        assert sheet.format == "WEBP"
        assert sheet.width == pytest.approx(1920, abs=20)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--contact-sheet", "4x4"], "-o is needed, ending in .png"),
        (["--contact-sheet", "4x4", "-o", "a.mp4"], "-o is needed, ending in .png"),
        (["--contact-sheet", "4", "-o", "a.png"], "columns and rows are expected"),
        (["--contact-sheet", "40x40", "-o", "a.png"], "at most 400 frames"),
        (["--contact-sheet", "4x4", "-o", "a.png", "--quality", "5"], "does not apply to .png"),
        (["--contact-sheet", "4x4", "-o", "no/a.png"], "no such folder"),
        (["--contact-sheet", "4x4", "-o", "a.png", "--dry-run"], "do not go together"),
        (["--contact-sheet", "4x4", "-o", "a.png", "--at", "1"], "--at does not apply to a video"),
    ],
)
def test_what_does_not_go_together_is_said(call, tmp_path, arguments, told):
    (tmp_path / "page.html").write_text(BRIGHTER)
    ran = call("render", "page.html", *arguments)
    assert ran.code == 2
    assert told in ran.err


def test_a_page_without_end_says_what_to_do(call, tmp_path, chromium):
    (tmp_path / "page.html").write_text("<p>still")
    ran = call("render", "page.html", "-o", "a.png", "--contact-sheet", "2x2")
    assert ran.code == 2
    assert "--duration" in ran.err
    assert not (tmp_path / "a.png").exists()
