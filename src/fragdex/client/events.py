"""The events of a job: a stream of them that goes on after a break (WHATWG HTML, 9.2)."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import msgspec

from fragdex.client.api import Event, EventData
from fragdex.client.errors import (
    JobFailed,
    RequestRefused,
    ServiceUnreachable,
    UnexpectedResponse,
)
from fragdex.client.exchange import PASSING, Response, Retries, problem_of
from fragdex.client.request import Request

__all__ = ["EventStream"]

_ENDINGS: Final = ("complete", "error")


class EventStream:
    """What is known of a stream: where it is, and whether it ended.

    Args:
        request: of `…/progress`.

    Attributes:
        ended: whether its last event came.
    """

    def __init__(self, request: Request[Event], retries: Retries) -> None:
        self._request, self._retries = request, retries
        self._last: str | None = request.headers.get("Last-Event-ID")
        self._tried = 0
        self.ended = False

    def request(self) -> Request[Event]:
        """The request that goes on behind the last event."""
        headers = {**self._request.headers, "Last-Event-ID": self._last}
        return dataclasses.replace(self._request, headers=headers)

    def opened(self, response: Response) -> bool:
        """Take the head of a response; returns whether events follow.

        Raises:
            RequestRefused: the service refuses the stream.
        """
        if response.status == 204:
            self.ended = True
            return False
        if response.status >= 400:
            raise problem_of(response)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise UnexpectedResponse(f"{self._request.path} was answered with no events")
        return True

    def take(self, name: str, data: str, id: str) -> Event | None:
        """An event that came; None for a heartbeat.

        Raises:
            JobFailed: it is `error`.
        """
        self._tried = 0
        if name == "heartbeat":
            return None
        self._last = id or self._last
        self.ended = name in _ENDINGS
        members: dict[str, Any] = msgspec.json.decode(data or "{}")
        if name == "error":
            raise JobFailed(members)
        return Event(id=id, event=name, data=msgspec.convert(members, EventData))  # type: ignore[arg-type]

    def wait(self, why: Exception) -> float:
        """Seconds until the stream is asked for again, after a break.

        Raises:
            RequestRefused: it will be refused again.
            ServiceUnreachable: it broke too often with no event in between.
        """
        if isinstance(why, RequestRefused) and why.status not in PASSING:
            raise why
        if self._tried == self._retries.most:
            raise ServiceUnreachable(f"no events: {why}") from why
        self._tried += 1
        return self._retries.wait(self._tried - 1, getattr(why, "retry_after", None))
