"""Pages made of lanes: in each a library moves a red square, or makes a red bar longer."""

from __future__ import annotations

import io
import json
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables.TupleVariation import TupleVariation

from fragdex.rendering.site import Folder, OpenAsset, Site
from rendering.page_media.films import RATE, wav

LANES = Path(__file__).parent / "lanes"
LIBRARIES = Path(__file__).parents[1] / "page_media" / "node" / "node_modules"
HEIGHT = 9
HEAD = """<!doctype html><meta charset=utf-8><style>
body { margin: 0; background: #fff; overflow: hidden }
.lane { display: block; position: relative; height: 9px; width: 160px; overflow: hidden }
.lane > svg, .lane > canvas { display: block }
.lane i { position: absolute; left: 0; top: 0; width: 9px; height: 9px; background: #f00 }
</style><body><script>
const waited = [];
const waitFor = (promise) => {
  waited.push(promise);
  window.fragdex = { ready: Promise.all(waited) };
};
</script>"""

SVELTE = """<script>
import { Tween } from "svelte/motion";
import { linear } from "svelte/easing";
const x = new Tween(0, { duration: 2000, easing: linear });
x.set(120);
</script>
<i style="left:{x.current}px"></i>"""


def need_libraries():
    """Skips where npm did not install all of them."""
    wanted = json.loads((LIBRARIES.parent / "package.json").read_text())["dependencies"]
    if missing := [name for name in wanted if not (LIBRARIES / name).exists()]:
        pytest.skip(f"no {', '.join(missing)}: ./dev setup installs them where npm is there")


class Lanes(Site):
    """A page of the named lanes, one below the other, with the files of the libraries."""

    def __init__(self, *names, head=""):
        parts = [(LANES / f"{name}.html").read_text("utf-8") for name in names]
        self._page = "\n".join([HEAD + head, *parts]).encode()
        self._own, self._libraries = Folder(LANES), Folder(LIBRARIES)

    def open(self, path):
        if path == "":
            return OpenAsset(io.BytesIO(self._page), "text/html; charset=utf-8")
        if path == "compiled.js":
            return OpenAsset(io.BytesIO(compiled(SVELTE)), "text/javascript")
        if path == "silence.wav":
            return OpenAsset(io.BytesIO(wav(np.zeros(3 * RATE))), "audio/wav")
        if path == "widths.ttf":
            return OpenAsset(io.BytesIO(font()), "font/ttf")
        if path.startswith("lib/"):
            return self._libraries.open(path.removeprefix("lib/"))
        return self._own.open(path)


@cache
def compiled(component):
    """A component of Svelte as a module."""
    script = (
        "const { compile } = require('svelte/compiler');"
        f"console.log(compile({json.dumps(component)}, {{ generate: 'client' }}).js.code)"
    )
    process = subprocess.run(
        ["node", "-e", script], cwd=LIBRARIES, capture_output=True, check=True, timeout=60
    )
    return process.stdout


@cache
def font():
    """A font whose one letter is a box, as wide as its weight says: 0 at 100, 12 em at 900."""
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", "A"])
    builder.setupCharacterMap({65: "A"})
    empty, pen = TTGlyphPen(None).glyph(), TTGlyphPen(None)
    for step, point in enumerate([(0, 0), (0, 1000), (9, 1000), (9, 0)]):
        (pen.lineTo if step else pen.moveTo)(point)
    pen.closePath()
    builder.setupGlyf({".notdef": empty, "A": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "A": (13_000, 0)})
    builder.setupHorizontalHeader(ascent=1000, descent=0)
    builder.setupNameTable({"familyName": "Widths", "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=1000, usWinAscent=1000, usWinDescent=0)
    builder.setupPost()
    builder.setupFvar([("wght", 100, 100, 900, "Weight")], [])
    # the two points on the right, and the four that stand for the metrics
    moved = [(0, 0), (0, 0), (12_000, 0), (12_000, 0), *[(0, 0)] * 4]
    builder.setupGvar({".notdef": [], "A": [TupleVariation({"wght": (0, 1, 1)}, moved)]})
    file = io.BytesIO()
    builder.save(file)
    return file.getvalue()
