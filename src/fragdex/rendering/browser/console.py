"""What the page says: to its console, by what it throws, and by what our script refused it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fragdex.rendering.browser.animated import ANIMATED, note_picture
from fragdex.rendering.browser.model import Notes
from fragdex.rendering.browser.pipe import Pipe

TELL: Final = "__fragdexTell"
"""The binding by which our script in the page says what it refused."""

# Events of our script, in words.
_KEPT: Final = {
    "picture": ANIMATED,
    "transition": "a view transition",
    "decoder": "ImageDecoder",
}
_KINDS: Final = {"error": "error", "assert": "error", "warning": "warning"}
# Chromium's word for what it refuses by itself, before any request is made.
_LOCAL: Final = "Not allowed to load local resource: "
# Chromium's words for invalid scripts, and for errors of workers.
_SCRIPTS: Final = ("Failed to load module script: ", "Uncaught ")
# A worker's socket, which our script in the page does not see.
_SOCKET: Final = re.compile(r"WebSocket connection to '([^']*)' failed")


class Console:
    """Listens to a page and its workers."""

    def __init__(self, pipe: Pipe, notes: Notes) -> None:
        self._pipe, self._notes = pipe, notes
        self._failed: dict[tuple[str | None, int], str] = {}
        self.given_canvases = 0
        """How many canvases the page gave away, to be drawn by workers."""
        self.has_transitions = False
        """Whether the page has begun view transitions."""
        self.has_works = False
        """Whether the page has begun anything that takes the machine's time."""
        pipe.on("Runtime.exceptionThrown", self._thrown)
        pipe.on("Runtime.exceptionRevoked", self._revoked)
        pipe.on("Runtime.consoleAPICalled", self._called)
        pipe.on("Runtime.bindingCalled", self._on_binding)
        pipe.on("Log.entryAdded", self._logged)
        pipe.on("Page.javascriptDialogOpening", self._dialog)

    def watch(self, session: str) -> None:
        """Listen to a session."""
        self._pipe.call("Runtime.enable", session)
        self._pipe.call("Runtime.addBinding", session, name=TELL)
        self._pipe.call("Log.enable", session)

    def _thrown(self, params: dict[str, Any], session: str | None) -> None:
        details = params["exceptionDetails"]
        text = text_of(details)
        self._notes.say("console", f"error: {text}")
        self._notes.say("incomplete", text)
        self._failed[session, details["exceptionId"]] = text[: self._notes.LONGEST]

    def _revoked(self, params: dict[str, Any], session: str | None) -> None:
        """A rejection that nobody had handled is handled now."""
        text = self._failed.pop((session, params["exceptionId"]), None)
        if text in self._notes.incomplete and text not in self._failed.values():
            self._notes.incomplete.remove(text)

    def _called(self, params: dict[str, Any], _: str | None) -> None:
        kind = _KINDS.get(params["type"])
        if kind is not None:
            words = " ".join(map(_shown, params["args"]))
            self._notes.say("console", f"{kind}: {words}")

    def _on_binding(self, params: dict[str, Any], _: str | None) -> None:
        if params["name"] != TELL:
            return
        try:
            payload = json.loads(params["payload"])
        except ValueError:
            return
        if not isinstance(payload, dict):
            return
        if isinstance(payload.get("blocked"), str):
            self._notes.block(payload["blocked"], str(payload.get("reason")))
        elif isinstance(payload.get("refused"), str):
            self._notes.say("refused", payload["refused"])
        elif isinstance(payload.get("drawing"), str):
            note_picture(self._notes, payload["drawing"].encode("utf-8", "replace"), "a blob: URL")
        elif payload.get("gives") == "canvas":
            self.given_canvases += 1
        elif payload.get("begins") == "work":
            self.has_works = True
        elif (label := _KEPT.get(str(payload.get("keeps")))) is not None:
            self._notes.say("keeps", label)
            self.has_transitions |= payload["keeps"] == "transition"
        elif isinstance(payload.get("uses"), str):
            where = f" ({payload['at']})" if payload.get("at") else ""
            self._notes.say("uses", f"{payload['uses']}{where}")

    def _logged(self, params: dict[str, Any], _: str | None) -> None:
        entry = params["entry"]
        text = entry["text"]
        if text.startswith(_LOCAL):
            self._notes.block(text.removeprefix(_LOCAL), "files of the machine are not served")
        elif (socket := _SOCKET.match(text)) is not None:
            self._notes.block(socket[1], "WebSocket: no network for pages")
        elif entry["level"] == "error" and "net::ERR_BLOCKED_BY_CLIENT" not in text:
            # what the door blocked stands in a list of its own
            where = f" ({entry['url']})" if entry.get("url") else ""
            self._notes.say("console", f"error: {text}{where}")
            if text.startswith(_SCRIPTS):
                self._notes.say("incomplete", f"{text}{where}")

    def _dialog(self, params: dict[str, Any], session: str | None) -> None:
        self._notes.say("refused", f"{params['type']}({json.dumps(params['message'])})")
        # Leaving is what beforeunload asks about; all else is dismissed.
        leaves = params["type"] == "beforeunload"
        self._pipe.post("Page.handleJavaScriptDialog", session, accept=leaves)


def text_of(details: dict[str, Any]) -> str:
    """What was thrown, and where."""
    thrown = details.get("exception", {})
    words = thrown.get("description") or _shown(thrown) or details.get("text", "")
    lines = str(words).split("\n")
    where = f" ({details['url']}:{details['lineNumber'] + 1})" if details.get("url") else ""
    return f"{lines[0]}{where}"


def _shown(value: dict[str, Any]) -> str:
    if "value" in value:
        text = value["value"]
        return text if isinstance(text, str) else json.dumps(text)
    return str(
        value.get("description") or value.get("unserializableValue") or value.get("type", "")
    )
