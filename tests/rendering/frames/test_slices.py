"""Slices of real pages: each frame is the page at its moment, however the work is divided."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from fragdex.errors import BrowserGone, PageFailed
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.outputs import Still
from fragdex.rendering.plan import plan
from fragdex.rendering.pool import ChildPool, PageSource, RenderProcess, join_slices
from fragdex.rendering.render import render
from fragdex.rendering.site import Answer, Folder, Page
from fragdex.rendering.spec import RenderSpec
from fragdex.sandbox.folders import OwnFolder
from rendering.frames.numbers import PAGES, decoded, numbers_page, read_rows

pytestmark = pytest.mark.usefixtures("chromium")

NTSC = Fraction(30000, 1001)


@pytest.fixture
def pool():
    with closing(ChildPool()) as pool:
        yield pool


def processes_of(session):
    """Living processes that a process began, by parents and sessions."""
    processes = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                processes[int(entry.name)] = (int(fields[1]), int(fields[3]))
    below = {session}
    while (
        more := {pid for pid, (parent, own) in processes.items() if {parent, own} & below} - below
    ):
        below |= more
    return below & processes.keys()


@pytest.mark.parametrize("fps", [Fraction(30), Fraction(60), NTSC], ids=str)
def test_every_frame_shows_its_number_and_its_time(tmp_path, fps):
    """In three slices, whose second and third begin by replaying what came before."""
    out = tmp_path / "numbers.mp4"
    wanted = RenderSpec(320, 180, fps, 2500)
    film = render(Page(numbers_page(fps)), wanted, out, slices=3, jobs=2)
    assert film.frames == round(2.5 * fps)
    frames = list(decoded(out))
    assert len(frames) == film.frames
    for i, (time_, picture) in enumerate(frames):
        at = round(i * 10_000 / fps)
        assert read_rows(picture) == [i, at, at, i]
        assert abs(time_ - i / fps) < Fraction(1, 10_000)


def test_two_runs_give_the_same_bytes_and_slices_the_same_frames(tmp_path):
    """Also while the machine has other things to do."""
    site = Page((PAGES / "simple.html").read_text())
    wanted = RenderSpec(640, 360, Fraction(30), 1500)
    stop = threading.Event()
    # a list of what it asked would have 400 MB
    load = threading.Thread(target=lambda: any(iter(stop.is_set, True)))
    pictures = {}
    digests = set()
    for name, slices, busy in (("a", 1, False), ("b", 3, True), ("c", 7, False), ("d", 1, True)):
        out = tmp_path / f"{name}.mp4"
        if busy and not load.is_alive() and name == "b":
            load.start()
        film = render(site, wanted, out, slices=slices, jobs=2)
        assert len(film.slices) == slices
        pictures[name] = [picture for _, picture in decoded(out)]
        if slices == 1:
            digests.add(out.read_bytes())
    stop.set()
    load.join()
    assert len(digests) == 1
    for name in "bc":
        assert len(pictures[name]) == 45
        for one, other in zip(pictures["a"], pictures[name], strict=True):
            assert abs(one.astype(np.int16) - other).mean() <= 1


def test_a_kept_process_goes_on_where_it_stands(tmp_path, pool):
    """Without a new browser, without replaying; the file is the same, byte for byte."""
    page = PageSource("a", Page(numbers_page(Fraction(30))))
    view = PageView(320, 180, Fraction(30))
    parts = plan(view, range(60), slices=3)
    cold = []
    for part in parts.slices:
        cold.append(pool.draw(page, RenderSpec(), view, part, tmp_path))
        pool.drop("a")
    files = [Path(one.path).read_bytes() for one in cold]
    kept = [pool.draw(page, RenderSpec(), view, part, tmp_path) for part in parts.slices]
    assert [Path(one.path).read_bytes() for one in kept] == files
    assert [one.seconds["start"] == 0 for one in kept] == [False, True, True]
    with pool.child(page, view, 60) as last, pool.child(page, view, 60) as new:
        assert (last.at, new.at) == ((view, 60), None)
    # another render's process is not touched
    with pool.child(PageSource("b", page.site), view, 60) as other:
        assert other not in (last, new)
    # one that stands behind the frame shows it with another browser
    again = pool.draw(page, RenderSpec(), view, parts.slices[0], tmp_path)
    assert Path(again.path).read_bytes() == files[0]
    joined = join_slices(page, kept, view, tmp_path / "whole.mp4")
    assert joined.frames == 60
    assert [read_rows(p)[0] for _, p in decoded(joined.path)] == list(range(60))


@pytest.mark.parametrize("killed", ["the browser", "the page's process", "our process"])
def test_a_kept_process_that_died_is_replaced(tmp_path, pool, killed):
    """Nobody drew when it died, so no drawing fails for it."""
    page = PageSource("a", Page(numbers_page(Fraction(30))))
    view = PageView(320, 180, Fraction(30))
    first, second = plan(view, range(40), slices=2).slices
    cold = Path(pool.draw(page, RenderSpec(), view, second, tmp_path).path).read_bytes()
    pool.drop("a")
    pool.draw(page, RenderSpec(), view, first, tmp_path)
    with pool.child(page, view, second.start) as child:
        below = processes_of(child.pid)
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in below - {child.pid}}
    victims = {
        "the browser": {pid for pid, line in lines.items() if b"--type=" not in line},
        "the page's process": {pid for pid, line in lines.items() if b"=renderer" in line},
        "our process": {child.pid},
    }[killed]
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    # a process whose threads are still ending is a zombie that nobody can wait for yet
    while processes_of(child.pid) & victims or (child.pid in victims and child.alive):
        time.sleep(0.01)
    drawn_slice = pool.draw(page, RenderSpec(), view, second, tmp_path)
    assert Path(drawn_slice.path).read_bytes() == cold


def test_a_page_that_died_before_its_browser_heard_of_it_is_replaced(tmp_path, pool):
    page = PageSource("a", Page(numbers_page(Fraction(30))))
    view = PageView(320, 180, Fraction(30))
    first, second = plan(view, range(40), slices=2).slices
    cold = Path(pool.draw(page, RenderSpec(), view, second, tmp_path).path).read_bytes()
    pool.drop("a")
    pool.draw(page, RenderSpec(), view, first, tmp_path)
    with pool.child(page, view, second.start) as child:
        below = processes_of(child.pid) - {child.pid}
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in below}
    browsers = [pid for pid, line in lines.items() if b"chrom" in line and b"--type=" not in line]
    for pid in browsers:
        os.kill(pid, signal.SIGSTOP)
    for pid, line in lines.items():
        if b"=renderer" in line:
            os.kill(pid, signal.SIGKILL)
    hears = threading.Timer(0.5, lambda: [os.kill(pid, signal.SIGCONT) for pid in browsers])
    hears.start()
    drawn = pool.draw(page, RenderSpec(), view, second, tmp_path)
    hears.join()
    assert Path(drawn.path).read_bytes() == cold


def test_a_slice_says_what_it_depends_on(tmp_path, pool):
    (tmp_path / "index.html").write_text(
        "<link rel=stylesheet href=a.css><p>Hello<script>"
        "fetch('later.json').catch(() => 0); console.error('it is late');"
        "fetch('https://example.org/x').catch(() => 0)</script>"
    )
    (tmp_path / "a.css").write_text("p { color: red }")
    site = Folder(tmp_path)
    counts = []
    drawn_slice = pool.draw(
        PageSource("a", site),
        RenderSpec(),
        PageView(64, 64),
        range(10),
        tmp_path,
        progress=counts.append,
    )
    reads = {path: site.read(path) for path in ("", "a.css", "later.json")}
    for path, asset in reads.items():
        assert drawn_slice.reads[path] == (asset and asset.sha256)
    assert "it is late" in str(drawn_slice.notes.console)
    assert [one.url for one in drawn_slice.notes.blocked] == ["https://example.org/x"]
    assert (drawn_slice.first, drawn_slice.frames, drawn_slice.unchanged) == (0, 10, 9)
    assert {"start", "replay", "capture", "encode"} <= drawn_slice.seconds.keys()
    assert counts[-1] == 10
    assert counts == sorted(counts)


def test_what_the_page_asks_for_comes_from_this_side(tmp_path, pool):
    """The rendering process has no keys, no database: it asks."""
    asked = []

    class Films:
        def fetch(self, url, headers):
            asked.append(url)
            return Answer(200, {"content-type": "text/css"}, b"html { background: #ff0000 }")

    page = PageSource("a", Page("<link rel=stylesheet href=/api/v1/files/7>"), Films())
    drawn_slice = pool.draw(page, RenderSpec(), PageView(64, 64), range(2), tmp_path)
    assert asked == ["http://site.localhost/api/v1/files/7"]
    (_, first), _ = decoded(drawn_slice.path)
    assert abs(first.astype(int).mean() - 63) < 2


@pytest.mark.parametrize("container", ["png", "jpeg", "webp"])
def test_a_still_is_the_frame_of_its_moment(tmp_path, pool, container):
    from PIL import Image

    page = PageSource("a", Page(numbers_page(Fraction(30))))
    wanted = RenderSpec(320, 180, still=Still(container), time_ms=500)
    still = pool.draw(page, wanted, wanted.view(), range(1), tmp_path)
    with Image.open(still.path) as picture:
        assert picture.format == container.upper()
        assert read_rows(np.asarray(picture.convert("L")))[0] == 15
    assert still.first == 15


def test_facts_come_from_the_page(pool):
    site = Page(
        "<style>html{width:400px;height:300px}@keyframes a{to{left:9px}}"
        "p{position:absolute;animation:a 1.5s}</style><p>x"
    )
    facts = pool.look(PageSource("a", site), PageView())
    assert (facts.width, facts.height, facts.duration_ms) == (400, 300, 1500)
    assert facts.browser_version


def test_what_a_page_does_wrong_is_its_own_fault(tmp_path, pool):
    page = PageSource("a", Page("<script>console.error('before'); for (;;);</script>"))
    with pytest.raises(PageFailed) as failed:
        pool.draw(page, RenderSpec(), PageView(64, 64), range(10), tmp_path)
    assert "before" in str(failed.value.more)


def test_a_killed_process_may_be_replaced(tmp_path):
    site, view = Page(numbers_page(Fraction(30))), PageView(320, 180, Fraction(30))
    with RenderProcess(site) as child:
        killed = []

        def check():
            if seen and not killed:
                killed.append(processes_of(child.pid))
                os.kill(child.pid, signal.SIGKILL)

        seen = []
        with pytest.raises(BrowserGone, match="SIGKILL"):
            child.draw(view, range(900), tmp_path, progress=seen.append, check=check)
    assert len(killed[0]) > 1
    assert gone(killed[0])


def test_who_stops_waiting_ends_the_browser(tmp_path):
    class NotWanted(BaseException):
        pass

    with RenderProcess(Page(numbers_page(Fraction(30)))) as child:
        began = []

        def check():
            if seen:
                began.append(processes_of(child.pid))
                raise NotWanted

        seen = []
        with pytest.raises(NotWanted):
            child.draw(PageView(320, 180), range(900), tmp_path, progress=seen.append, check=check)
    assert len(began[0]) > 1
    assert gone(began[0])


ALONE = """
import os, sys, threading
from pathlib import Path
from fragdex.rendering.pool import RenderProcess
from fragdex.rendering.site import Page
from fragdex.rendering.browser.model import PageView
child = RenderProcess(Page(sys.stdin.read()))
seen = threading.Event()
def progress(done):
    if not seen.is_set():
        seen.set()
        print(child.pid, flush=True)
child.draw(PageView(320, 180), range(9000), Path(sys.argv[1]), progress=progress)
"""


def test_nothing_is_left_of_a_process_whose_parent_was_killed(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch").chmod(0o711)
    # the browser may run as somebody else, who must come through
    folder = tmp_path
    while folder.owner() == tmp_path.owner() and "pytest" in str(folder):
        folder.chmod(0o711)
        folder = folder.parent
    with (tmp_path / "stderr").open("wb") as words:
        parent = subprocess.Popen(
            [sys.executable, "-c", ALONE, str(tmp_path)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words,
            env=os.environ | {"TMPDIR": str(tmp_path / "scratch")},
        )  # fmt: skip
    parent.stdin.write(numbers_page(Fraction(30)))
    parent.stdin.close()
    said = parent.stdout.readline()
    assert said, f"it ended with {parent.wait()}: {(tmp_path / 'stderr').read_text()}"
    child = int(said)
    below = processes_of(child)
    assert len(below) > 1
    assert list((tmp_path / "scratch").iterdir())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(below)
    (left,) = (tmp_path / "scratch").iterdir()
    assert not list(left.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    OwnFolder().remove()
    assert not list((tmp_path / "scratch").iterdir())


def gone(pids):
    """Whether processes end within some seconds."""
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_a_render_survives_its_browsers(tmp_path, monkeypatch):
    """The process of a slice is killed in the middle: another one makes the slice."""
    site = Page(numbers_page(Fraction(30)))
    victims = []
    real = RenderProcess.draw

    def draw(self, view, frames, folder, **how):
        if not victims and frames.start > 0:
            victims.append(self.pid)
            threading.Timer(0.5, os.kill, (self.pid, signal.SIGKILL)).start()
        return real(self, view, frames, folder, **how)

    monkeypatch.setattr(RenderProcess, "draw", draw)
    counts = []
    out = tmp_path / "a.mp4"
    film = render(
        site, RenderSpec(320, 180, Fraction(30), 4000), out, slices=2, jobs=2,
        progress=lambda done, _: counts.append(done),
    )  # fmt: skip
    assert victims
    assert [read_rows(picture)[0] for _, picture in decoded(out)] == list(range(120))
    assert counts == sorted(counts)
    assert counts[-1] == film.frames
    assert list(tmp_path.iterdir()) == [out]


def test_a_page_that_does_not_say_how_long_says_what_to_do(tmp_path):
    with pytest.raises(PageFailed, match="set a duration"):
        render(Page("<p>still"), RenderSpec(64, 64), tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("slices", [1, 3])
def test_flashes_and_beeps_stay_together(tmp_path, slices):
    """Each second; nothing is heard twice at the seams, and nothing is missing there."""
    out = tmp_path / "beeps.mp4"
    site = Page((PAGES / "beeps.html").read_text())
    rendered = render(site, RenderSpec(320, 180, Fraction(30), 4200), out, slices=slices)
    assert rendered.sound
    flashes = [i for i, (_, picture) in enumerate(decoded(out)) if picture.mean() > 128]
    assert flashes == [30, 60, 90, 120]
    with av.open(str(out)) as film:
        sound = np.concatenate([f.to_ndarray()[0] for f in film.decode(audio=0)])
    loud = np.flatnonzero(np.abs(sound) > 0.1)
    onsets = loud[np.diff(loud, prepend=-48_000) > 24_000]
    assert np.abs(onsets - 48_000 * np.arange(1, 5)).max() < 48
    # 20 ms each, and no more
    assert np.all(np.diff(loud)[np.diff(loud) < 24_000] < 48)
    for onset in onsets:
        heard = np.abs(sound[onset : onset + 24_000]) > 0.1
        assert 900 < np.flatnonzero(heard).max() < 1100


def pss(pids):
    """What processes hold; what several share is divided among them."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return 1024 * total


@pytest.mark.slow
def test_a_slice_of_1080p_stays_below_900_mb(tmp_path):
    site = Page((PAGES / "heavy.html").read_text().replace("1280px", "1920px"))
    peak = []
    with RenderProcess(site) as child:

        def progress(done):
            if done % 10 == 0:
                peak.append(pss(processes_of(child.pid)))

        child.draw(PageView(1920, 1080), range(60), tmp_path, progress=progress)
    assert 100e6 < max(peak) < 900e6
