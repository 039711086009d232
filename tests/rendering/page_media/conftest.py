"""Pages that play something, on a real browser."""

from __future__ import annotations

import io
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.page_media.mixing import mix
from fragdex.rendering.page_media.opening import Opener
from fragdex.rendering.page_media.player import Player
from fragdex.rendering.page_media.strips import joined
from fragdex.rendering.site import NOTHING, Folder

# Timers count from when they were set: those of at() from frame 0.
HEAD = """<!doctype html><script>
const at = (ms, run) => requestAnimationFrame(() => ms ? setTimeout(run, ms) : run());
</script>"""


@pytest.fixture(scope="session")
def engine():
    try:
        return find_engine()
    except EngineUnavailable as error:
        pytest.skip(f"{error.message}: {error.advice}")


class Shown:
    """A page on its stage, with what it plays."""

    def __init__(self, folder, fps, outside, size, **how):
        self.fps = Fraction(fps)
        self.site = Folder(folder)
        self.opener = Opener(self.site, outside)
        self.player = Player(self.fps, self.opener)
        view = PageView(*size, self.fps)
        self.stage = Stage(self.site, view, outside=outside, media=self.player, **how)
        self.ask = self.stage.evaluate
        self._last = None

    def frame(self, i):
        """Red, green and blue of a frame."""
        picture = self.stage.frame(i)
        if picture is not None:
            self._last = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)
        return self._last

    def frames(self, first, stop):
        return [self.frame(i) for i in range(first, stop)]

    def strips(self, first, stop):
        strips = self.player.sound(first, stop)
        self.opener.given.update(self.player.own_samples(strips))
        return strips

    def sound(self, first, stop):
        """What was heard in these frames, shape (samples, 2)."""
        return self.mixed([self.strips(first, stop)], (stop - first) / self.fps)

    def mixed(self, slices, seconds):
        blocks = list(mix(joined(slices), self.opener, seconds))
        return np.concatenate(blocks) if blocks else np.zeros((0, 2), np.float32)


@pytest.fixture
def show(engine, tmp_path):
    """Opens a page: show(html, files={}, fps=30, outside=NOTHING, size=…, **how))."""
    with ExitStack() as stack:
        count = iter(range(99))

        def show_page(html, files=None, fps=30, outside=NOTHING, size=(320, 200), **how):
            folder = tmp_path / f"site{next(count)}"
            folder.mkdir()
            (folder / "index.html").write_text(f"{HEAD}<body style='margin:0'>{html}")
            for name, data in (files or {}).items():
                (folder / name).write_bytes(data)
            shown = Shown(folder, fps, outside, size, **how)
            stack.callback(shown.stage.close)
            return shown

        yield show_page


@pytest.fixture(scope="session")
def fixtures():
    return Path(__file__).parents[3] / "fixtures"
