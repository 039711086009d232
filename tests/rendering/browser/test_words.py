"""What the browser tells and asks, word by word: also what no page of ours brings it to say."""

import json
import sys

import pytest

from fragdex.cli import doctor as doctoring
from fragdex.rendering.browser.console import TELL, Console
from fragdex.rendering.browser.model import Limits, Notes
from fragdex.rendering.browser.requests import RequestInterceptor
from fragdex.rendering.site import NOTHING, Page


class Heard:
    """A pipe that keeps what is said, and says what it is told to."""

    def __init__(self):
        self.handlers, self.said = {}, []

    def on(self, event, handler):
        self.handlers[event] = handler

    def post(self, method, session, **params):
        self.said.append((method, params))

    def excuse(self, seconds):
        pass

    def tell(self, event, **params):
        self.handlers[event](params, "s")


@pytest.fixture
def listening():
    pipe, notes = Heard(), Notes()
    Console(pipe, notes)
    return pipe, notes


@pytest.mark.parametrize("payload", ["no json", "[]", "{}", '{"blocked": 1}', '{"refused": {}}'])
def test_lies_of_a_page_to_the_record_are_passed_over(listening, payload):
    pipe, notes = listening
    pipe.tell("Runtime.bindingCalled", name=TELL, payload=payload)
    pipe.tell("Runtime.bindingCalled", name="other", payload=json.dumps({"refused": "x"}))
    assert notes == Notes()


def test_dialogs_that_reach_the_browser_are_answered(listening):
    pipe, notes = listening
    pipe.tell("Page.javascriptDialogOpening", type="alert", message="a")
    pipe.tell("Page.javascriptDialogOpening", type="beforeunload", message="")
    assert [params["accept"] for _, params in pipe.said] == [False, True]
    assert notes.refused == ['alert("a")', 'beforeunload("")']


def test_the_log_is_sorted_into_what_was_blocked_and_what_went_wrong(listening):
    pipe, notes = listening
    for level, text in (
        ("error", "Not allowed to load local resource: file:///x"),
        ("error", "WebSocket connection to 'ws://h/y' failed: z"),
        ("error", "Failed to load resource: net::ERR_BLOCKED_BY_CLIENT"),
        ("verbose", "nothing"),
        ("error", "other"),
    ):
        pipe.tell("Log.entryAdded", entry={"level": level, "text": text})
    assert [one.url for one in notes.blocked] == ["file:///x", "ws://h/y"]
    assert notes.console == ["error: other"]


@pytest.mark.parametrize(
    ("url", "method", "answer", "reason"),
    [
        ("http://site.localhost/", "GET", 200, None),
        ("http://site.localhost/", "HEAD", 200, None),
        ("http://site.localhost/none", "GET", 404, None),
        ("http://site.localhost/favicon.ico", "GET", 204, None),
        ("data:text/plain,x", "GET", None, None),
        ("blob:http://site.localhost/1", "GET", None, None),
        ("http://site.localhost/", "POST", None, "POST: pages may only read"),
        ("ftp://host/", "GET", None, "ftp: is not served to pages"),
        ("http://[", "GET", None, "the URL cannot be read"),
        ("https://host/", "GET", None, "no network for pages"),
        ("https://site.localhost.example/", "GET", None, "no network for pages"),
        ("http://user@site.localhost/", "GET", None, "no network for pages"),
        ("http://site.localhost:81/", "GET", None, "no network for pages"),
    ],
)
def test_every_request_has_its_answer(url, method, answer, reason):
    pipe, notes = Heard(), Notes()
    RequestInterceptor(pipe, Page("<p>x"), NOTHING, notes, Limits())
    pipe.tell("Fetch.requestPaused", requestId="1", request={"url": url, "method": method})
    ((command, params),) = pipe.said
    if answer is not None:
        assert (command, params["responseCode"]) == ("Fetch.fulfillRequest", answer)
        assert bool(params["body"]) == (answer in (200, 404) and method != "HEAD")
    elif reason is None:
        assert command == "Fetch.continueRequest"
    else:
        assert (command, params["errorReason"]) == ("Fetch.failRequest", "BlockedByClient")
    assert [one.reason for one in notes.blocked] == ([] if reason is None else [reason])


@pytest.mark.parametrize(
    ("check", "gone", "state"),
    [
        ("library", "fragdex._native", "limited"),
        ("service", "fragdex.service.app", "missing"),
        ("media", "av", "missing"),
        ("stills", "PIL.features", "missing"),
        ("browser", "av", "missing"),
        ("speech", "fragdex.speech.process", "missing"),
    ],
)
def test_the_doctor_tells_what_is_not_installed(monkeypatch, check, gone, state):
    monkeypatch.setitem(sys.modules, gone, None)
    # where a browser stands beside what is missing, that is said first
    *_, part = getattr(doctoring, check)()
    assert part.state == state
    assert part.advice
