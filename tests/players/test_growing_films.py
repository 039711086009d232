"""Players play a film while it is written, to its end."""

import pytest

import fragdex

pytest.importorskip("av", reason="PyAV is not installed: it makes the films")

from players.conftest import LENGTH, Page, browser, serving  # noqa: F401
from players.test_players import ADDRESS
from strategies.recordings import fragment_starts

PLAYERS = [("hls.js", "hls"), ("shaka", "hls"), ("shaka", "dash")]
FOR_EVER = 1e6


class Recording:
    """A film that is written fragment by fragment."""

    def __init__(self, whole, path):
        self.whole, self.path, self.index = whole, path, fragdex.index(whole, exact=True)
        self.starts = [*fragment_starts(self.index), len(whole)]
        self.stop = float(max(track.stop for track in self.index.tracks))

    def write(self, fragments):
        """Write as far as a number of fragments; -1: all, and the mfra that ends the film."""
        at = self.path.stat().st_size if self.path.exists() else 0
        with self.path.open("ab") as file:
            file.write(self.whole[at : self.starts[fragments]])
            if fragments < 0:
                file.write(self.index.export("mfra"))


@pytest.fixture
def recording(folder, tmp_path):
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    return Recording(whole, tmp_path / "live.mp4")


def test_they_reach_the_end_of_a_film_that_is_written(browser, recording, tmp_path):  # noqa: F811
    recording.write(3)
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        asked = []
        for player, kind in PLAYERS:
            asked.append(Page(context.new_page(), origin, player))
            asked[-1]("start", player, f"{origin}/live.mp4/{ADDRESS[kind]}")
            asked[-1].page.evaluate("() => { window.played = patient('play', [2]); }")
        before = [ask.page.evaluate("video.currentTime") for ask in asked]
        for number in range(4, len(recording.starts)):
            recording.write(number)
            written = fragdex.index(recording.path, exact=True)
            end = float(min(track.stop for track in written.tracks)) - LENGTH
            for ask in asked:  # a writer is no faster than its film
                ask.page.wait_for_function("end => (ranges().at(-1) ?? [0, 0])[1] > end", arg=end)
        recording.write(-1)
        for ask, at in zip(asked, before, strict=True):
            _, ranges = ask.page.evaluate("() => window.played")
            state = ask.state()
            assert state["wrong"] == []
            # what came later was played, without a hole
            assert at < 3 * LENGTH < state["time"]
            ((start, end),) = ranges
            assert start <= max(at, 3 * LENGTH)
            assert end == pytest.approx(recording.stop, abs=0.03)
            assert state["time"] == pytest.approx(end, abs=0.03)


def test_hls_js_plays_parts_before_their_segment_is_complete(browser, recording, tmp_path):  # noqa: F811
    recording.write(3)
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "hls.js")
        requested = []
        ask.page.on("request", lambda request: requested.append(request.url))
        ask("start", "hls.js", f"{origin}/live.mp4/{ADDRESS['hls']}")
        ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        for number in range(4, len(recording.starts)):
            recording.write(number)
            ask.page.wait_for_timeout(200)
        recording.write(-1)
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    ((_, end),) = ranges
    assert end == pytest.approx(recording.stop, abs=0.03)
    parts = {url.rpartition("/hls/")[2] for url in requested if "/part-" in url}
    assert any("_HLS_msn=" in url and "_HLS_part=" in url for url in requested)
    # each came once, whether it was there already or not
    assert len(parts) > 1


def test_hls_js_plays_segments_and_an_end_that_come_at_once(browser, recording, tmp_path):  # noqa: F811
    """It has parts of a segment whose rest comes with three more, and with the end."""
    recording.write(3)
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "hls.js")
        with ask.page.expect_request(lambda request: "/v1/part-" in request.url):
            ask("start", "hls.js", f"{origin}/live.mp4/{ADDRESS['hls']}")
            ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        recording.write(-1)
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    ((_, end),) = ranges
    assert end == pytest.approx(recording.stop, abs=0.03)


def test_shaka_joins_a_film_whose_last_segment_is_not_complete(browser, recording, tmp_path):  # noqa: F811
    recording.write(5)
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "shaka")
        ask("start", "shaka", f"{origin}/live.mp4/{ADDRESS['hls']}")
        ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        recording.write(-1)
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    (_, end) = ranges[-1]
    assert end == pytest.approx(recording.stop, abs=0.03)


@pytest.mark.parametrize("player", ["shaka", "dash.js"])
def test_dash_goes_on_after_a_recording_stood_still(browser, recording, tmp_path, player):  # noqa: F811
    """Longer than the segment that is being written is waited for: its answer breaks off."""
    recording.write(5)
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, player)
        ask("start", player, f"{origin}/live.mp4/{ADDRESS['dash']}")
        with ask.page.expect_event("requestfailed", lambda it: "/v1/" in it.url):
            ask.page.evaluate("() => { window.played = patient('play', [1]); }")
        complete = ask.page.evaluate("ranges()")[-1][1]
        recording.write(len(recording.starts) - 1)
        ask.page.evaluate("() => window.played")
        state = ask.state()
    end = recording.stop
    assert complete < end - LENGTH
    ((_, reached),) = state["ranges"]
    assert reached == pytest.approx(end, abs=0.03)
