"""Every source of chance and time that a page can look at: seeded, or the page's own time.

A source that is found later gets a line in one of the tables below.
"""

import io
import json
from base64 import b64encode
from fractions import Fraction
from urllib.parse import quote

import pytest

from fragdex.rendering.browser.animated import is_animated
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import OpenAsset, Page

VIEW = PageView(64, 64, Fraction(10))
EPOCH = 1_700_000_000_000

# The same in every run.
CHANCE = {
    "Math.random": "Math.random()",
    "crypto.getRandomValues": "crypto.getRandomValues(new Uint32Array(2)).join()",
    "crypto.randomUUID": "crypto.randomUUID()",
    "processors": "navigator.hardwareConcurrency",
    "memory": "navigator.deviceMemory ?? null",
    "languages": "navigator.languages.join()",
    "time zone": "Intl.DateTimeFormat().resolvedOptions().timeZone",
    "locale": "Intl.NumberFormat().resolvedOptions().locale",
}
# Milliseconds of 1970, whole.
TODAY = {
    "Date.now": "Date.now()",
    "new Date": "new Date().getTime()",
    "Date()": "Date.parse(Date()) + Date.now() % 1000",
    "Temporal.Now.instant": "Temporal.Now.instant().epochMilliseconds",
    "Temporal.Now.zonedDateTimeISO": "Temporal.Now.zonedDateTimeISO().epochMilliseconds",
    "Temporal.Now.plainDateTimeISO": "Date.parse(`${Temporal.Now.plainDateTimeISO()}Z`)",
    "Temporal.Now.plainDateISO and plainTimeISO":
        "Date.parse(`${Temporal.Now.plainDateISO()}T${Temporal.Now.plainTimeISO()}Z`)",
    "File.lastModified": "new File([], 'name').lastModified",
    "File.lastModified, of options": "new File([], 'name', { type: 'a/b' }).lastModified",
    "Intl.DateTimeFormat.format": "when(MINUTES.format())",
    "Intl.DateTimeFormat.formatToParts":
        "when(MINUTES.formatToParts().map((one) => one.value).join(''))",
    "Date.toLocaleString": "when(new Date().toLocaleString('en-US', HOW))",
}  # fmt: skip
# Milliseconds of the page.
NOW = {
    "performance.now": "performance.now()",
    "performance.timeOrigin": "Date.now() - performance.timeOrigin",
    "Event.timeStamp": "new Event('x').timeStamp",
}
# Those of pages alone.
PAGE_NOW = {
    "document.timeline": "document.timeline.currentTime",
    "performance.mark": "performance.mark('here').startTime",
    "document.lastModified": "performance.now() + Date.parse(document.lastModified + 'Z') - 1.7e12",
    "performance.measure": "performance.measure('from here').duration",
}
PAGE_CHANCE = {
    "performance.memory": "performance.memory.usedJSHeapSize",
    "navigator.connection": "navigator.connection?.rtt ?? null",
}
SCRIPT = """
  const HOW = { timeStyle: "medium", dateStyle: "short", fractionalSecondDigits: undefined };
  const MINUTES = new Intl.DateTimeFormat("en-US", HOW);
  const when = (text) => Date.parse(`${text} GMT`) + Date.now() % 1000;
  const look = () => [{ CHANCE }, { NOW }].map((table) =>
    Object.fromEntries(Object.entries(table).map(([name, one]) => [name, one()])));
"""
PLACES = [
    "page",
    "worker",
    "worker of a worker",
    "frame of srcdoc",
    "frame of blob:",
    "frame within",
]
PAGE = """<!doctype html><body><script>
  const told = {};
  var say = (place, what) => { (told[place] ??= []).push(what) };
  const source = SOURCE, page = PAGE_SOURCE;
  const url = (text, type) => URL.createObjectURL(new Blob([text], { type }));
  const every = "setInterval(() => postMessage(look()), 100);";
  const worker = new Worker(url(source + every, "text/javascript"));
  worker.onmessage = ({ data }) => say("worker", data);
  const nested = `new Worker(${JSON.stringify(url(source + every, "text/javascript"))})
    .onmessage = ({ data }) => postMessage(data);`;
  const outer = new Worker(url(nested, "text/javascript"));
  outer.onmessage = ({ data }) => say("worker of a worker", data);
  const inner = (place) => `<script>${page}
    setInterval(() => parent.say(${JSON.stringify(place)}, look()), 100)</` + "script>";
  const frame = (what) =>
    document.body.append(Object.assign(document.createElement("iframe"), what));
  frame({ srcdoc: inner("frame of srcdoc") });
  frame({ src: url(inner("frame of blob:"), "text/html") });
  const own = document.createElement("iframe");
  document.body.append(own);
  own.contentWindow.eval(`${page}; setInterval(() => parent.say("frame within", look()), 100)`);
  (0, eval)(page);
  setInterval(() => say("page", look()), 100);
</script>"""


def script(chance, now):
    text = SCRIPT
    for name, table in (("CHANCE", chance), ("NOW", now)):
        lines = ", ".join(f"{json.dumps(key)}: () => {value}" for key, value in table.items())
        text = text.replace(f"{{ {name} }}", f"{{ {lines} }}")
    return text.replace("const ", "var ")


def seen():
    own = {**TODAY, **NOW}
    page = PAGE.replace("PAGE_SOURCE", json.dumps(script(CHANCE | PAGE_CHANCE, own | PAGE_NOW)))
    page = page.replace("SOURCE", json.dumps(script(CHANCE, own)))
    with Stage(Page(page), VIEW) as stage:
        for i in range(4):
            stage.frame(i)
        assert stage.notes.console == []
        return stage.evaluate("told")


@pytest.fixture(scope="module")
def runs():
    return seen(), seen()


def test_two_runs_see_the_same(runs):
    assert runs[0] == runs[1]
    assert sorted(runs[0]) == sorted(PLACES)


def test_everything_that_tells_the_time_tells_the_same(runs):
    for place in PLACES:
        for n, (_, clocks) in enumerate(runs[0][place], 1):
            wanted = dict.fromkeys(TODAY, EPOCH + 100 * n) | {
                name: pytest.approx(100 * n, abs=0.01) for name in clocks.keys() - TODAY.keys()
            }
            assert clocks == wanted, place
        assert n >= 2


MEASURES = {
    "mark": ("performance.mark('a', { startTime: 100 }).startTime", 100),
    "numbers": ("span(performance.measure('b', { start: 100, end: 600 }))", [100, 500]),
    "a duration": ("span(performance.measure('c', { start: 100, duration: 40 }))", [100, 40]),
    "to an end": ("span(performance.measure('d', { end: 90, duration: 40 }))", [50, 40]),
    "a mark": ("span(performance.measure('e', { start: 'a', end: 170 }))", [100, 70]),
    "marks by name": ("span(performance.measure('f', 'a', 'g'))", [100, 200]),
    "a detail": ("performance.measure('h', { start: 1, end: 2, detail: 7 }).detail", 7),
    "an unknown name": ("tried(() => performance.measure('i', 'nowhere'))", "SyntaxError"),
}


@pytest.mark.parametrize("begin_frames", [True, False])
def test_measures_of_times_that_a_page_gives_are_of_its_own_time(begin_frames):
    lines = ", ".join(f"{name!r}: {value}" for name, (value, _) in MEASURES.items())
    html = f"""<script>
        const span = ({{ startTime, duration }}) => [startTime, duration];
        const tried = (run) => {{ try {{ return run() }} catch (error) {{ return error.name }} }};
        setTimeout(() => {{ performance.mark("g", {{ startTime: 300 }}); window.told = {{ {lines} }} }}, 150)
        </script>"""  # noqa: E501
    with Stage(Page(html), VIEW, begin_frames=begin_frames) as stage:
        for i in range(3):
            stage.frame(i)
        assert stage.evaluate("told") == {name: right for name, (_, right) in MEASURES.items()}


UNDRIVEN = {
    "captureStream": "canvas.captureStream(30)",
    "MediaRecorder": "new MediaRecorder(canvas.captureStream(30)).start()",
    "MediaStreamTrackProcessor":
        "new MediaStreamTrackProcessor({ track: canvas.captureStream().getTracks()[0] })",
    "MediaStreamTrackGenerator": "new MediaStreamTrackGenerator({ kind: 'video' })",
}  # fmt: skip


def test_what_has_no_clock_or_seed_of_ours_is_named_in_the_record():
    html = f"""<canvas></canvas><script>const canvas = document.querySelector("canvas");
        canvas.getContext("2d"); {";".join(UNDRIVEN.values())}</script>"""
    with Stage(Page(html), VIEW) as stage:
        stage.frame(0)
        assert stage.notes.console == []
        for name in UNDRIVEN:
            assert any(name in line for line in stage.notes.refused), name


SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>{}</svg>"
BOX = "<rect width='9' height='9'>{}</rect>"
SHEET = "<style>@keyframes k {{ to {{ x: 9px }} }} rect {{ animation: k 1s {} }}</style>" + BOX
INNER = "<image href='data:image/svg+xml;base64,{}'/>"
SMIL = BOX.format("<animate attributeName='x' to='9' dur='1s'/>")
DRAWINGS = {
    "smil": SMIL,
    "endless": SMIL.replace("dur", "repeatCount='indefinite' dur"),
    "set": BOX.format("<set attributeName='x' to='9' begin='1s'/>"),
    "css": SHEET.format("", ""),
    "css-endless": SHEET.format("linear infinite", ""),
    "webkit": SHEET.format("", "").replace("@", "@-webkit-"),
    "prefix": SMIL.replace("<animate", "<s:animate xmlns:s='http://www.w3.org/2000/svg'"),
    "starting": "<style>rect { transition: x 1s; x: 9px; @starting-style { x: 0 } }</style>" + BOX,
    "inner": INNER.format(b64encode(SVG.format(SMIL).encode()).decode()),
}
STILL = {
    "still": BOX.format("<title>set, animate</title>"),
    "style": "<style>rect { x: 1px }</style>",
}


def svg(name, form=""):
    return f"<?xml version='1.0'?><!-- {form} -->{SVG.format({**DRAWINGS, **STILL}[name])}"


# In each of these a picture of this URL is shown; `late` and `script` once the page runs.
FORMS = {
    "img": "<img src='{}'>",
    "srcset": "<img srcset='{} 1x'>",
    "picture": "<picture><source srcset='{}'><img src=none.png></picture>",
    "input": "<input type=image src='{}'>",
    "poster": "<video poster='{}'></video>",
    "rule": "<style>#{id} {{ background: url('{}') }}</style><p id={id}>x",
    "style": '<p style="background: url(\'{}\')">x',
    "mask": '<p style="mask-image: url(\'{}\')">x',
    "border": '<p style="border: 3px solid; border-image: url(\'{}\') 3">x',
    "list": '<ul><li style="list-style-image: url(\'{}\')">x</ul>',
    "content": '<p style="content: url(\'{}\')">x',
    "before": "<style>#{id}::before {{ content: url('{}') }}</style><p id={id}>x",
    "image-set": '<p style="background: image-set(\'{}\' 1x)">x',
    "cursor": '<p style="cursor: url(\'{}\'), auto">x',
    "shape": '<p style="float: left; shape-outside: url(\'{}\')">x',
    "image": "<svg><image href='{}'/></svg>",
    "filter": "<svg><filter id={id}><feImage href='{}'/></filter>"
              "<rect width=9 height=9 filter='url(#{id})'/></svg>",
    "framed": '<iframe srcdoc="<img src=\'{}\'>"></iframe>',
    "shadow": "<p id={id}></p><script>{id}.attachShadow({{ mode: 'closed' }}).innerHTML = "
              "`<img src='{}'>`</script>",
    "script": "<script>setTimeout(() => {{ new Image().src = `{}` }}, 60)</script>",
    "late": "<p id={id}>x<script>setTimeout(() => {{ {id}.style.background = `url('{}')` }}, 60)"
            "</script>",
    "adopted": "<p id={id}>x<script>{id}.sheet = new CSSStyleSheet();"
               "{id}.sheet.replaceSync(`#{id} {{ background: url('{}') }}`);"
               "document.adoptedStyleSheets.push({id}.sheet)</script>",
}  # fmt: skip
BLOB = """<script>
new Image().src = URL.createObjectURL(new Blob([`{}`], {{ type: "image/svg+xml" }}));
</script>"""
# Documents, which have the page's clock.
DOCUMENTS = ["<iframe src='{}'></iframe>", "<object data='{}'></object>", "<embed src='{}'>"]


class Drawings(Page):
    """Gives `/FORM/NAME.svg` for each drawing, and notes what was asked for."""

    def open(self, path):
        if path.endswith(".svg"):
            drawing = svg(path.rpartition("/")[2].removesuffix(".svg"))
            data = drawing.encode("utf-16") if "utf16" in path else drawing.encode()
            return OpenAsset(io.BytesIO(data), "image/svg+xml")
        return super().open(path)


def named_drawings(html):
    with Stage(Drawings(f"<!doctype html>{html}"), VIEW) as stage:
        for i in range(4):
            stage.frame(i)
        lines = [line for line in stage.notes.refused if "animated SVG picture" in line]
        assert bool(lines) == ("an animated SVG picture" in stage.notes.keeps)
    return lines


def percent(text):
    return f"data:image/svg+xml,{quote(text)}"


def base64(text):
    return f"data:image/svg+xml;base64,{b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("encode", [percent, base64, None])
def test_svg_pictures_that_move_are_named_in_each_form(encode):
    """However they came into the page: as files, as data: URLs."""
    urls = {form: f"http://site.localhost/{form}/smil.svg" for form in FORMS}
    if encode is not None:
        urls = {form: encode(svg("smil", form)) for form in FORMS}
    html = "".join(
        text.format(urls[form], id=f"x{n}") for n, (form, text) in enumerate(FORMS.items())
    )
    lines = named_drawings(html)
    assert len(lines) == len(FORMS)
    assert [
        form for form, url in urls.items() if not any(url[:100] in line for line in lines)
    ] == []


@pytest.mark.parametrize("name", [*DRAWINGS, *STILL])
def test_what_moves_in_an_svg_is_known(name):
    shown = f"<img src=a/{name}.svg><img src=utf16/{name}.svg><img src='{percent(svg(name))}'>"
    lines = named_drawings(shown + BLOB.format(svg(name)))
    assert len(lines) == (4 if name in DRAWINGS else 0)
    assert is_animated(svg(name).encode()) == (name in DRAWINGS)


def test_svg_documents_have_the_clock_of_the_page():
    html = "".join(text.format(f"{n}/smil.svg") for n, text in enumerate(DOCUMENTS))
    assert named_drawings(html + svg("smil")) == []


def test_a_picture_of_a_data_url_is_named_with_what_it_is_written_in():
    (line,) = named_drawings(FORMS["img"].format(percent(svg("css"))))
    assert line.endswith("(http://site.localhost/)")


def test_a_drawing_in_a_declared_shadow_root_begins_with_time_0():
    html = f"<p id=a><template shadowrootmode=open>{SVG.format(SMIL)}</template>"
    with Stage(Page(html), VIEW) as stage:
        for i in range(3):
            stage.frame(i)
        shown = stage.evaluate("a.shadowRoot.querySelector('svg').getCurrentTime()")
    assert shown == pytest.approx(0.2, abs=1e-3)
