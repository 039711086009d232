"""Pages that are asked for each frame: right frames and sound, whatever they do."""

import io
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from fragdex.errors import PageFailed
from fragdex.rendering import slice
from fragdex.rendering.browser.model import Limits, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.lint import lint
from fragdex.rendering.outputs import Still
from fragdex.rendering.pictures import without_line
from fragdex.rendering.plan import one_browser_notes
from fragdex.rendering.pool import PageSource
from fragdex.rendering.render import render
from fragdex.rendering.site import NOTHING, Folder, Page, WithData
from fragdex.rendering.slice import Slicer
from fragdex.rendering.spec import RenderSpec

pytestmark = pytest.mark.usefixtures("chromium")

ASKED = Folder(Path(__file__).parents[1] / "pages" / "asked")
WAITS = ("frames", "timer", "file", "worker", "decoder")
# A sine of half of full scale that AAC has encoded.
TONE = pytest.approx(0.5 / 2**0.5, abs=0.02)


def asked(fault=None, waits=(), duration_ms=1000):
    """A page of a second that renders itself: 160 x 90, 30 frames a second."""
    return WithData(ASKED, {"fault": fault, "waits": list(waits), "durationMs": duration_ms})


def number_of(gray):
    return sum(1 << bit for bit in range(8) if gray[40, 20 * bit + 10] < 100)


def numbers_of_asked(film):
    """The number that each frame of a film shows."""
    with av.open(film) as container:
        frames = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    assert {frame.shape for frame in frames} == {(90, 160)}
    return [number_of(frame) for frame in frames]


def sound_of(film):
    """Samples of the first channel; None where there is no sound."""
    with av.open(film) as container:
        if not container.streams.audio:
            return None
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


def loudness(samples):
    return float(np.sqrt((samples**2).mean()))


def breaks(samples):
    """How far samples of a tone of 1 kHz are from what the two before each tell."""
    turn = 2 * np.cos(2 * np.pi * 1000 / 48_000)
    return float(np.abs(samples[2:] - turn * samples[1:-1] + samples[:-2]).max())


def slicer(site):
    return Slicer(site, outside=NOTHING, limits=Limits(), sandbox=False, missing=())


@pytest.fixture
def film(tmp_path):
    """Makes the film of a page; what was told of it, and where it is."""

    def made(site, wanted=RenderSpec(), limits=Limits(), **how):  # noqa: B008 — frozen
        out = tmp_path / "a.mp4"
        return render(site, wanted, out, limits=limits, **how), out

    return made


def test_each_frame_is_the_one_that_was_asked_for_in_every_run(film):
    films = []
    for _ in range(2):
        rendered, path = film(asked(waits=WAITS), slices=1)
        films.append(path.read_bytes())
    assert numbers_of_asked(path) == list(range(30))
    assert (rendered.view.width, rendered.view.height, rendered.seconds) == (160, 90, 1.0)
    assert rendered.sound
    assert loudness(sound_of(path)[4800:43_200]) == TONE
    assert films[0] == films[1]


def test_a_film_in_slices_is_the_film_in_one(film):
    rendered, path = film(asked(waits=("frames",)), slices=5)
    assert len(rendered.slices) == 5
    assert numbers_of_asked(path) == list(range(30))
    assert breaks(sound_of(path)[4800:43_200]) < 0.001
    assert not one_browser_notes(rendered.notes.as_json())


@pytest.mark.parametrize("fps", [Fraction(25), Fraction(30000, 1001), Fraction(60)])
def test_parts_are_told_in_time_whatever_the_rate(film, fps):
    rendered, path = film(asked(), RenderSpec(fps=fps), slices=2)
    assert numbers_of_asked(path) == list(range(rendered.frames))
    assert rendered.frames == round(fps)


def test_size_and_duration_of_a_request_win(film):
    wanted = RenderSpec(320, 180, Fraction(30), 500)
    rendered, path = film(asked(), wanted, slices=1)
    assert (rendered.view.width, rendered.view.height, rendered.frames) == (320, 180, 15)
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    assert (frame.width, frame.height) == (320, 180)


def test_a_still_shows_its_moment_without_the_line(tmp_path):
    out = tmp_path / "a.png"
    render(asked(), RenderSpec(still=Still("png"), time_ms=500), out)
    with Image.open(out) as picture:
        assert picture.size == (160, 90)
        assert number_of(np.asarray(picture.convert("L"))) == 15


def test_stills_that_follow_each_other_are_asked_of_one_page(tmp_path, monkeypatch):
    stages, out, shown = [], tmp_path / "a.png", []
    monkeypatch.setattr(slice, "Stage", lambda *a, **b: stages.append(1) or Stage(*a, **b))
    with closing(slicer(asked())) as page_slicer:
        for i in (5, 6, 9, 4, 29):
            page_slicer.draw(
                PageView(160, 90), range(i, i + 1), out, Still("png"), ahead=min(20, 29 - i)
            )
            with Image.open(out) as picture:
                shown.append((number_of(np.asarray(picture.convert("L"))), len(stages)))
    assert shown == [(5, 1), (6, 1), (9, 1), (4, 2), (29, 3)]


def test_what_it_fetches_before_it_answers_is_no_finding():
    report = lint(PageSource("", asked(waits=("file",))), RenderSpec())
    assert (report.drawn, report.findings) == ((0, 14, 29), [])


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
def test_both_clocks_can_be_asked(begin_frames):
    shown = []
    with Stage(
        asked(waits=("frames", "timer")), PageView(160, 90), begin_frames=begin_frames
    ) as stage:
        assert stage.facts.is_asked
        assert stage.measure().duration_ms == 1000
        stage.begin(range(5, 8), range(5, 8))
        for i in range(5, 8):
            with Image.open(io.BytesIO(stage.frame(i))) as picture:
                assert picture.size == (160, 91)
                assert picture.convert("RGB").getpixel((80, 90)) == (0, 0, i - 5)
                shown.append(number_of(np.asarray(picture.convert("L"))))
        assert len(stage.sound()) == 8 * 4800
    assert shown == [5, 6, 7]


@pytest.mark.parametrize("scale", [1.25, 3.0])
def test_the_line_is_found_at_any_scale(tmp_path, scale):
    view, out = PageView(160, 88, scale=scale), tmp_path / "a.mp4"
    with closing(slicer(asked(duration_ms=500))) as page_slicer:
        page_slicer.draw(view, range(5, 15), out)
    with av.open(str(out)) as film:
        sizes = {(frame.width, frame.height) for frame in film.decode(video=0)}
    assert sizes == {view.pixels}


def test_a_scale_that_leaves_the_line_no_pixel_is_refused(tmp_path):
    page_slicer = slicer(asked())
    with closing(page_slicer), pytest.raises(PageFailed, match=r"at a scale of 0\.5"):
        page_slicer.draw(PageView(160, 88, scale=0.5), range(5), tmp_path / "a.mp4")


def test_a_page_that_asks_late_but_before_its_first_frame_is_asked(film):
    _, path = film(asked("late"), slices=1)
    assert numbers_of_asked(path) == list(range(30))


def drawn(site, frames=range(8), limits=Limits()):  # noqa: B008 — frozen
    """A stage whose page has drawn frames, with the number of each."""
    with Stage(site, PageView(160, 90), limits=limits) as stage:
        stage.begin(frames, frames)
        shown = []
        for i in frames:
            with Image.open(io.BytesIO(stage.frame(i))) as picture:
                shown.append(number_of(np.asarray(picture.convert("L"))))
        samples = np.frombuffer(stage.sound(), "<f4").reshape(-1, 2)
        return shown, samples, stage.notes


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("hangs", "was asked to initialize, and has not answered after 5 s"),
        ("rejects", "no media here"),
        ("never", "was asked for frame 5, and has not answered after 5 s"),
        ("other", "after 5 s; it answered for frame 4"),
        ("error", "the film broke"),
        ("throws", "not a film"),
    ],
)
def test_what_a_page_does_wrong_is_said(fault, said):
    # as long as a busy machine may take to load the page
    limits = Limits(load_seconds=5) if "5 s" in said else Limits()
    with pytest.raises(PageFailed) as caught:
        drawn(asked(fault), limits=limits)
    assert said in str(caught.value)
    if fault == "never":
        assert any("lost in thought" in line for line in caught.value.more["console"])


def test_a_picture_of_another_frame_is_no_frame(film):
    with pytest.raises(PageFailed, match="says that a frame stands, and shows another one"):
        film(asked("line"), slices=1)


@pytest.mark.parametrize(
    ("fault", "heard"),
    [
        ("short sound", 0.7),
        ("long sound", 1.0),
        ("odd sound", 1.0),
        ("mono", 1.0),
        ("no number", 1.0),
        ("twice", 1.0),
    ],
)
def test_sound_that_is_not_as_it_should_be_is_heard_as_far_as_there_is(fault, heard):
    # the span that the page is asked for: 16 frames are 533 ms, and 9 times 64 ms are 576
    shown, samples, notes = drawn(asked(fault), range(16))
    assert shown == list(range(16))
    assert samples.shape == (25_600, 2)
    until = min(round(27_648 * heard), 25_600)
    assert loudness(samples[4800:until]) == TONE
    assert not samples[until + 1 :].any()
    assert any("too short" in line for line in notes.refused) is (heard < 1)


@pytest.mark.parametrize("fault", ["silent", "no buffer"])
def test_a_page_without_sound_is_silent(fault):
    _, samples, _ = drawn(asked(fault))
    assert not len(samples)


def test_a_page_that_keeps_state_is_drawn_in_one_part(film):
    rendered, path = film(asked("state"), slices=2, jobs=2)
    assert numbers_of_asked(path) == list(range(30))
    assert one_browser_notes(rendered.notes.as_json())
    assert len(rendered.slices) == 1


def test_pages_that_do_not_ask_see_nothing_of_it():
    page = Page(
        "<body><script>const inner = document.body.appendChild(document.createElement('iframe'));"
        "window.seen = ['FRAMEGEN_BRIDGE' in window, Object.keys(window).includes"
        "('FRAMEGEN_BRIDGE'), 'FRAMEGEN_BRIDGE' in inner.contentWindow]</script>"
    )
    with Stage(page, PageView(64, 64)) as stage:
        assert not stage.facts.is_asked
        assert stage.evaluate("seen") == [True, False, False]


@pytest.mark.parametrize("format", ["rgb24", "rgba"])
def test_the_line_is_read_and_left_out(format):
    pixels = np.random.default_rng(1).integers(0, 255, (9, 7, len(format.rstrip("24"))), np.uint8)
    pixels[-1, 3, :3] = 1, 2, 3
    frame = av.VideoFrame.from_ndarray(pixels, format=format)
    film = without_line(frame, 1, 0x010203)
    assert np.array_equal(film.to_ndarray(), pixels[:-1])
    with pytest.raises(PageFailed, match="another one"):
        without_line(frame, 1, 0x010204)
