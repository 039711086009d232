"""`fragdex plot`: pictures of files."""

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from fragdex import index as index_of
from fragdex.cli.plot import page, series
from fragdex.errors import InexactIndex
from fragdex.testing import movie
from strategies.indexes import indexes


class Checked(HTMLParser):
    """Elements of a page; every one that is opened must be closed in order."""

    EMPTY = frozenset(("meta", "br", "path", "rect", "circle"))

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        self.open.append(tag)
        if tag == "meta":
            self.open.pop()

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_png_beside_the_file(run, files, tmp_path):
    pytest.importorskip("matplotlib")
    ran = run("plot", "b.mp4")
    assert (ran.code, ran.out) == (0, "b.png: 2 tracks of b.mp4\n")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_svg_names_its_axes(call, files):
    pytest.importorskip("matplotlib")
    ran = call("plot", "b.mp4", "-f", "svg", "-o", "-")
    assert ran.code == 0
    assert ET.parse(io.BytesIO(ran.data)).getroot().tag.endswith("svg")
    for words in ("presentation time (s)", "Fragments", "Bit rate", "key frame", "Interleaving"):
        assert words in ran.out


def test_a_page_that_needs_nothing_else(call, files, tmp_path):
    assert call("plot", "b.mp4", "-o", "b.html").code == 0
    text = (tmp_path / "b.html").read_text("utf-8")
    page = Checked(text)
    tags = {tag for tag, _ in page.seen}
    assert not tags & {"script", "link", "img", "iframe"}
    assert "http" not in text
    assert sum(tag == "svg" for tag, _ in page.seen) == 4
    numbers = re.findall(r'[ "]d="([^"]*)"', text)
    assert not any("nan" in path or "inf" in path for path in numbers)
    assert "b.mp4: 1.080 s" in page.texts


def test_names_from_outside_stay_text(call, files, tmp_path):
    name = '<script>&".mp4'
    (tmp_path / name).write_bytes(files["a.mp4"])
    assert call("plot", name, "-f", "html", "-o", "x.html").code == 0
    page = Checked((tmp_path / "x.html").read_text("utf-8"))
    assert "script" not in {tag for tag, _ in page.seen}


def test_html_without_matplotlib(call, files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert call("plot", "a.mp4", "-o", "a.html").code == 0
    ran = call("plot", "a.mp4", "-o", "a.png")
    assert ran.code == 2
    assert "pip install 'fragdex[plot]'" in ran.err


def test_the_numbers_behind_the_picture(call, files):
    answer = json.loads(call("plot", "b.mp4", "--json").out)
    rates = answer["tracks"][0]["rate"]
    seconds = [b - a for a, b in zip(rates["edges"], rates["edges"][1:], strict=False)]
    drawn = sum(r * s / 8 for r, s in zip(rates["bits_per_second"], seconds, strict=True))
    import fragdex

    assert drawn == pytest.approx(fragdex.index(files["b.mp4"]).track(1).samples.size.sum())
    assert len(answer["tracks"][0]["fragments"][0]) == 5


def test_every_real_file_can_be_drawn(call, fixtures, tmp_path):
    ran = call("plot", str(fixtures / "*.m*4*"), "-f", "html", "-o", "made/", "--jobs", "2")
    for path in (tmp_path / "made").iterdir():
        Checked(path.read_text("utf-8"))
    assert len(ran.lines) > 80
    assert "fault" not in ran.err


def test_long_files_stay_small(call, tmp_path):
    (tmp_path / "long.mp4").write_bytes(movie(fragments=3000, samples=2))
    assert call("plot", "long.mp4", "-o", "long.html").code == 0
    assert (tmp_path / "long.html").stat().st_size < 400_000
    pytest.importorskip("matplotlib")
    assert call("plot", "long.mp4", "-o", "long.png").code == 0


@given(indexes())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_index_is_drawn_or_refused(index):
    try:
        plotted = series(index, "any.mp4")
    except InexactIndex:
        return
    Checked(page(plotted, index))


def test_a_track_without_samples_beside_one_with_some(tmp_path):
    pytest.importorskip("matplotlib")
    from fragdex.cli.plot import draw

    plotted = series(index_of(movie(tracks=2)), "a.mp4")
    nothing = replace(plotted.lanes[1], times=np.zeros(0), positions=np.zeros(0, np.int64))
    plotted = replace(plotted, lanes=(plotted.lanes[0], nothing))
    assert draw(plotted, "png").startswith(b"\x89PNG")
    only = replace(plotted, lanes=(nothing,))
    assert draw(only, "png").startswith(b"\x89PNG")
