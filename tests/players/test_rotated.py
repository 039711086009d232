"""Players play a folder of rotated files as one title, across a rotation and back to its start."""

import os
import time

import pytest

import fragdex

pytest.importorskip("av", reason="PyAV is not installed: it makes the films")

from players.conftest import LENGTH, Page, browser, serving  # noqa: F401
from players.test_players import ADDRESS
from strategies.recordings import fragment_starts

FOR_EVER = 1e6


@pytest.mark.parametrize(
    ("player", "kind"), [("hls.js", "hls"), ("shaka", "dash"), ("dash.js", "dash")]
)
def test_a_rotation_is_played_and_the_start_is_sought(browser, folder, tmp_path, player, kind):  # noqa: F811
    whole = (folder / "written" / "fragmented.mp4").read_bytes()
    index = fragdex.index(whole, exact=True)
    starts = [*fragment_starts(index), len(whole)]
    lasts = float(max(track.stop for track in index.tracks))
    (tmp_path / "cam").mkdir()
    first, second = tmp_path / "cam" / "1.mp4", tmp_path / "cam" / "2.mp4"
    first.write_bytes(whole[: starts[4]])
    with serving(tmp_path, LENGTH, growing=FOR_EVER) as origin, browser.new_context() as context:
        ask = Page(context.new_page(), origin, player)
        ask("start", player, f"{origin}/cam/*.mp4/{ADDRESS[kind]}")
        begins = ask.page.evaluate("video.currentTime")
        ask.page.evaluate("() => { window.played = patient('play', [1]); }")
        at = starts[4]
        for path, stops in ((first, starts[5:]), (second, starts[3:])):
            for stop in stops:
                with path.open("ab") as file:
                    file.write(whole[at:stop])
                at = stop
                if stop < len(whole) or path is first:
                    time.sleep(LENGTH * 0.9)
            at = 0
        # nothing is written for long: the title ends
        long_ago = path.stat().st_mtime_ns - 10**18
        os.utime(path, ns=(1, long_ago))
        ask.page.evaluate("() => window.played")
        state = ask.state()
        assert state["wrong"] == []
        (start, end) = state["ranges"][0][0], state["ranges"][-1][1]
        assert end - start > lasts + 3 * LENGTH
        assert state["time"] == pytest.approx(end, abs=0.03)
        assert begins < end - lasts
        # the first picture comes 80 ms after the first sound
        assert ask("seek", ask.page.evaluate("video.seekable.start(0)") + 0.1) in (0, 1)
