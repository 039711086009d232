"""`fragdex render --estimate` and `--max-seconds`: what a film costs, and an end to it."""

import json

import pytest

from fragdex.cli.render_estimate import Deadline
from fragdex.errors import FragdexError

MOVING = """<!doctype html><style>
html { width: 160px; height: 90px; overflow: hidden } body { margin: 0; background: #000 }
p { margin: 0; width: 40px; height: 90px; background: #fff; animation: go 20s linear both }
@keyframes go { to { transform: translateX(120px) } }
</style><p></p>"""


@pytest.fixture
def page(tmp_path, chromium):
    path = tmp_path / "page.html"
    path.write_text(MOVING)
    return path


def test_what_a_film_needs_is_foreseen(call, page):
    ran = call("render", "--estimate", "page.html", "--json", "--slices", "4", "--jobs", "2")
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert (told["frames"], told["frames_drawn"], told["browsers"]) == (600, 45, 2)
    assert 0 < told["seconds"] < told["seconds_with_one_browser"] + 10
    # less is no browser, more is none of this page
    assert 30 << 20 < told["memory_bytes"] < 2 << 30
    assert told["disk_bytes"] == 2 * told["film_bytes"]
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    made = call("render", "page.html", "-o", "film.mp4", "--jobs", "1", "--json")
    assert 0.2 < json.loads(made.out)["byte_size"] / told["film_bytes"] < 5
    ran = call("render", "--estimate", "page.html", "--duration", "0.1", "--jobs", "1")
    assert "page.html: 3 frames of 160×90: about " in ran.out
    assert "with 1 browser, " in ran.out


def test_a_render_that_takes_too_long_is_ended(call, page):
    ran = call("render", "page.html", "-o", "film.mp4", "--max-seconds", "0.1")
    assert ran.code == 2
    assert "of 600 frames done (--max-seconds 0.1)" in ran.err
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    ran = call("render", "page.html", "-o", "film.mp4", "--duration", "0.1", "--max-seconds", "60")
    assert ran.code == 0


def test_a_render_that_will_take_too_long_is_ended_early(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    told = []
    deadline = Deadline(60, lambda done, whole: told.append((done, whole)))
    deadline(0, 10_000)
    now += 2
    deadline(1, 10_000)
    now += 2.9
    deadline(50, 10_000)
    now += 0.2
    with pytest.raises(FragdexError, match="all of them would take about 622 s"):
        deadline(51, 10_000)
    assert told[-1] == (51, 10_000)


def test_without_a_page_or_with_an_output_it_says_so(call, tmp_path):
    (tmp_path / "page.html").write_text(MOVING)
    ran = call("render", "--estimate", "page.html", "-o", "a.mp4")
    assert (ran.code, ran.err) == (2, "fragdex: --estimate and -o do not go together\n")
    ran = call("render", "--estimate", "--check", "page.html")
    assert ran.code == 2
    assert "--check and --estimate do not go together" in ran.err
