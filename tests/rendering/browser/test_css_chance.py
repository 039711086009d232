"""Chance that sheets draw, `random()` of CSS, has no seed of ours: it is named in the record."""

import io
import json
from fractions import Fraction

import pytest

from fragdex.rendering.browser.clocks import RANDOM, script
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import OpenAsset, Page

VIEW = PageView(64, 64, Fraction(10))

# What may stand before the numbers: each name, how it is shared, and both.
KEYS = ["", *(f"{key}," for key in (
    "auto", "--x", "element-scoped", "property-scoped", "property-index-scoped",
    "--x element-scoped", "--x property-scoped", "--x property-index-scoped",
    "element-scoped property-scoped", "--x element-scoped property-index-scoped",
    "per-element", "element-shared", "--x per-element", "--x element-shared", "auto element-shared",
    "fixed .5", "FIXED 0", "fixed calc(.1 + .2)", "fixed random(0, 1)",
))]  # fmt: skip
NUMBERS = [f"random({key} 1px, 999px)" for key in KEYS] + [
    "RANDOM(1px, 999px)", "calc(1px + random(1px, 999px, 2px))", "calc(9px * random(1, 99))",
    "random-item(--x, 1px, 999px)", "random-item(auto, 1px, 999px)",
]  # fmt: skip
DRAWN = """<!doctype html><style></style><p id=a><p id=b><script>
const shown = (value) => {
  if (!CSS.supports("width", value)) return null;
  document.querySelector("style").textContent = `p { width: ${value}; height: ${value} }`;
  return [a, b].flatMap((one) => [getComputedStyle(one).width, getComputedStyle(one).height]);
};
</script>"""


def test_chance_of_css_is_named_in_each_form_that_differs_between_runs():
    runs = []
    for _ in range(2):
        with Stage(Page(DRAWN), VIEW) as stage:
            assert stage.notes.refused == []
            told = {}
            for value in NUMBERS:
                shown = stage.evaluate(f"shown({json.dumps(value)})")
                told[value] = shown, stage.evaluate(script(RANDOM))
            runs.append(told)
    known = [value for value in NUMBERS if runs[0][value][0] is not None]
    assert len(known) >= 10
    for value in known:
        (first, named), (second, _) = (run[value] for run in runs)
        assert named == (first != second), value


RULE = "i { width: random(--x element-scoped, 1px, 9px) }"
# Where the rule, or its value, stands: now, or at 60 ms.
PLACES = {
    "sheet": f"<style>{RULE}</style>",
    "nested": f"<style>@media all {{ @layer a {{ p {{ & {RULE} }} }} }}</style>",
    "import": "<style>@import 'rule.css'</style>",
    "link": "<link rel=stylesheet href=rule.css>",
    "variable": "<style>:root { --w: random(1px, 9px) } i { width: var(--w) }</style>",
    "keyframes": "<style>@keyframes k { to { width: random(1px, 9px) } }</style>",
    "style": "<i style='width: random(1px, 9px)'></i>",
    "attr": "<i data-w='random(1px, 9px)' style='width: attr(data-w type(<length>))'></i>",
    "presentation": "<svg><rect width='random(1px, 9px)' height=9 /></svg>",
    "property": "<i id=x></i><script>LATER(() => { x.style.width = 'random(1px, 9px)' })</script>",
    "typed": "<i id=x></i><script>LATER(() => {"
             "x.attributeStyleMap.set('width', 'random(1px, 9px)') })</script>",
    "insertRule": "<style></style><script>LATER(() =>"
                  f"document.styleSheets[0].insertRule('{RULE}'))</script>",
    "adopted": "<script>LATER(() => { const sheet = new CSSStyleSheet();"
               f"sheet.replaceSync('{RULE}');" "document.adoptedStyleSheets = [sheet] })</script>",
    "shadow": f"<p id=x><script>LATER(() => {{ x.attachShadow({{ mode: 'closed' }}).innerHTML ="
              f"'<style>{RULE}</style>' }})</script>",
    "shadow style": "<p id=x><script>LATER(() => { x.attachShadow({ mode: 'open' }).innerHTML ="
                    "'<b><i style=\"width: random(1px, 9px)\"></i></b>' })</script>",
    "adopted by a shadow": "<p id=x><script>LATER(() => { const sheet = new CSSStyleSheet();"
        f"sheet.replaceSync('{RULE}');"
        "x.attachShadow({ mode: 'open' }).adoptedStyleSheets = [sheet] })</script>",
    "declared": f"<p><template shadowrootmode=open><style>{RULE}</style></template>",
    "declared, closed": f"<p><template shadowrootmode=closed><style>{RULE}</style></template>",
    "animate": "<p id=x><script>LATER(() =>"
               "x.animate({ width: ['1px', 'random(1px, 9px)'] }, 500))</script>",
    "frame": f"<iframe srcdoc='<style>{RULE}</style>'></iframe>",
    "picture": "<img src=rule.svg>",
}  # fmt: skip
LATER = "const LATER = (run) => setTimeout(run, 60);"


class Rules(Page):
    def open(self, path):
        if path == "rule.css":
            return OpenAsset(io.BytesIO(RULE.encode()), "text/css")
        if path == "rule.svg":
            drawing = f"<svg xmlns='http://www.w3.org/2000/svg'><style>{RULE}</style></svg>"
            return OpenAsset(io.BytesIO(drawing.encode()), "image/svg+xml")
        return super().open(path)


@pytest.mark.parametrize("place", PLACES)
def test_chance_of_css_is_named_wherever_it_stands(place):
    with Stage(Rules(f"<!doctype html><script>{LATER}</script>{PLACES[place]}"), VIEW) as stage:
        for i in range(2):
            stage.frame(i)
        stage.note_looks()
        assert stage.notes.console == []
        assert any("random() of CSS" in line for line in stage.notes.refused)


def test_what_only_looks_like_chance_of_css_is_not_named():
    html = """<style>i { width: random(fixed .5, 1px, 9px); --random: 1 }
        p { background: url(random.png) } /* random(1px, 9px) */</style>
        <p title="Math.random()" onclick="random()">
        <script>function random() {} random(1)</script>"""
    with Stage(Page(html), VIEW) as stage:
        stage.frame(0)
        stage.note_looks()
        assert stage.notes.refused == []
