"""The documented page with a cover, captions and a watermark shows them at their times."""

import io
import json
from fractions import Fraction
from pathlib import Path

import pytest

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.page_media.opening import Opener
from fragdex.rendering.page_media.player import Player
from fragdex.rendering.site import OpenAsset, Site, WithData
from rendering.page_media.films import one_colour

EXAMPLE = Path(__file__).parents[2] / "docs" / "renders" / "captions.html"
WORDS = {"segments": [{"start": 1.5, "end": 2.0, "text": "Hello there."}]}


class Example(Site):
    def open(self, path):
        if path == "words.json":
            return OpenAsset(io.BytesIO(json.dumps(WORDS).encode()), "application/json")
        if path == "film.mp4":
            return OpenAsset(io.BytesIO(one_colour((40, 90, 60), seconds=3)), "video/mp4")
        return OpenAsset(EXAMPLE.open("rb"), "text/html") if path == "" else None


@pytest.mark.usefixtures("chromium")
def test_captions_cover_and_watermark_come_at_their_times():
    site, fps = WithData(Example(), {"title": "A trip", "mark": "ours"}), Fraction(10)
    player = Player(fps, Opener(site))
    with Stage(site, PageView(1280, 720, fps), media=player) as stage:
        shown = []
        for i in range(25):
            stage.frame(i)
            shown.append(
                stage.evaluate(
                    "['#cover', '#caption', '#watermark'].map((name) => getComputedStyle("
                    "document.querySelector(name)).visibility === 'visible'"
                    " && document.querySelector(name).textContent)"
                )
            )
        assert stage.facts.duration_ms == 3000
        assert stage.notes.console == []
    assert [cover for cover, _, _ in shown] == ["A trip"] * 15 + [False] * 10
    assert [caption for _, caption, _ in shown] == [""] * 15 + ["Hello there."] * 5 + [""] * 5
    assert {mark for _, _, mark in shown} == {"ours"}
