"""A player that has the list of a title that grows again and again, as hls.js does at its end."""

import re

from fragdex.origin.waiting import Directives

PART = re.compile(r'#EXT-X-PART:.*URI="([^"]+)"')


class Stepping:
    """The list of a rendition as a player has it.

    Attributes:
        name: of the list.
        named: each part that a list has named, once, in order.
        ended: whether a list has said that nothing comes any more.
    """

    def __init__(self, name):
        self.name, self.named, self.ended, self.text = name, [], False, ""

    def take(self, text, update):
        """A list, and the same without the segments that players have."""
        head, mark, rest = update.partition("#EXT-X-SKIP:SKIPPED-SEGMENTS=")
        if mark:
            count, _, rest = rest.partition("\n")
            assert text.startswith(head)
            left = text.removeprefix(head).removesuffix(rest)
            assert len(re.findall(r"^[^#\n]", left, re.MULTILINE)) == int(count)
        assert text.endswith(rest)
        whole = lines(text)
        # what was listed stays
        known = lines(self.text)
        assert whole[: len(known)] == known
        parts = PART.findall(text)
        if self.text:
            new = [one for one in parts if one not in self.named]
            assert new == parts[len(parts) - len(new) :]
            self.named += new
        else:
            self.named += parts
        self.text, self.ended = text, "#EXT-X-ENDLIST" in text

    def asks(self):
        """What it asks for next: the part after the last one that it knows."""
        segment, part = 0, None
        for line in self.text.splitlines():
            if line.startswith("#EXT-X-PART:"):
                part = 0 if part is None else part + 1
            elif not line.startswith("#"):
                segment, part = segment + 1, None
        return Directives(segment, 0 if part is None else part + 1)


def lines(text):
    """The segments of a list, without parts and what comes next."""
    whole, end, _ = text.rpartition(".m4s\n")
    return [
        line
        for line in (whole + end).splitlines()
        if not line.startswith(("#EXT-X-PART:", "#EXT-X-PRELOAD", "#EXT-X-RENDITION", "#EXT-X-END"))
    ]
