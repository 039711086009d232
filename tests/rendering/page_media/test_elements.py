"""Media elements behave as HTML says, on the clock of the render."""

from __future__ import annotations

import base64

import pytest

from fragdex.errors import PageFailed
from rendering.page_media.films import beeps, number_at, numbered, one_colour

LOG = """<script>const log = [];
const EVENTS = ['loadstart', 'durationchange', 'loadedmetadata', 'loadeddata', 'canplay',
  'canplaythrough', 'play', 'playing', 'pause', 'ended', 'seeking', 'seeked', 'error', 'emptied',
  'ratechange', 'volumechange', 'waiting', 'abort'];
function watch(m) { for (const n of EVENTS) m.addEventListener(n, e => log.push(n)); return m }
</script>"""
LOADED = [
    "loadstart", "durationchange", "loadedmetadata", "loadeddata", "canplay", "canplaythrough",
]  # fmt: skip


def test_events_come_in_order(show):
    html = f"""{LOG}<video id=v src=a.mp4></video><script>watch(v);
    at(100, () => v.play().then(() => log.push('resolved')));
    at(300, () => {{ v.currentTime = .9; log.push(v.seeking) }})</script>"""
    page = show(html, {"a.mp4": numbered(30, 30)})
    assert page.ask("[v.paused, v.duration, v.readyState, v.videoWidth, v.networkState]") == [
        True, 1, 4, 256, 1,
    ]  # fmt: skip
    page.stage.skip(0, 20)
    assert page.ask("log") == [
        *LOADED, "play", "playing", "resolved", True, "seeking", "seeked", "pause", "ended",
    ]  # fmt: skip
    assert page.ask("[v.ended, v.paused, v.currentTime]") == [True, True, 1]


def test_time_is_that_of_the_render(show):
    html = """<audio id=a src=a.wav autoplay></audio><script>const times = [];
    requestAnimationFrame(function f() { times.push(a.currentTime); requestAnimationFrame(f) });
    let timeupdates = 0; a.ontimeupdate = () => timeupdates++</script>"""
    page = show(html, {"a.wav": beeps(3)}, 25)
    page.stage.skip(0, 50)
    assert page.ask("times") == pytest.approx([n / 25 for n in range(50)])
    assert 6 <= page.ask("timeupdates") <= 8


def test_play_is_refused_or_broken_off_as_promised(show):
    html = f"""{LOG}<audio id=a src=a.wav></audio><audio id=b src=none.wav></audio><script>
    const told = []; watch(b);
    a.play().catch(e => told.push(e.name)); a.pause();
    b.play().catch(e => told.push(e.name))</script>"""
    page = show(html, {"a.wav": beeps(1)})
    page.stage.skip(0, 5)
    assert sorted(page.ask("told")) == ["AbortError", "NotSupportedError"]
    assert page.ask("[b.error.code, b.networkState]") == [4, 3]
    assert page.ask("log.at(-1)") == "error"
    assert any("none.wav" in line for line in page.player.refused())


def test_the_first_source_that_can_be_played_is(show):
    html = """<video id=v muted autoplay><source src=a.xyz type=video/xyz><source src=bad.mp4>
    <source id=good src=a.mp4 type=video/mp4></video><script>const failed = [];
    for (const s of document.querySelectorAll('source')) s.onerror = () => failed.push(s.getAttribute('src'))</script>"""  # noqa: E501
    page = show(html, {"a.mp4": numbered(9, 30), "bad.mp4": b"no film at all"})
    assert page.ask("failed") == ["a.xyz", "bad.mp4"]
    assert number_at(page.frame(4)) == 4
    assert page.ask("v.currentSrc").endswith("/a.mp4")


@pytest.mark.parametrize("kind", ["data", "blob", "made"])
def test_sources_that_the_page_has_itself(show, kind):
    film = base64.b64encode(numbered(30, 30)).decode()
    html = f"""<video id=v muted autoplay></video><script>
    const bytes = Uint8Array.from(atob('{film}'), x => x.charCodeAt(0));
    const url = '{kind}' === 'data' ? 'data:video/mp4;base64,{film}' : URL.createObjectURL(new Blob([bytes]));
    if ('{kind}' !== 'made') v.src = url;
    else {{ v.remove(); const m = document.createElement('video'); m.muted = true; m.src = url;
      m.oncanplay = () => {{ URL.revokeObjectURL(url); document.body.append(m); m.play() }} }}
    </script>"""  # noqa: E501
    page = show(html)
    assert [number_at(page.frame(i)) for i in range(10)] == list(range(10))
    assert page.ask("document.querySelector('video').getAttribute('src').slice(0, 5)") in (
        "data:", "blob:",
    )  # fmt: skip


def test_a_new_source_begins_anew(show):
    html = f"""{LOG}<video id=v src=a.mp4 muted autoplay></video><script>watch(v);
    at(200, () => {{ log.length = 0; v.src = 'b.mp4' }})</script>"""
    page = show(html, {"a.mp4": one_colour((200, 40, 30)), "b.mp4": one_colour((30, 40, 200))})
    shown = [picture[20, 20].argmax() for picture in page.frames(0, 10)]
    assert shown == [0] * 6 + [2] * 4
    events = page.ask("log")
    assert events[0] == "abort" or events[0] == "emptied"
    assert [name for name in events if name in LOADED] == LOADED
    assert page.ask("v.paused") is False


def test_fragments_of_a_url_play_a_part(show):
    html = """<video id=v src=a.mp4#t=0.5,0.8 muted autoplay></video>"""
    page = show(html, {"a.mp4": numbered(60, 30)})
    shown = [number_at(page.frame(i)) for i in (0, 4, 8, 9, 12)]
    assert shown == [15, 19, 23, 24, 24]
    assert page.ask("[v.paused, v.currentTime]") == [True, 0.8]


def test_what_is_taken_from_the_page_stops(show):
    html = """<audio id=a src=a.wav autoplay></audio><script>
    at(250, () => a.remove())</script>"""
    page = show(html, {"a.wav": beeps(3)})
    page.stage.skip(0, 30)
    [strip] = page.strips(0, 30)
    assert (strip.start, strip.stop) == (0, 0.25)


def test_sounds_that_are_in_no_document_play(show):
    html = "<script>at(200, () => new Audio('a.wav').play())</script>"
    page = show(html, {"a.wav": beeps(1)})
    page.stage.skip(0, 30)
    [strip] = page.strips(0, 30)
    assert strip.start == 0.2


def test_lazy_media_wait_until_they_are_wanted(show):
    html = """<video id=v src=a.mp4 preload=none muted></video><script>
    at(100, () => v.play())</script>"""
    page = show(html, {"a.mp4": numbered(30, 30)})
    assert page.ask("[v.readyState, v.networkState]") == [0, 1]
    assert number_at(page.frames(0, 13)[-1]) == 9


def test_limits_are_those_of_the_standard(show):
    html = """<audio id=a src=a.wav></audio><script>const told = [];
    const bad = run => { try { run(); told.push('') } catch (e) { told.push(e.name) } };
    bad(() => { a.volume = 2 }); bad(() => { a.playbackRate = -1 }); bad(() => { a.currentTime = NaN });
    bad(() => { a.playbackRate = 100 }); bad(() => { a.volume = .5 })</script>"""  # noqa: E501
    page = show(html, {"a.wav": beeps(1)})
    assert page.ask("told") == ["IndexSizeError", "NotSupportedError", "TypeError",
                                "NotSupportedError", ""]  # fmt: skip
    assert page.ask("[a.canPlayType('video/mp4'), a.canPlayType('text/plain')]")[0] != ""


def test_live_input_is_refused_by_name(show):
    html = """<video id=v></video><script>const told = [];
    navigator.mediaDevices.getUserMedia({audio: true}).catch(e => told.push(e.name));
    v.srcObject = new MediaStream();
    const m = document.body.appendChild(document.createElement('video'));
    m.src = URL.createObjectURL(new MediaSource());
    try { new AudioContext().createMediaStreamSource(new MediaStream()) } catch (e) { told.push(e.name) }
    </script>"""  # noqa: E501
    page = show(html)
    page.frame(0)
    assert sorted(page.ask("told")) == ["NotAllowedError", "NotSupportedError"]
    assert {"getUserMedia", "MediaStream", "MediaSource", "createMediaStreamSource"} <= set(
        page.player.refused()
    )


def test_frames_within_the_page_play_as_well(show):
    html = """<iframe srcdoc="<body style='margin:0'><video src=a.mp4 autoplay muted></video>"
    style="border:0;width:256px;height:48px;position:absolute;left:0;top:0"></iframe>"""
    page = show(html, {"a.mp4": numbered(30, 30)})
    assert [number_at(page.frame(i)) for i in range(6)] == list(range(6))


def test_hostile_answers_do_not_reach_the_player(show):
    html = """<script>
    const room = window[Symbol.for('fragdex.media')];
    for (const [what, body] of [['facts', '{}'], ['picture', '{"id": "x"}'], ['sound', 'null'],
      ['nonsense', '{}'], ['facts', '{"url": "file:///etc/passwd"}'], ['pixels', '[1'],
      ['facts', '{"url": "http://127.0.0.1/a.mp4"}'], ['facts', '{"url": "../a.mp4"}']])
      window.answered = (window.answered || []).concat([room.ask(what, body)]);
    </script>"""
    page = show(html)
    page.frame(0)
    assert page.ask("answered") == [None] * 8


def test_a_page_cannot_ask_without_end(show):
    html = """<script>const room = window[Symbol.for('fragdex.media')];
    let answered = 0;
    while (answered < 5000 && room.ask('refused', 'x') !== null) answered++;</script>"""
    page = show(html)
    assert page.ask("answered") == 1000
    page.frame(0)
    assert page.ask("room.ask('refused', 'x')") == ""


def test_a_page_that_breaks_its_player_fails(show):
    page = show("<video src=a.mp4 autoplay muted></video>", {"a.mp4": numbered(30, 30)})
    page.frame(0)
    page.ask("window[Symbol.for('fragdex.media')].wanted = () => [{id: {}}]")
    with pytest.raises(PageFailed, match="broke what plays"):
        page.frame(1)


def test_loading_again_shows_the_film_again(show):
    html = "<video id=v src=a.mp4 muted></video><script>at(100, () => v.load())</script>"
    page = show(html, {"a.mp4": one_colour((200, 40, 30))})
    shown = [picture[20, 20] for picture in page.frames(0, 9)]
    assert all(red > 190 and green < 60 for red, green, _ in (shown[0], shown[2], *shown[5:]))
