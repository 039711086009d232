"""Pages of one canvas: read or pictured, each frame is the same to the bit."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fragdex.rendering.browser import canvas as canvas_of_page
from fragdex.rendering.browser.canvas import CanvasDiffers, CanvasPicture
from fragdex.rendering.browser.model import Limits, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.outputs import Film
from fragdex.rendering.pictures import Pictures, pixels_of
from fragdex.rendering.render import render
from fragdex.rendering.site import NOTHING, Answer, Page
from fragdex.rendering.slice import Slicer
from fragdex.rendering.spec import RenderSpec
from rendering.frames.numbers import decoded
from rendering.libraries.lanes import Lanes, need_libraries

VIEW = PageView(160, 90, Fraction(10))
STYLE = "<style>body { margin: 0; overflow: hidden } canvas { display: block }</style>"
# Each frame `n` of a page is drawn by `draw(n)`.
LOOP = """
let n = 0;
requestAnimationFrame(function each(ms) {
  n = Math.floor(ms / 100 + 0.01);
  draw(n);
  requestAnimationFrame(each);
});
"""
PAINT = """
const paint = (x, n) => {
  const sweep = x.createLinearGradient(0, 0, 160, 90);
  sweep.addColorStop(0, `hsl(${n * 7} 80% 40%)`);
  sweep.addColorStop(1, `hsl(${n * 11 + 90} 60% 70%)`);
  x.fillStyle = sweep;
  x.fillRect(0, 0, 160, 90);
  x.fillStyle = "#f00";
  x.beginPath();
  x.arc(10 + 3.3 * n, 45, 8, 0, 7);
  x.fill();
};
"""
SHADE = """
const shade = (gl) => {
  const part = (kind, text) => {
    const one = gl.createShader(kind);
    gl.shaderSource(one, text);
    gl.compileShader(one);
    return one;
  };
  const program = gl.createProgram();
  gl.attachShader(program, part(gl.VERTEX_SHADER, `attribute vec2 a;
    void main() { gl_Position = vec4(a, 0, 1); }`));
  gl.attachShader(program, part(gl.FRAGMENT_SHADER, `precision highp float; uniform float n;
    void main() {
      vec2 p = gl_FragCoord.xy / 90.;
      float v = sin(9. * p.x + n) + sin(7. * p.y - n);
      gl_FragColor = vec4(.5 + .5 * sin(v), .5 + .5 * cos(3. * v), .5 + .5 * sin(2. * v + 1.), 1);
    }`));
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
  return (n) => {
    gl.uniform1f(gl.getUniformLocation(program, "n"), n);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  };
};
"""


def page_of(script, canvas="<canvas width=160 height=90></canvas>", head=""):
    return Page(f"""<!doctype html>{STYLE}{head}<body>{canvas}<script type=module>
const canvas = document.querySelector("canvas");
{PAINT}{SHADE}{script}{LOOP}</script>""")


def shown(site, count, *, pixels, view=VIEW, outside=NOTHING):
    """The pixels of each frame; how each was taken: `c` by the canvas, `p` by a picture, `=`."""
    frames, ways = [], []
    pictures = Pictures(view)
    with Stage(site, view, outside=outside) as stage:
        for i in range(count):
            picture = stage.picture(i, pixels=pixels)
            ways.append(
                "=" if picture is None else "c" if isinstance(picture, CanvasPicture) else "p"
            )
            if picture is None:
                frames.append(frames[-1])
            else:
                frames.append(pixels_of(pictures.decoded(picture))[..., :3].copy())
        assert stage.canvas_frames == ways.count("c")
        assert stage.notes.console == []
    return frames, "".join(ways)


def same_both_ways(site, count, **how):
    """How each frame was taken where canvases are read; the same frames as by pictures."""
    pictured, ways = shown(site, count, pixels=False, **how)
    assert "c" not in ways
    read, ways = shown(site, count, pixels=True, **how)
    wrong = [i for i in range(count) if not np.array_equal(read[i], pictured[i])]
    assert wrong == [], ways
    return ways


PAGES = {
    "2d": page_of("const x = canvas.getContext('2d'); const draw = (n) => paint(x, n);"),
    "webgl": page_of("const draw = shade(canvas.getContext('webgl'));"),
    "made by its script": page_of(
        """const made = document.body.appendChild(document.createElement("canvas"));
        [made.width, made.height] = [160, 90];
        const draw = shade(made.getContext("webgl", { alpha: false }));""",
        canvas="<main id=app></main>",
    ),
    "scaled to the window by style": page_of(
        "const x = canvas.getContext('2d'); const draw = (n) => paint(x, n);",
        head="<style>canvas { position: fixed; inset: 0; width: 100vw; height: 100vh }</style>",
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_canvas_that_is_all_of_the_page_is_read(name):
    assert same_both_ways(PAGES[name], 8).endswith("cccccc")


def test_a_canvas_of_two_pixels_for_each_of_the_page_is_read():
    script = """
    const x = canvas.getContext("2d");
    x.scale(devicePixelRatio, devicePixelRatio);
    const draw = (n) => paint(x, n);"""
    canvas = "<canvas width=320 height=180 style='width: 160px'></canvas>"
    view = replace(VIEW, scale=2, crop=(10, 10, 60, 40))
    assert same_both_ways(page_of(script, canvas=canvas), 5, view=view).endswith("ccc")


def test_a_canvas_that_would_not_wait_for_its_frame_does():
    """Its first pictures were empty."""
    script = """
    const x = canvas.getContext("2d", { desynchronized: true });
    const draw = (n) => paint(x, n);"""
    plain, _ = shown(PAGES["2d"], 5, pixels=False)
    for pixels in (False, True):
        frames, _ = shown(page_of(script), 5, pixels=pixels)
        assert np.array_equal(frames, plain)


def test_a_canvas_that_stands_still_is_not_read_again_and_again():
    script = """
    const x = canvas.getContext("2d");
    const draw = (n) => { if (n < 5 || n > 14) paint(x, n); };"""
    assert same_both_ways(page_of(script), 20) == "ppccc===p=====" + "=pcccc"


def test_what_lies_over_a_canvas_for_a_frame_is_seen():
    """… whatever it is, and the canvas is read again afterwards, or not any more."""
    changes = """
    const x = canvas.getContext("2d");
    const { body } = document, root = document.documentElement;
    const over = document.createElement("i");
    over.style.cssText = "position: fixed; inset: 9px 99px; background: #0f0";
    const sheet = new CSSStyleSheet();
    document.adoptedStyleSheets = [sheet];
    const steps = {
      3: [() => body.append(over), () => over.remove()],
      6: [
        () => sheet.replaceSync("body::after { content: 'over'; position: fixed; inset: 0 }"),
        () => sheet.replaceSync(""),
      ],
      9: [() => { canvas.style.opacity = 0.5; }, () => { canvas.style.opacity = ""; }],
      12: [() => sheet.replaceSync("html { filter: invert(1) }"), () => sheet.replaceSync("")],
      15: [() => { canvas.width = 80; }, () => { canvas.width = 160; }],
      18: [() => getSelection().selectAllChildren(body), () => getSelection().removeAllRanges()],
      21: [() => { canvas.style.translate = "0 1px"; }, () => { canvas.style.translate = ""; }],
      24: [() => { root.style.zoom = 1.5; }, () => { root.style.zoom = ""; }],
    };
    const draw = (n) => {
      steps[n]?.[0]();
      steps[n - 1]?.[1]();
      paint(x, n);
    };"""
    ways = same_both_ways(page_of(changes), 27)
    assert all(ways[n] == "p" for n in range(3, 27, 3))
    assert ways[5] == ways[8] == "c"


def test_what_a_canvas_shows_through_is_seen():
    script = """
    const x = canvas.getContext("2d");
    const draw = (n) => {
      paint(x, n);
      if (n === 4 || n === 5) x.clearRect(20, 20, 30, 30);
      if (n === 7) {
        x.globalCompositeOperation = "destination-out";
        x.fillStyle = "#0001";
        x.fillRect(0, 0, 1, 1);
      }
      x.globalCompositeOperation = "source-over";
    };"""
    ways = same_both_ways(page_of(script, head="<style>body { background: #00f }</style>"), 10)
    assert ways[3:9] == "cppcpc"


@pytest.mark.parametrize("keeps", ["false", "true"])
def test_frames_that_draw_nothing_or_a_part_begin_from_what_they_would(keeps):
    script = f"""
    const gl = canvas.getContext("webgl", {{ alpha: false, preserveDrawingBuffer: {keeps} }});
    gl.enable(gl.SCISSOR_TEST);
    const draw = (n) => {{
      if (n % 3 === 2) return;
      gl.scissor(9 * n, 5 * n, 50, 20);
      gl.clearColor(1, n / 12, 0, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
      const later = () => {{ gl.scissor(0, 0, 9, 9); gl.clear(gl.COLOR_BUFFER_BIT); }};
      if (n === 6) setTimeout(later, 30);
    }};"""
    assert "cc" in same_both_ways(page_of(script), 12)


def test_colours_that_are_not_srgb_and_a_lost_context_are_pictured():
    script = """
    const gl = canvas.getContext("webgl", { alpha: false });
    const paintAll = shade(gl), loss = gl.getExtension("WEBGL_lose_context");
    const draw = (n) => {
      gl.drawingBufferColorSpace = n === 4 || n === 5 ? "display-p3" : "srgb";
      if (n === 8) loss.loseContext();
      else if (n < 8) paintAll(n);
    };"""
    ways = same_both_ways(page_of(script), 11)
    assert ways[3:7] == "cppc"


def test_a_page_that_takes_the_browsers_functions_away_changes_nothing():
    script = """
    const x = canvas.getContext("2d");
    const lie = function () { throw new Error("mine"); };
    for (const name of [
      "VideoFrame", "Worker", "Blob", "ArrayBuffer", "getComputedStyle", "Element", "getSelection",
    ]) {
      Object.defineProperty(globalThis, name, { value: lie });
    }
    HTMLCanvasElement.prototype.getContext = lie;
    Node.prototype.getRootNode = lie;
    Object.prototype.then = undefined;
    Array.prototype.push = lie;
    Promise.prototype.then = lie;
    URL.createObjectURL = lie;
    document.getElementsByTagName = lie;
    const draw = (n) => paint(x, n);"""
    assert same_both_ways(page_of(script), 6).endswith("ccc")


class Other:
    """A host whose pictures scripts may not read."""

    def fetch(self, url, headers):
        svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><path d='M0 0h9v9'/>"
        return Answer(200, {"content-type": "image/svg+xml"}, f"{svg}</svg>".encode())


def test_a_canvas_with_pixels_of_another_origin_is_pictured():
    script = """
    const x = canvas.getContext("2d");
    const other = new Image();
    other.src = "https://other.example/a.svg";
    window.fragdex = { ready: other.decode() };
    const draw = (n) => {
      paint(x, n);
      if (n >= 4) x.drawImage(other, 5 * n, 9);
    };"""
    ways = same_both_ways(page_of(script), 8, outside=Other())
    assert ways[3:] == "cpppp"


UNREAD = {
    "in a closed shadow tree": page_of(
        """const root = document.body.attachShadow({ mode: "closed" });
        root.innerHTML = "<slot></slot><p style='position: fixed; top: 0; display: none'>over";
        const x = canvas.getContext("2d");
        const draw = (n) => {
          paint(x, n);
          if (n === 4) root.lastChild.style.display = "block";
        };"""
    ),
    "drawn by a worker": page_of(
        """const source = `onmessage = ({ data: canvas }) => {
          const x = canvas.getContext("2d");
          let n = 0;
          requestAnimationFrame(function each() {
            x.fillStyle = "hsl(" + 20 * n++ + " 80% 50%)";
            x.fillRect(0, 0, 160, 90);
            requestAnimationFrame(each);
          });
        }`;
        const worker = new Worker(URL.createObjectURL(new Blob([source])));
        const given = canvas.transferControlToOffscreen();
        worker.postMessage(given, [given]);
        const draw = () => {};"""
    ),
    "smaller than the window": page_of(
        "const x = canvas.getContext('2d'); const draw = (n) => paint(x, n);",
        canvas="<canvas width=159 height=90></canvas>",
    ),
    "of other colours": page_of(
        """const x = canvas.getContext("2d", { colorSpace: "display-p3" });
        const draw = (n) => {
          x.fillStyle = `color(display-p3 1 ${n / 9} 0)`;
          x.fillRect(0, 0, 160, 90);
        };"""
    ),
    "beside text": page_of(
        "const x = canvas.getContext('2d'); const draw = (n) => paint(x, n);",
        canvas="<canvas width=160 height=90></canvas>A caption",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_other_pages_are_pictured(name):
    assert "c" not in same_both_ways(UNREAD[name], 7)


def test_the_page_sees_nothing_of_it():
    """Neither the file nor the worker; nor does it find less room."""
    # long frames are told by the machine's time
    look = """(async () => {
      const entries = performance.getEntries().map(({ name }) => name);
      globalThis.seen = JSON.stringify([
        await navigator.storage.estimate(), await navigator.storageBuckets.keys(),
        entries.filter((name) => name !== "long-animation-frame"),
        Object.getOwnPropertyNames(globalThis).length,
        await Array.fromAsync((await navigator.storage.getDirectory()).keys()),
      ]);
    })()"""
    seen = []
    for pixels in (False, True):
        with Stage(PAGES["2d"], VIEW) as stage:
            for i in range(5):
                stage.picture(i, pixels=pixels)
            assert stage.canvas_frames == (3 if pixels else 0)
            stage.evaluate(f"globalThis.seen = null; {look}; 0")
            for i in range(5, 40):
                stage.picture(i, pixels=pixels)
                if stage.evaluate("globalThis.seen"):
                    break
            seen.append(stage.evaluate("globalThis.seen"))
    assert seen[0] is not None
    assert seen[0] == seen[1]


def slice_of(site, path, frames, **how):
    slicer = Slicer(site, outside=NOTHING, limits=Limits(), sandbox=False, missing=(), **how)
    try:
        made = slicer.draw(VIEW, frames, path)
        return path.read_bytes(), made.begins_after, made.ends_with, made.unchanged
    finally:
        slicer.close()


def test_slices_are_the_same_bytes_and_meet(tmp_path):
    site = page_of(
        """const x = canvas.getContext("2d");
        const draw = (n) => { if (n % 4 < 2) paint(x, n); };"""
    )
    for frames in (range(16), range(7, 16)):
        read = slice_of(site, tmp_path / "read.mp4", frames)
        assert read == slice_of(site, tmp_path / "pictured.mp4", frames, reads_canvas=False)
        assert read[3]


def test_a_film_in_slices_is_that_of_one(tmp_path):
    spec = RenderSpec(160, 90, Fraction(10), 3000, film=Film("mkv", codec="ffv1"))
    films = []
    for slices in (1, 3):
        path = tmp_path / f"{slices}.mkv"
        made = render(PAGES["webgl"], spec, path, slices=slices, jobs=2)
        assert len(made.slices) == slices
        films.append([picture for _, picture in decoded(path)])
    assert len(films[0]) == 30
    for one, other in zip(*films, strict=True):
        assert np.array_equal(one, other)


def test_what_is_not_as_the_pixels_say_is_drawn_again(tmp_path, monkeypatch):
    """A seam that shows it has the slice drawn anew, by pictures."""
    site = PAGES["2d"]
    pictured = slice_of(site, tmp_path / "pictured.mp4", range(8), reads_canvas=False)
    real, tried = canvas_of_page.CanvasReader.capture, []

    def capture(self, needed, pixels):
        if not pixels and self.frames:
            tried.append(self.frames)
            raise CanvasDiffers
        return real(self, needed, pixels)

    monkeypatch.setattr(canvas_of_page.CanvasReader, "capture", capture)
    assert slice_of(site, tmp_path / "read.mp4", range(8)) == pictured
    assert tried == [5]


WINDOWS = {
    "p5": """<script src=/lib/p5/lib/p5.min.js></script><script>
      new p5((p) => {
        p.setup = () => { p.createCanvas(160, 90); p.noStroke(); };
        p.draw = () => {
          p.background(30, 60, p.frameCount * 9 % 255);
          p.fill("#f80");
          p.circle(p.millis() * 6 / 100, 45, 30);
        };
      });
    </script>""",
    "pixi": """<script src=/lib/pixi.js/dist/pixi.min.js></script><script>
      const app = new PIXI.Application({ width: 160, height: 90, backgroundColor: 0x204060 });
      document.body.appendChild(app.view);
      const star = new PIXI.Graphics().beginFill(0xff8000).drawCircle(0, 45, 20).endFill();
      app.stage.addChild(star);
      app.ticker.add(() => { star.x += app.ticker.deltaMS * 6 / 100; });
    </script>""",
    "three": """<script type=importmap>
      { "imports": { "three": "/lib/three/build/three.module.js" } }
    </script>
    <script type=module>
      import * as THREE from "three";
      const renderer = new THREE.WebGLRenderer({ antialias: true });
      renderer.setSize(innerWidth, innerHeight);
      document.body.appendChild(renderer.domElement);
      const scene = new THREE.Scene();
      scene.background = new THREE.Color("#204060");
      scene.add(new THREE.HemisphereLight("#fff", "#840", 3));
      const camera = new THREE.PerspectiveCamera(50, 16 / 9, 0.1, 20);
      camera.position.z = 4;
      const stuff = new THREE.MeshStandardMaterial({ color: "#f80" });
      const box = new THREE.Mesh(new THREE.BoxGeometry(), stuff);
      scene.add(box);
      renderer.setAnimationLoop((ms) => {
        box.rotation.set(ms / 900, ms / 700, 0);
        renderer.render(scene, camera);
      });
    </script>""",
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_libraries_are_read(name):
    need_libraries()
    site = Lanes(head=f"{STYLE}{WINDOWS[name]}")
    assert "cccc" in same_both_ways(site, 8)
