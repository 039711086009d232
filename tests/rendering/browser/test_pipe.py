"""What is said to a browser and what it answers, also where it answers badly."""

import os
import threading

import pytest

from fragdex.errors import BrowserGone
from fragdex.rendering.browser.pipe import Pipe, ProtocolError, from_cbor, to_cbor


@pytest.fixture
def ends():
    """(our pipe, write as the browser, read as the browser)."""
    to_us, from_browser = os.pipe()
    to_browser, from_us = os.pipe()
    pipe = Pipe(to_us, from_us)
    writer = os.fdopen(from_browser, "wb", buffering=0)
    reader = os.fdopen(to_browser, "rb")
    yield pipe, writer, reader
    pipe.close()
    for file in (writer, reader):
        file.close()


def test_answers_find_their_questions_and_events_their_handlers(ends):
    pipe, writer, _ = ends
    heard = []
    pipe.on("Page.happened", lambda params, session: heard.append((params, session)))
    first, second = pipe.send("A.b"), pipe.send("C.d", "s1", x=1)
    for message in (
        {"id": second, "result": {"n": 2}},
        {"method": "Page.happened", "params": {"y": 3}, "sessionId": "s1"},
        {"method": "Nobody.listens", "params": {}},
        {"id": first, "error": {"message": "no"}},
    ):
        writer.write(to_cbor(message))
    assert pipe.answer(second) == {"n": 2}
    with pytest.raises(ProtocolError, match="no"):
        pipe.answer(first)
    assert heard == [({"y": 3}, "s1")]


@pytest.mark.parametrize("size", [10, 100_000, 3_000_000])
@pytest.mark.parametrize("field", ["screenshotData", "data"])
def test_pictures_arrive_as_bytes_however_large(ends, size, field):
    pipe, writer, _ = ends
    picture = os.urandom(size)
    number = pipe.send("Give.picture")
    message = {"id": number, "result": {"hasDamage": True, field: picture}, "sessionId": "s"}
    data = to_cbor(message)
    thread = threading.Thread(target=writer.write, args=(data,))
    thread.start()
    assert pipe.answer(number) == {"hasDamage": True, field: picture}
    thread.join()


def test_a_large_answer_that_is_no_picture_stays_what_it_is(ends):
    pipe, writer, _ = ends
    number = pipe.send("Runtime.evaluate")
    result = {"result": {"type": "string", "value": "x" * 100_000 + '"data":"eHg="'}}
    data = to_cbor({"id": number, "result": result})
    thread = threading.Thread(target=writer.write, args=(data,))
    thread.start()
    assert pipe.answer(number) == result
    thread.join()


def test_what_is_posted_is_not_kept(ends):
    pipe, writer, reader = ends
    pipe.post("A.b", "s", x="y")
    message = from_cbor(reader.read1())
    assert message == {"id": 1, "method": "A.b", "params": {"x": "y"}, "sessionId": "s"}
    number = pipe.send("C.d")
    writer.write(to_cbor({"id": 1, "result": {}}) + to_cbor({"id": 2, "result": {}}))
    assert pipe.answer(number) == {}
    assert not pipe.answered(1)


def test_a_closed_pipe_is_a_browser_that_is_gone(ends):
    pipe, writer, reader = ends
    writer.close()
    with pytest.raises(BrowserGone):
        pipe.call("A.b")
    reader.close()
    with pytest.raises(BrowserGone):
        pipe.send("A.b")


def test_a_silent_browser_is_waited_for_as_long_as_the_watch_allows(ends):
    pipe, _, _ = ends
    waited = []

    class Enough(Exception):
        pass

    def wait(_, seconds):
        waited.append(seconds)
        if len(waited) == 2:
            raise Enough

    pipe.wait = wait
    with pytest.raises(Enough):
        pipe.call("A.b")
    assert 0 < waited[0] < waited[1]


def test_time_that_we_needed_is_excused(ends):
    pipe, writer, _ = ends
    waited = []
    pipe.wait = lambda _, seconds: waited.append(seconds)
    pipe.on("Ask.us", lambda *_: pipe.excuse(100))
    number = pipe.send("A.b")
    writer.write(to_cbor({"method": "Ask.us", "params": {}}))
    timer = threading.Timer(0.6, writer.write, [to_cbor({"id": number, "result": {}})])
    timer.start()
    pipe.answer(number)
    timer.join()
    assert waited
    assert all(seconds < 0 for seconds in waited)


def test_much_is_said_while_the_browser_talks(ends):
    """Both pipes are full at once: neither side may wait for the other for ever."""
    pipe, writer, reader = ends
    words = to_cbor({"method": "Nobody.listens", "params": {"x": "y" * 1000}})

    def talk():
        for _ in range(3000):
            writer.write(words)
        left = 5_000_000
        while left > 0:
            left -= len(reader.read1(1 << 20))
        writer.write(to_cbor({"id": 1, "result": {}}))

    browser = threading.Thread(target=talk)
    browser.start()
    assert pipe.answer(pipe.send("A.b", body="z" * 5_000_000)) == {}
    browser.join()


@pytest.mark.parametrize("said", [b'{"id":1,"result":{}}', b"\xd8\x18\x5a\x00\x00\x00\x01\xff"])
def test_a_browser_that_speaks_otherwise_is_gone(ends, said):
    pipe, writer, _ = ends
    writer.write(said)
    with pytest.raises(BrowserGone):
        pipe.call("A.b")
