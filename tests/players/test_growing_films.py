"""Players play a film while it is written, to its end."""

from itertools import pairwise

import pytest

import fragdex

pytest.importorskip("av", reason="PyAV is not installed: it makes the films")

from players.conftest import LENGTH, Page, browser, serving  # noqa: F401
from players.test_players import ADDRESS
from strategies.recordings import fragment_starts

PLAYERS = [("hls.js", "hls"), ("shaka", "hls"), ("shaka", "dash")]
FOR_EVER = 1e6


def test_they_reach_the_end_of_a_film_that_is_written(browser, folder, tmp_path):  # noqa: F811
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    growing = tmp_path / "live.mp4"
    growing.write_bytes(whole[: starts[3]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        asked = []
        for player, kind in PLAYERS:
            asked.append(Page(context.new_page(), origin, player))
            asked[-1]("start", player, f"{origin}/live.mp4/{ADDRESS[kind]}")
            asked[-1].page.evaluate("() => { window.played = patient('play', [2]); }")
        before = [ask.page.evaluate("video.currentTime") for ask in asked]
        for start, stop in pairwise([*starts[3:], len(whole)]):
            with growing.open("ab") as file:
                file.write(whole[start:stop])
            written = fragdex.index(whole[:stop], exact=True)
            end = float(min(track.stop for track in written.tracks)) - LENGTH
            for ask in asked:  # a writer is no faster than its film
                ask.page.wait_for_function("end => (ranges().at(-1) ?? [0, 0])[1] > end", arg=end)
        with growing.open("ab") as file:
            file.write(index.export("mfra"))
        for ask, at in zip(asked, before, strict=True):
            _, ranges = ask.page.evaluate("() => window.played")
            state = ask.state()
            assert state["wrong"] == []
            # what came later was played, without a hole
            assert at < 3 * LENGTH < state["time"]
            ((start, end),) = ranges
            assert start <= max(at, 3 * LENGTH)
            assert end == pytest.approx(float(max(t.stop for t in index.tracks)), abs=0.03)
            assert state["time"] == pytest.approx(end, abs=0.03)


def test_hls_js_plays_parts_before_their_segment_is_complete(browser, folder, tmp_path):  # noqa: F811
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    growing = tmp_path / "live.mp4"
    growing.write_bytes(whole[: starts[3]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "hls.js")
        requested = []
        ask.page.on("request", lambda request: requested.append(request.url))
        ask("start", "hls.js", f"{origin}/live.mp4/{ADDRESS['hls']}")
        ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        for start, stop in zip(starts[3:], [*starts[4:], len(whole)], strict=True):
            with growing.open("ab") as file:
                file.write(whole[start:stop])
            ask.page.wait_for_timeout(200)
        with growing.open("ab") as file:
            file.write(index.export("mfra"))
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    ((_, end),) = ranges
    assert end == pytest.approx(float(max(t.stop for t in index.tracks)), abs=0.03)
    parts = {url.rpartition("/hls/")[2] for url in requested if "/part-" in url}
    assert any("_HLS_msn=" in url and "_HLS_part=" in url for url in requested)
    # each came once, whether it was there already or not
    assert len(parts) > 1


def test_hls_js_plays_segments_and_an_end_that_come_at_once(browser, folder, tmp_path):  # noqa: F811
    """It has parts of a segment whose rest comes with three more, and with the end."""
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    growing = tmp_path / "live.mp4"
    growing.write_bytes(whole[: starts[3]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "hls.js")
        with ask.page.expect_request(lambda request: "/v1/part-" in request.url):
            ask("start", "hls.js", f"{origin}/live.mp4/{ADDRESS['hls']}")
            ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        with growing.open("ab") as file:
            file.write(whole[starts[3] :] + index.export("mfra"))
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    ((_, end),) = ranges
    assert end == pytest.approx(float(max(t.stop for t in index.tracks)), abs=0.03)


def test_shaka_joins_a_film_whose_last_segment_is_not_complete(browser, folder, tmp_path):  # noqa: F811
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    growing = tmp_path / "live.mp4"
    growing.write_bytes(whole[: starts[5]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, "shaka")
        ask("start", "shaka", f"{origin}/live.mp4/{ADDRESS['hls']}")
        ask.page.evaluate("() => { window.played = patient('play', [2]); }")
        with growing.open("ab") as file:
            file.write(whole[starts[5] :] + index.export("mfra"))
        _, ranges = ask.page.evaluate("() => window.played")
        state = ask.state()
    assert state["wrong"] == []
    (_, end) = ranges[-1]
    assert end == pytest.approx(float(max(t.stop for t in index.tracks)), abs=0.03)


@pytest.mark.parametrize("player", ["shaka", "dash.js"])
def test_dash_goes_on_after_a_recording_stood_still(browser, folder, tmp_path, player):  # noqa: F811
    """Longer than the segment that is being written is waited for: its answer breaks off."""
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    growing = tmp_path / "live.mp4"
    growing.write_bytes(whole[: starts[5]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, player)
        ask("start", player, f"{origin}/live.mp4/{ADDRESS['dash']}")
        with ask.page.expect_event("requestfailed", lambda it: "/v1/" in it.url):
            ask.page.evaluate("() => { window.played = patient('play', [1]); }")
        complete = ask.page.evaluate("ranges()")[-1][1]
        with growing.open("ab") as file:
            file.write(whole[starts[5] :])
        ask.page.evaluate("() => window.played")
        state = ask.state()
    end = float(max(t.stop for t in index.tracks))
    assert complete < end - LENGTH
    ((_, reached),) = state["ranges"]
    assert reached == pytest.approx(end, abs=0.03)
