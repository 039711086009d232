"""The media of a page: what a stage asks frame by frame, and the scripts while the page waits.

The page is hostile: whatever it asks is answered or refused, and costs no more than it may. What
reads and draws media (`medium`, `mixing`) is imported when a page first has some: most have none,
and it takes as much processor time to load as a browser's start.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from fragdex.errors import FragdexError, PageFailed, ServiceError
from fragdex.rendering.browser.model import ENDPOINT, MediaAnswer, Staged
from fragdex.rendering.page_media.opening import Opener, data_of
from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip, Takes
from fragdex.rendering.site import Blocked

if TYPE_CHECKING:
    from fragdex.rendering.page_media.medium import Medium, Pictures
    from fragdex.rendering.page_media.mixing import Flow

# ISO/IEC 23091-2, TransferCharacteristics.
_HDR: Final = {16: "HDR (PQ)", 18: "HDR (HLG)"}
MOST_MEDIA: Final = 200
"""Files that one page may play."""
MOST_ASKED: Final = 1000
"""Questions between two frames: a page that asks endlessly must not run endlessly."""
MOST_GIVEN: Final = 256 << 20
"""Bytes that a page may hand over in data: and blob: URLs, all together."""
MOST_DECODERS: Final = 16
"""Videos that are decoded side by side; the least recently requested one starts again."""
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

_EMPTY_DATA: Final = re.compile(r"data:[^,]*,\s*\Z", re.IGNORECASE)
"""What players give an element to unlock sound: it plays nothing, so that nothing is missed."""


class Answers:
    """Answers the scripts of one page.

    Attributes:
        shows, plays, listens: whether the page has requested pictures, for any media, for sound of
            graphs of its own.
        pixels: of all pictures that were given to be shown.
        refused: what could not be had, in order, each once.

    Args:
        opener: opens what the page plays.
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
            reply = self._answers[what](json.loads(body) if body[:1] == b"{" else body.decode())
        except FAULTS as error:
            return MediaAnswer(404, "text/plain", type(error).__name__.encode())
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return MediaAnswer(200, "text/plain; charset=utf-8", text.encode())

    def next_frame(self) -> None:
        """A frame begins: the page may ask again."""
        self._asked = 0

    def refuse(self, what: str) -> str:
        """Note what cannot be had."""
        if len(self.refused) < MOST_REFUSED:
            self.refused[what[:300]] = None
        return ""

    def picture(self, request: dict[str, Any]) -> dict[str, str]:
        """The picture of an element, by name; its data: URL, where it does not hold it already."""
        from fragdex.rendering.page_media.medium import url_of

        medium, picture = self._decoded(request)
        name = f"{medium.url[-100:]}@{picture.time}"
        if request.get("held") == name:
            return {"name": name}
        self.pixels += picture.frame.width * picture.frame.height
        return {"name": name, "picture": url_of(picture)}

    def presented(self, request: dict[str, Any]) -> float:
        """When the picture of an element begins, in seconds of media time."""
        medium = self._media[request["source"]]
        decoder = self._decoder(int(request["id"]), medium)
        return float(decoder.time_at(_media_time(float(request["time"]), medium)))

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

    def _facts(self, request: dict[str, Any]) -> dict[str, Any]:
        from fragdex.rendering.page_media.medium import blank

        url = str(request["url"])
        try:
            medium = self._medium(url, request.get("bytes"))
        except FAULTS as error:
            if not _EMPTY_DATA.match(url):
                self.refuse(f"{url[:120]}: {why(error)}")
            raise
        self.plays = True
        video = None
        if medium.size is not None and request.get("video"):
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

    def _pixels(self, request: dict[str, Any]) -> dict[str, Any]:
        from fragdex.rendering.page_media.medium import pixels

        medium, picture = self._decoded(request)
        name = f"{medium.url[-100:]}@{picture.time}"
        return {"frame": name} | ({} if request.get("held") == name else pixels(picture))

    def _decoded(self, request: dict[str, Any]) -> tuple[Medium, Any]:
        medium = self._media[str(request["source"])]
        time = _media_time(float(request["time"]), medium)
        picture = self._decoder(int(request["id"]), medium).at(time)
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

    def _sound(self, request: dict[str, Any]) -> str:
        """The next samples of an element that a graph of the page listens to, in base64."""
        from fragdex.rendering.page_media.mixing import Flow, MediaReader

        name, count = str(request["feed"]), min(int(request["count"]), MOST_SAMPLES)
        if request.get("fresh"):
            begun = name.rpartition(".")[0]
            for old in [key for key in self._flows if key.rpartition(".")[0] == begun]:
                self._flows.pop(old).close()
            reader = MediaReader(str(request["source"]), self._opener, loop=bool(request["loop"]))
            speed = float(request["rate"]), bool(request["pitch"])
            self._flows[name] = Flow(reader, float(request["media"]), *speed)
        sound = self._flows[name].next(count)
        return base64.b64encode(sound.astype("<f4").tobytes()).decode()


def why(error: BaseException) -> str:
    """One sentence on what is wrong."""
    if isinstance(error, Blocked):
        return error.reason
    return getattr(error, "message", None) or str(error) or type(error).__name__


def _media_time(time: float, medium: Medium) -> Fraction:
    """A time of the page as one of the file: one that was rounded up to a tick is meant still."""
    return Fraction(time) + min(medium.tick / 2, _MOST_ROUNDED) + _MICROSECOND


SCRIPTS: Final = ("clock", "loading", "player", "elements", "pictures", "webaudio")
MOST_SHOWN: Final = 24 << 20
"""Pixels (of 4 bytes) that a browser may keep of pictures that were shown."""
MOST_SECONDS: Final = 3600.0
_QUANTUM: Final = 128
_ROOM: Final = "globalThis[Symbol.for('fragdex.media')]"


class Player:
    """Plays the media of one page.

    A stage adds `scripts` to every frame before the page's own, answers requests below `ENDPOINT`
    by `answer`, and fails requests that the browser itself makes for media (resource type `Media`)
    without a note: their elements are played here. The page's own content security policy must not
    reach the scripts (Page.setBypassCSP).

    Args:
        fps: of the render.
        opener: opens what the page plays.
        seconds: how long a page's own graphs (WebAudio) may play at most.
    """

    def __init__(self, fps: Fraction, opener: Opener, seconds: float = MOST_SECONDS) -> None:
        self._fps, self._opener, self._seconds = fps, opener, seconds
        self._answers = Answers(opener)
        self._stage: Staged | None = None
        self._takes = Takes()
        self._handed = False
        self._relieved = 0

    @property
    def reads(self) -> dict[str, str | None]:
        """Paths of the site that were played, each with its SHA-256."""
        return self._opener.reads

    def scripts(self) -> list[str]:
        """What is added to every frame, in this order."""
        settings = {
            "endpoint": ENDPOINT,
            "fps": [self._fps.numerator, self._fps.denominator],
            "seconds": self._seconds,
        }
        folder = files(__package__)
        texts = []
        for name in SCRIPTS:
            source = (folder / f"{name}.js").read_text("utf-8")
            texts.append(f"{source.rstrip()}({json.dumps(settings) if name == 'clock' else ''});")
        return texts

    def bind(self, stage: Staged) -> None:
        """Take the stage that calls; before the page is loaded."""
        self._stage = stage

    def answer(self, url: str, body: bytes) -> MediaAnswer:
        """Answer a POST of the scripts; called whenever the page asks, also within `evaluate`."""
        return self._answers.answer(url, body)

    @property
    def listens(self) -> bool:
        """Whether the page plays graphs of its own."""
        return self._answers.listens

    def settled(self) -> bool:
        """Whether every element knows what it plays; asked while the page loads, clock stopped."""
        needed = self._answers.plays or self._answers.listens
        return not needed or bool(self._ask("loading === 0"))

    def started(self) -> None:
        """The page stands at frame 0: what it plays begins now."""
        self._ask("begin()")

    def stands(self) -> bool:
        """Whether the page's own graphs have come to where they were last led to."""
        return not self._answers.listens or bool(self._ask("stands()"))

    def hear(self, *, kept: bool) -> None:
        """Take what the page's own graphs play until now; or let it pass, with what was taken.

        Called when the page's clock reached a frame, before the page knows of it.
        """
        if self._handed or not kept:
            self._takes.clear()
            self._handed = False
        if self._answers.listens:
            self._take_graphs(self._ask(f"listen({json.dumps(kept)})"))

    def before_frame(self, *, drawing: bool = True) -> bool:
        """Draw the pictures of a frame, unless nobody sees it; True where one changed.

        Called when the page's clock reached the frame, before it is drawn; the clock stands still.
        """
        self._answers.next_frame()
        return self._answers.shows and self._draw(drawing=drawing)

    def longest_ms(self) -> float | None:
        """When the last of the media that play now will have ended; None: there are none."""
        seconds = self._ask("longest()") if self._answers.plays else None
        return float(seconds) if isinstance(seconds, int | float) and 0 < seconds < 1e9 else None

    def sound(self, first: int, stop: int) -> list[SoundStrip]:
        """What is heard in frames first (inclusive) to stop (exclusive), all of them drawn.

        Of the page's own graphs it is what was taken (`hear`), in whole quanta of 128 samples.

        Raises:
            PageFailed: the page broke what plays its media.
        """
        start_s, stop_s = (float(frame / self._fps) for frame in (first, stop))
        pieces = []
        if self._answers.plays:
            try:
                strips = [_strip(fields, stop_s) for fields in self._ask("sounds()")]
            except FAULTS as error:
                raise _broken(error) from error
            pieces = [
                strip.within(start_s, stop_s)
                for strip in strips
                if strip.start < stop_s and strip.stop > start_s
            ]
        if self._answers.listens:
            # from the quantum in which the first frame begins
            pieces += self._takes.strips(start_s - _QUANTUM / SAMPLE_RATE)
            self._handed = True
        return pieces

    def own_samples(self, strips: Sequence[SoundStrip]) -> dict[str, bytes]:
        """What these strips name and nobody else has: bytes that the page handed over or made.

        They go with the slice; `Opener` finds them again by `kept`.
        """
        names = {strip.source for strip in strips}
        given = {name: self._opener.given[name] for name in names & self._opener.given.keys()}
        for name in names:
            data = self._takes.data(name)
            if data is not None:
                given[name] = data
        return given

    def refused(self) -> list[str]:
        """What the page wanted and cannot have, and media that cannot be played."""
        return list(self._answers.refused)

    def close(self) -> None:
        """Give decoders and files back."""
        self._answers.close()
        self._takes.clear()

    def _ask(self, expression: str) -> Any:
        if self._stage is None:
            raise RuntimeError("no stage is bound")
        return self._stage.evaluate(f"{_ROOM}.{expression}")

    def _draw(self, *, drawing: bool) -> bool:
        """Give the page the pictures that it wants, or tell it of them."""
        try:
            shown = [
                self._answered(wanted)
                for wanted in self._ask(f"wanted({json.dumps(drawing)})")[:1000]
            ]
        except FAULTS as error:
            raise _broken(error) from error
        if shown:
            self._ask(f"draw({json.dumps(shown)})")
            self._relieve()
        return any(one.get("picture") for one in shown)

    def _answered(self, wanted: dict[str, Any]) -> dict[str, Any]:
        one: dict[str, Any] = {"id": int(wanted["id"])}
        try:
            if wanted.get("present"):
                one["presented"] = self._answers.presented(wanted)
            if wanted.get("draw"):
                one |= self._answers.picture(wanted)
        except FAULTS as error:
            # It keeps the picture it has.
            self._answers.refuse(f"{str(wanted.get('source'))[:120]}: {why(error)}")
            one["name"] = wanted.get("held")
        return one

    def _take_graphs(self, pieces: list[dict[str, Any]]) -> None:
        try:
            for piece in pieces:
                data = base64.b64decode(piece["data"])
                self._takes.add(int(piece["context"]), int(piece["first"]), data)
        except FAULTS as error:
            raise _broken(error) from error

    def _relieve(self) -> None:
        """Let the browser forget the pictures that were shown: it keeps hundreds of them."""
        if self._answers.pixels - self._relieved >= MOST_SHOWN and self._stage is not None:
            self._relieved = self._answers.pixels
            self._stage.relieve()


def _broken(error: BaseException) -> PageFailed:
    return PageFailed("the page broke what plays its media", found=why(error))


def _strip(fields: dict[str, Any], end: float) -> SoundStrip:
    """A strip as the page tells it; one that still sounds ends where requested."""
    return SoundStrip(
        source=str(fields["source"]),
        start=fields["start"] / 1000,
        stop=end if fields["stop"] is None else fields["stop"] / 1000,
        media_start=float(fields["media"]),
        rate=float(fields["rate"]),
        gains=tuple((at / 1000, float(gain)) for at, gain in fields["gains"]),
        loop=bool(fields["loop"]),
        preserves_pitch=bool(fields["pitch"]),
        voice=str(fields["voice"]),
    )
