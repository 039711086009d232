"""What the scripts of a page ask while the page waits: facts, pictures, pixels, sound.

The page is hostile: whatever it asks is answered or refused, and costs no more than it may. What
reads and draws media is imported when a page first has some: most have none, and it takes as much
processor time to load as a browser's start.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from fragdex.errors import FragdexError, ServiceError
from fragdex.rendering.outside import Blocked
from fragdex.rendering.page_media.contract import MediaAnswer
from fragdex.rendering.page_media.opening import Opener, data_of
from fragdex.rendering.page_media.strips import SAMPLE_RATE

if TYPE_CHECKING:
    from fragdex.rendering.page_media.medium import Medium, Pictures
    from fragdex.rendering.page_media.voices import Flow

__all__ = ["FAULTS", "Answers"]

# ISO/IEC 23091-2, TransferCharacteristics.
_HDR: Final = {16: "HDR (PQ)", 18: "HDR (HLG)"}
MOST_MEDIA: Final = 200
"""Files that one page may play."""
MOST_ASKED: Final = 1000
"""Questions between two frames: a page that asks without end must not go on without end."""
MOST_GIVEN: Final = 256 << 20
"""Bytes that a page may hand over in data: and blob: URLs, all together."""
MOST_DECODERS: Final = 16
"""Videos that are decoded side by side; the one that was asked for longest ago begins anew."""
MOST_SAMPLES: Final = 10 * SAMPLE_RATE
MOST_REFUSED: Final = 100
# Times of the page are whole microseconds; those of a file may have been rounded to its ticks.
_MICROSECOND: Final = Fraction(1, 1_000_000)
_MOST_ROUNDED: Final = Fraction(1, 2000)
FAULTS: Final = (
    FragdexError, ServiceError, Blocked, OSError, ValueError, TypeError, ArithmeticError,
    LookupError, MemoryError,
)  # fmt: skip
"""What may come of a file or a question that is not as it should be."""


class Answers:
    """Answers the scripts of one page.

    Attributes:
        shows, plays, listens: whether the page has asked for pictures, for any media, for sound of
            graphs of its own.
        pixels: of all pictures that were given to be shown.
        refused: what could not be had, in order, each once.

    Args:
        opener: opens what the page plays.

    >>> from fragdex.rendering.site import Page
    >>> answers = Answers(Opener(Page("<h1>")))
    >>> answers.answer("http://site.localhost/facts", b'{"url": "data:,nothing"}').status
    404
    >>> list(answers.refused)
    ['data:,nothing: this is not a media file that can be read']
    """

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self.shows = self.plays = self.listens = False
        self.pixels = 0
        self.refused: dict[str, None] = {}
        self._media: dict[str, Medium] = {}
        self._decoders: OrderedDict[tuple[int, str], Pictures] = OrderedDict()
        self._flows: dict[str, Flow] = {}
        self._given = self._asked = 0
        self._answers: dict[str, Callable[[Any], Any]] = {
            "facts": self._facts,
            "picture": self.picture,
            "pixels": self._pixels,
            "refused": self.refuse,
            "listens": self._listen,
            "sound": self._sound,
        }

    def answer(self, url: str, body: bytes) -> MediaAnswer:
        """The answer to a POST; whatever is wrong with it is an answer too."""
        what = urlsplit(url).path.rpartition("/")[2]
        self._asked += 1
        if self._asked > MOST_ASKED:
            return MediaAnswer(404, "text/plain", b"asked too often")
        try:
            told = self._answers[what](json.loads(body) if body[:1] == b"{" else body.decode())
        except FAULTS as error:
            return MediaAnswer(404, "text/plain", type(error).__name__.encode())
        text = told if isinstance(told, str) else json.dumps(told)
        return MediaAnswer(200, "text/plain; charset=utf-8", text.encode())

    def next_frame(self) -> None:
        """A frame begins: the page may ask anew."""
        self._asked = 0

    def refuse(self, what: str) -> str:
        """Note what cannot be had."""
        if len(self.refused) < MOST_REFUSED:
            self.refused[what[:300]] = None
        return ""

    def picture(self, asked: dict[str, Any]) -> dict[str, str]:
        """The picture of an element, by name; its data: URL, where it does not hold it already."""
        from fragdex.rendering.page_media.drawing import url_of

        medium, picture = self._decoded(asked)
        name = f"{medium.url[-100:]}@{picture.time}"
        if asked.get("held") == name:
            return {"name": name}
        self.pixels += picture.frame.width * picture.frame.height
        return {"name": name, "picture": url_of(picture)}

    def presented(self, asked: dict[str, Any]) -> float:
        """When the picture of an element begins, in seconds of media time."""
        medium = self._media[asked["source"]]
        decoder = self._decoder(int(asked["id"]), medium)
        return float(decoder.time_at(_media_time(float(asked["time"]), medium)))

    def close(self) -> None:
        """Give decoders and files back."""
        for flow in self._flows.values():
            flow.close()
        for decoder in self._decoders.values():
            decoder.close()
        for medium in self._media.values():
            medium.close()
        self._flows.clear()
        self._decoders.clear()
        self._media.clear()

    def _facts(self, asked: dict[str, Any]) -> dict[str, Any]:
        from fragdex.rendering.page_media.drawing import blank

        url = str(asked["url"])
        try:
            medium = self._medium(url, asked.get("bytes"))
        except FAULTS as error:
            self.refuse(f"{url[:120]}: {why(error)}")
            raise
        self.plays = True
        video = None
        if medium.size is not None and asked.get("video"):
            self.shows = True
            width, height = medium.size
            video = {"width": width, "height": height, "blank": blank(width, height)}
        return {
            "key": medium.url,
            "duration": medium.duration,
            "start": medium.start,
            "audio": medium.has_sound,
            "video": video,
        }

    def _medium(self, url: str, given: str | None) -> Medium:
        from fragdex.rendering.page_media.medium import Medium

        key = url
        if given is not None or url.startswith("data:"):
            self._given += len(url if given is None else given)
            if self._given > MOST_GIVEN:
                raise ValueError("the page hands over too many bytes")
            data = data_of(url) if given is None else base64.b64decode(given)
            key = f"given:{hashlib.sha256(data).hexdigest()}"
            self._opener.given[key] = data
        if key not in self._media:
            if len(self._media) >= MOST_MEDIA:
                raise ValueError(f"a page plays at most {MOST_MEDIA} files")
            self._media[key] = Medium(key, self._opener)
        return self._media[key]

    def _pixels(self, asked: dict[str, Any]) -> dict[str, Any]:
        from fragdex.rendering.page_media.drawing import pixels

        medium, picture = self._decoded(asked)
        name = f"{medium.url[-100:]}@{picture.time}"
        return {"frame": name} | ({} if asked.get("held") == name else pixels(picture))

    def _decoded(self, asked: dict[str, Any]) -> tuple[Medium, Any]:
        medium = self._media[str(asked["source"])]
        time = _media_time(float(asked["time"]), medium)
        picture = self._decoder(int(asked["id"]), medium).at(time)
        if (transfer := _HDR.get(int(picture.frame.color_trc or 0))) is not None:
            # a browser maps its brightness to that of the page
            self.refuse(f"{transfer}: {medium.url[:120]} is shown as if it were SDR")
        return medium, picture

    def _decoder(self, number: int, medium: Medium) -> Pictures:
        key = number, medium.url
        if key not in self._decoders:
            if len(self._decoders) >= MOST_DECODERS:
                self._decoders.popitem(last=False)[1].close()
            self._decoders[key] = medium.pictures()
        self._decoders.move_to_end(key)
        return self._decoders[key]

    def _listen(self, _: str) -> str:
        self.listens = True
        return ""

    def _sound(self, asked: dict[str, Any]) -> str:
        """The next samples of an element that a graph of the page listens to, in base64."""
        from fragdex.rendering.page_media.voices import Flow, MediaReader

        name, count = str(asked["feed"]), min(int(asked["count"]), MOST_SAMPLES)
        if asked.get("fresh"):
            begun = name.rpartition(".")[0]
            for old in [key for key in self._flows if key.rpartition(".")[0] == begun]:
                self._flows.pop(old).close()
            reader = MediaReader(str(asked["source"]), self._opener, loop=bool(asked["loop"]))
            speed = float(asked["rate"]), bool(asked["pitch"])
            self._flows[name] = Flow(reader, float(asked["media"]), *speed)
        sound = self._flows[name].next(count)
        return base64.b64encode(sound.astype("<f4").tobytes()).decode()


def why(error: BaseException) -> str:
    """One sentence on what is wrong.

    >>> why(ValueError("no film")), why(KeyError())
    ('no film', 'KeyError')
    """
    if isinstance(error, Blocked):
        return error.reason
    return getattr(error, "message", None) or str(error) or type(error).__name__


def _media_time(time: float, medium: Medium) -> Fraction:
    """A time of the page as one of the file: one that was rounded up to a tick is meant still."""
    return Fraction(time) + min(medium.tick / 2, _MOST_ROUNDED) + _MICROSECOND
