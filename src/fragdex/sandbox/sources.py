"""Files that a child reads through its parent, who has them open."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from fragdex import ByteRange, Source
from fragdex.sandbox.channel import Channel
from fragdex.sandbox.child import Answer


class ParentSource(Source):
    """A file whose bytes the parent `reads`.

    Args:
        number: of the file, where the parent reads several.
    """

    def __init__(
        self, channel: Channel, size: int | None, name: str = "the file", number: int = 0
    ) -> None:
        super().__init__(name, size=size, remote=True)
        self._channel, self._number = channel, number

    def read_up_to(self, range: ByteRange) -> bytes:
        """Ask the parent."""
        wanted = self._spend(range)
        answer, _ = self._channel.ask(start=wanted.start, stop=wanted.stop, file=self._number)
        return base64.b64decode(answer["data"])


def reads(*sources: Source) -> Answer:
    """What answers each `ParentSource` in a child, of files that its parent has open."""

    def answer(question: dict[str, Any]) -> tuple[dict[str, Any], Sequence[int]]:
        data = sources[question["file"]].read_up_to(ByteRange(question["start"], question["stop"]))
        return {"data": base64.b64encode(data).decode()}, ()

    return answer
