"""What a frame asks for is in that frame, however long it takes to come."""

import base64
import io
from fractions import Fraction
from itertools import accumulate

import pytest
from PIL import Image

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import OpenAsset, Page
from rendering.pages.looking import pixels

VIEW = PageView(220, 40, Fraction(30))
STEP = 8

# Each way to show picture n in a column of its own, 20 pixels wide; the first needs none.
WAYS = {
    "no picture": "box.style.background = grey(n)",
    "background": "box.style.backgroundImage = `url(${n}.png)`",
    "img.src": "(box.firstChild ?? box.appendChild(new Image())).src = `${n}.png`",
    "data:": "box.style.backgroundImage = `url(${texts[n]})`",
    "blob:": "(box.firstChild ?? box.appendChild(new Image())).src = blobs[n]",
    "onload": """{ const one = new Image(); one.src = `${n}.png?onload`;
        one.onload = () => { box.replaceChildren(one) } }""",
    "decode()": """{ const one = new Image(); one.src = `${n}.png?decode`;
        one.decode().then(() => { box.replaceChildren(one) }) }""",
    "fetch": """fetch(`${n}.png?fetch`).then((answer) => answer.blob()).then(createImageBitmap)
        .then((one) => draw(box, one))""",
    "fetch that nobody reads": "fetch(`${n}.png?unread`); box.style.background = grey(n)",
    "sheet": """{ const link = document.createElement("link"); link.rel = "stylesheet";
        link.href = `${n}.css`; link.onload = () => { shown?.remove(); shown = link };
        document.head.append(link) }""",
    "sheet's picture": "box.className = `n${n}`",
}
PAGE = """<!doctype html><style>body { margin: 0 } img, canvas { display: block }
html > div { position: absolute; top: 0; width: 20px; height: 40px; overflow: hidden }
RULES</style><script>
  const texts = TEXTS, blobs = [];
  let shown;
  const grey = (n) => `rgb(${n * 8} ${n * 8} ${n * 8})`;
  const draw = (box, picture) => {
    const canvas = box.firstChild ?? box.appendChild(document.createElement("canvas"));
    canvas.getContext("2d").drawImage(picture, 0, 0);
  };
  window.fragdex = { ready: Promise.all(texts.map(async (text, n) => {
    blobs[n] = URL.createObjectURL(await (await fetch(text)).blob());
  })) };
  const show = (box, name, n) => ({ WAYS })[name](box, n);
  const boxes = NAMES.map((name, at) => {
    const box = document.createElement("div");
    box.style.left = `${20 * at}px`;
    box.id = `box${at}`;
    document.documentElement.append(box);
    return [box, name];
  });
  const at = (n) => boxes.forEach(([box, name]) => show(box, name, n));
  DRIVE
</script>"""
DRIVES = {
    "frames": "requestAnimationFrame(function f(t) { at(Math.round(t / 100 * 3)); "
    "requestAnimationFrame(f) })",
    "timers": "let n = 0; requestAnimationFrame(() => { at(0); setInterval(() => at(++n), 34) })",
}
COUNT = 12


def picture(n):
    out = io.BytesIO()
    Image.new("RGB", (20, 40), (STEP * n,) * 3).save(out, "PNG")
    return out.getvalue()


class Files(Page):
    """The page, picture n as n.png, and a sheet that has it as n.css."""

    def open(self, path):
        name, _, kind = path.partition(".")
        if kind == "png":
            return OpenAsset(io.BytesIO(picture(int(name))), "image/png")
        if kind == "css":
            sheet = f"#box9 {{ background: url({name}.png?of-sheet) }}"
            return OpenAsset(io.BytesIO(sheet.encode()), "text/css")
        return super().open(path)


class Pictures(Files):
    """A page that shows pictures in all ways."""

    def __init__(self, drive):
        texts = [
            f"data:image/png;base64,{base64.b64encode(picture(n)).decode()}" for n in range(COUNT)
        ]
        ways = ", ".join(f"{name!r}: (box, n) => {{ {way} }}" for name, way in WAYS.items())
        rules = "".join(f".n{n} {{ background: url({n}.png?rule) }}\n" for n in range(COUNT))
        page = PAGE.replace("TEXTS", repr(texts)).replace("RULES", rules).replace("WAYS", ways)
        super().__init__(page.replace("NAMES", repr([*WAYS])).replace("DRIVE", DRIVES[drive]))


def columns(shown):
    return [int(shown[20, 20 * at + 10, 0]) // STEP for at in range(len(WAYS))]


@pytest.mark.parametrize("drive", DRIVES)
def test_each_frame_has_the_pictures_and_sheets_that_it_asks_for(drive):
    with Stage(Pictures(drive), VIEW) as stage:
        whole = [stage.frame(i) for i in range(COUNT)]
        assert stage.notes.console == []
        assert stage.notes.late == []
    last = [n if drive == "frames" else n * 1000 // 30 // 34 for n in range(COUNT)]
    for i, shown in enumerate(map(pixels, accumulate(whole, lambda last, one: one or last))):
        assert dict(zip(WAYS, columns(shown), strict=True)) == dict.fromkeys(WAYS, last[i]), i
    with Stage(Pictures(drive), VIEW) as stage:
        stage.skip(0, 7)
        assert [*map(stage.frame, range(7, COUNT))] == whole[7:]


ENDLESS = {
    "fetches": "(async () => { for (;;) await fetch('1.png') })()",
    "pictures": """{ const one = new Image(); let n = 0;
        one.onload = () => { one.src = `1.png?${++n}` }; one.onload() }""",
    "a compiler": "WebAssembly.compileStreaming(new Promise(() => {}))",
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_a_frame_waits_for_has_an_end_and_a_name(what, monkeypatch):
    monkeypatch.setattr("fragdex.rendering.browser.loads._PATIENCE_SECONDS", 0.4)
    page = f"""<!doctype html><script>let n = 0; requestAnimationFrame(function f() {{
        if (n === 1) {ENDLESS[what]}
        document.documentElement.style.background = `rgb(${{n++}} 0 0)`;
        requestAnimationFrame(f) }})</script>"""
    with Stage(Files(page), VIEW) as stage:
        assert [pixels(stage.frame(i))[0, 0, 0] for i in range(4)] == [*range(4)]
        assert stage.notes.late
        assert all("1.png" in one or "work that it began" in one for one in stage.notes.late)


# What the layout of a frame begins to load, and what a thread of its own would paint.
BOXES = """<!doctype html><style>body { margin: 0; background: white }
iframe, p { position: absolute; left: 0; border: 0; width: 40px; height: 10px; margin: 0 }
div { position: absolute; top: 20px; width: 40px; height: 10px; overflow: hidden }</style>
<div id=s><b style="display: block; height: 6000px"></b>
<iframe loading=lazy src="red.html?2" style="position: static; display: block"></iframe></div>
<p id=p style="top: 30px"></p><script>
const add = (top, how) => document.body.append(Object.assign(
  Object.assign(document.createElement("iframe"), how), { style: `top: ${top}px` }));
let n = 0;
requestAnimationFrame(function f() {
  if (n++ === 2) {
    add(0, { loading: "lazy", src: "red.html" });
    add(10, { src: "red.html?1" });
    s.scrollTop = 6000;
    CSS.paintWorklet.addModule("paint.js").then(() => { p.style.background = "paint(red)" });
  }
  requestAnimationFrame(f);
});
</script>"""


class Boxes(Page):
    def open(self, path):
        if path == "red.html":
            return OpenAsset(io.BytesIO(b"<body style='background: red'>"), "text/html")
        if path == "paint.js":
            script = b"""registerPaint("red", class { paint(pen, { width, height }) {
                pen.fillStyle = "red"; pen.fillRect(0, 0, width, height) } })"""
            return OpenAsset(io.BytesIO(script), "text/javascript")
        return super().open(path)


@pytest.mark.parametrize("begin_frames", [True, False])
def test_frames_that_are_put_in_are_in_that_frame_and_painters_are_named(begin_frames):
    with Stage(Boxes(BOXES), PageView(40, 40, Fraction(10)), begin_frames=begin_frames) as stage:
        picture = None
        for i in range(4):
            picture = stage.frame(i) or picture
            red = [bool(pixels(picture)[10 * row + 5, 20, 1] < 60) for row in range(3)]
            assert red == [i >= 2] * 3, i
        assert stage.notes.late == stage.notes.console == []
        # Chromium paints it at once or never: it is named
        (named,) = stage.notes.refused
        assert "paint worklet" in named
