"""`fragdex render --dry-run`: what is wrong with a page, before a film is made of it."""

import json

import pytest

from fragdex.rendering.browser.finding import find_engine

WHOLE = """<!doctype html><style>
html { width: 160px; height: 90px; overflow: hidden } body { margin: 0; background: #000 }
p { margin: 0; width: 40px; height: 90px; background: #fff; animation: go 1s linear both }
@keyframes go { to { transform: translateX(120px) } }
</style><p>Hi</p>
<script>document.body.append(Math.random(), crypto.randomUUID(), Date.now())</script>
"""
CHANCE = """<script>
const made = crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt"]);
made.then((key) => crypto.subtle.exportKey("raw", key)).then((bytes) => {
  const color = new Uint8Array(bytes).slice(0, 3).join();
  setTimeout(() => { document.body.style.background = `rgb(${color})` }, 900);
});
</script>"""
EMPTY = "each render begins with an empty one"
FAULTS = """<img src="missing.png">
<script src="https://example.org/x.js"></script>
<audio src="nope.mp3" autoplay></audio>
<script>
localStorage.setItem("a", 1);
setTimeout(() => fetch("late.txt"), 500);
indexedDB.open("a");
setTimeout(() => { throw new Error("boom") }, 300);
alert("x");
</script><p>漢字 বাংলা 􏿽</p>
"""


@pytest.fixture
def check(call, tmp_path, chromium):
    """Checks a page; the answer as JSON, with its exit code."""

    def check(html, *arguments):
        (tmp_path / "page.html").write_text(html)
        ran = call("render", "--dry-run", "page.html", "--json", *arguments)
        assert ran.err == ""
        return json.loads(ran.out) | {"code": ran.code}

    return check


def test_nothing_is_found_where_nothing_is_wrong(check, tmp_path):
    report = check(WHOLE)
    assert (report["code"], report["findings"]) == (0, [])
    assert (report["width"], report["height"], report["duration"], report["frames"]) == (
        160,
        90,
        1.0,
        30,
    )
    assert report["drawn_twice"] == [0, 3, 5, 8, 11, 13, 16, 18, 21, 24, 26, 29]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_each_fault_is_found_at_its_place(check, tmp_path):
    (tmp_path / "late.txt").write_text("late")
    report = check(WHOLE + FAULTS)
    assert report["code"] == 3
    lines = WHOLE.count("\n")
    faults = {
        (one["kind"], one["text"], one["file"] == "page.html" and one["line"] - lines)
        for one in report["findings"]
    }
    fonts = {one for one in faults if one[0] == "fonts"}
    assert faults - fonts == {
        ("not loaded", "missing.png: no such file in this site", 1),
        ("not loaded", "https://example.org/x.js: no network for pages", 2),
        ("not heard", "nope.mp3: the site has no such file", 3),
        ("varies", f"localStorage: {EMPTY}", 5),
        ("varies", "fetch after time 0: late.txt", 6),
        ("varies", f"IndexedDB: {EMPTY}, and the machine decides when it answers", 7),
        ("script", "Error: boom", 8),
        ("refused", 'alert("x")', 9),
    }
    assert any("private use (U+10FFFD)" in text for _, text, _ in fonts)
    assert {line for _, _, line in fonts} == {10}


def test_frames_that_differ_between_two_browsers_are_named(check):
    report = check(WHOLE + CHANCE)
    kinds = {one["kind"]: one["text"] for one in report["findings"]}
    frames, _, cause = kinds["differs"].partition(": ")
    assert frames.startswith("frame 29 differs between two runs, in frame 29 by up to ")
    assert frames.endswith(" of 255, within 160x90 pixels at 0,0")
    assert cause.startswith("perhaps by crypto.subtle.generateKey: its chance has no seed")
    assert "generateKey" in kinds["varies"]


FAINT = """<style>p { background: none } i { position: absolute; top: 50px; left: 20px; height: 3px;
  width: random(2px, 100px, 2px); background: #010101 }</style><i></i>"""


def test_runs_are_compared_to_the_bit(check):
    """A difference of 1 of 255; whose cause is CSS."""
    report = check(WHOLE + FAINT)
    (text,) = (one["text"] for one in report["findings"] if one["kind"] == "differs")
    assert "by up to 1 of 255" in text
    assert "x3 pixels at" in text
    assert text.endswith("perhaps by a seed for random() of CSS: other values in each run")


def test_a_browser_whose_frames_depend_on_the_machine_is_named(check, tmp_path, monkeypatch):
    """Also where both runs are equal, by chance."""
    program = tmp_path / "browser" / "chromium"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/bash
for word; do [[ $word == --enable-begin-frame-control ]] || words+=("$word"); done
exec {find_engine().path} "${{words[@]}}"
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("FRAGDEX_CHROMIUM", str(program))
    (finding,) = check("<style>html { width: 64px; height: 64px }</style>", "--duration", "0.1")[
        "findings"
    ]
    assert finding["kind"] == "browser"
    assert "cannot render single frames" in finding["text"]


def test_codecs_that_take_the_machines_time_are_named(check):
    report = check(
        WHOLE + "<canvas></canvas><script>const keep = () => {\n"
        "try { new VideoDecoder({ output() {}, error() {} }).decode(null) } catch {}\n"
        "document.querySelector('canvas').toBlob(() => {}) };\n"
        "keep(); setTimeout(keep, 500)</script>"
    )
    (one,) = report["findings"]
    assert (one["kind"], one["line"]) == ("varies", WHOLE.count("\n") + 2)
    assert one["text"].startswith("VideoDecoder.decode after time 0: the machine decides")


def test_a_page_without_end_is_looked_at_for_a_while(check):
    report = check("<h1>still")
    (one,) = report["findings"]
    assert (report["code"], one["kind"], report["frames"], report["duration"]) == (
        3,
        "endless",
        300,
        None,
    )
    assert check("<h1>still", "--duration", "0.1")["findings"] == []


def test_a_page_that_fails_says_why(check):
    report = check("<script>for (;;);</script>")
    assert report["code"] == 3
    assert any("did not end within" in one["text"] for one in report["findings"])


def test_people_are_told_in_lines(call, tmp_path, chromium):
    (tmp_path / "page.html").write_text("<!doctype html>\n<img src=a.png>")
    ran = call("render", "--dry-run", "page.html", "--duration", "0.1")
    assert ran.lines == [
        "page.html:2: not loaded: a.png: no such file in this site",
        "page.html: 1 finding; 3 of 3 frames of 1280×720 drawn twice",
    ]
    ran = call("render", "--dry-run", "page.html", "-o", "film.mp4")
    assert (ran.code, ran.err) == (2, "fragdex: --dry-run and -o do not go together\n")


def test_every_render_says_which_characters_no_font_has(call, tmp_path, chromium):
    """The last character of all is private: no font that anybody installs has it."""
    (tmp_path / "page.html").write_text(
        "<p></p><script>setTimeout(() => { document.querySelector('p').attachShadow({mode: 'open'})"
        ".innerHTML = '<b>Ω&#x10fffd;</b><i style=\"display: none\">&#x10fffc;</i>' }, 50)</script>"
    )
    ran = call("render", "page.html", "-o", "a.mp4", "--duration", "0.1", "--json")
    assert json.loads(ran.out)["glyphs"] == ["\U0010fffd"]
    assert "fonts: no font has 1 character of private use (U+10FFFD): was" in ran.err
    assert ran.code == 0
