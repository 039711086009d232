"""Answers the scripts that are added to a page, and draws the pictures of its videos."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from fragdex.errors import FragdexError
from fragdex.service.errors import ServiceError
from fragdex.service.renders.media import drawing
from fragdex.service.renders.media.contract import ENDPOINT, MediaAnswer, Staged
from fragdex.service.renders.media.medium import Medium, Pictures
from fragdex.service.renders.media.opening import Opener, data_of
from fragdex.service.renders.media.strips import SAMPLE_RATE, SoundStrip
from fragdex.service.renders.media.takes import Takes
from fragdex.service.renders.media.voices import Flow, MediaReader
from fragdex.service.renders.outside import Blocked

__all__ = ["Player"]

SCRIPTS: Final = ("clock", "loading", "player", "elements", "pictures", "webaudio")
MOST_MEDIA: Final = 200
"""Files that one page may play."""
MOST_ASKED: Final = 1000
"""Questions between two frames: a page that asks without end must not go on without end."""
MOST_GIVEN: Final = 256 << 20
"""Bytes that a page may hand over in data: and blob: URLs, all together."""
MOST_DECODERS: Final = 16
"""Videos that are decoded side by side; the one that was asked for longest ago begins anew."""
MOST_SHOWN: Final = 24 << 20
"""Pixels (of 4 bytes) that a browser may keep of pictures that were shown."""
MOST_SECONDS: Final = 3600.0
MOST_REFUSED: Final = 100
_ROOM: Final = "globalThis[Symbol.for('fragdex.media')]"
# Times of the page are whole microseconds; those of a file may have been rounded to its ticks.
_MICROSECOND: Final = Fraction(1, 1_000_000)
_MOST_ROUNDED: Final = Fraction(1, 2000)
_FAULTS: Final = (
    FragdexError, ServiceError, Blocked, OSError, ValueError, TypeError, ArithmeticError,
    LookupError, MemoryError,
)  # fmt: skip


class Player:
    """Plays the media of one page; a `PageMedia`.

    Args:
        fps: of the render.
        opener: opens what the page plays.
        seconds: how long a page's own graphs (WebAudio) may play at most.

    >>> from fragdex.service.renders.site import Page
    >>> player = Player(Fraction(30), Opener(Page("<h1>")))
    >>> player.answer(ENDPOINT + "facts", b'{"url": "data:,nothing"}').status
    404
    >>> player.refused()
    ['data:,nothing: this is not a media file that can be read']
    """

    def __init__(self, fps: Fraction, opener: Opener, seconds: float = MOST_SECONDS) -> None:
        self._fps, self._opener, self._seconds = fps, opener, seconds
        self._stage: Staged | None = None
        self._media: dict[str, Medium] = {}
        self._decoders: OrderedDict[tuple[int, str], Pictures] = OrderedDict()
        self._drawn: dict[int, tuple[str, Fraction]] = {}
        self._refused: dict[str, None] = {}
        self._given = self._shown_pixels = self._asked_now = 0
        self._flows: dict[str, Flow] = {}
        self._takes = Takes()
        self._handed = False
        self._shows = self._plays = self._listens = False
        self._asked: dict[str, Callable[[Any], Any]] = {
            "facts": self._facts,
            "picture": self._picture,
            "pixels": self._pixels,
            "refused": self._refuse,
            "listens": self._listen,
            "sound": self._sound,
        }

    @property
    def reads(self) -> dict[str, bytes | None]:
        """Paths of the site that were played, each with its SHA-256."""
        return self._opener.reads

    # -- what a stage asks (`PageMedia`)

    def scripts(self) -> list[str]:
        """What is added to every frame, in this order."""
        settings = {
            "endpoint": ENDPOINT,
            "fps": [self._fps.numerator, self._fps.denominator],
            "seconds": self._seconds,
        }
        folder = files(__package__)
        found = []
        for name in SCRIPTS:
            source = (folder / f"{name}.js").read_text("utf-8")
            found.append(f"{source.rstrip()}({json.dumps(settings) if name == 'clock' else ''});")
        return found

    def bind(self, stage: Staged) -> None:
        """Take the stage that calls."""
        self._stage = stage

    def answer(self, url: str, body: bytes) -> MediaAnswer:
        """Answer a request of the scripts; whatever is wrong with it is an answer too."""
        what = urlsplit(url).path.rpartition("/")[2]
        self._asked_now += 1
        if self._asked_now > MOST_ASKED:
            return MediaAnswer(404, "text/plain", b"asked too often")
        try:
            told = self._asked[what](json.loads(body) if body[:1] == b"{" else body.decode())
        except _FAULTS as error:
            return MediaAnswer(404, "text/plain", type(error).__name__.encode())
        text = told if isinstance(told, str) else json.dumps(told)
        return MediaAnswer(200, "text/plain; charset=utf-8", text.encode())

    def settled(self) -> bool:
        """Whether every element knows what it plays."""
        return not (self._plays or self._listens) or self._ask("loading === 0")

    def started(self) -> None:
        """The page stands at frame 0: what it plays begins now."""
        self._ask("begin()")

    def before_frame(self, frame: int, time_us: int) -> bool:
        """Draw the pictures of a frame; True where one changed."""
        self._asked_now = 0
        if self._handed:
            self._takes.clear()
            self._handed = False
        if self._listens:
            self._hear(self._ask("listen(true)"))
        return self._shows and self._draw(drawing_too=True)

    def at_skip(self, frame: int, time_us: int) -> None:
        """A frame that nobody sees: only pages that wait for pictures are told of them."""
        self._asked_now = 0
        if self._listens:
            self._ask("listen(false)")
        if self._shows:
            self._draw(drawing_too=False)

    def longest_ms(self) -> float | None:
        """When the last of the media that play now will have ended; None: there are none."""
        if not self._plays:
            return None
        found = self._ask("longest()")
        return float(found) if isinstance(found, int | float) and 0 < found < 1e9 else None

    def sound(self, first: int, stop: int) -> list[SoundStrip]:
        """What is heard in frames first (inclusive) to stop (exclusive), all of them drawn.

        Of the page's own graphs it is what is heard from the frame before the first until the last
        one: what follows is known when the next frame was made, and comes with that.
        """
        start_s, stop_s = (float(frame / self._fps) for frame in (first, stop))
        found = []
        if self._plays:
            strips = [self._strip(told, stop_s) for told in self._ask("sounds()")]
            found = [
                strip.within(start_s, stop_s)
                for strip in strips
                if strip.start < stop_s and strip.stop > start_s
            ]
        if self._listens:
            # From the quantum (128 samples) in which the last frame before stood.
            found += self._takes.strips(start_s - float(1 / self._fps) - 128 / SAMPLE_RATE)
            self._handed = True
        return found

    def kept(self, strips: Sequence[SoundStrip]) -> dict[str, bytes]:
        """What these strips name and nobody else has: bytes that the page handed over or made.

        They go with the slice; `Opener` finds them again by `kept`.
        """
        names = {strip.source for strip in strips}
        found = {name: self._opener.given[name] for name in names & self._opener.given.keys()}
        for name in names:
            data = self._takes.data(name)
            if data is not None:
                found[name] = data
        return found

    def refused(self) -> list[str]:
        """What the page wanted and cannot have, and media that cannot be played."""
        return list(self._refused)

    def close(self) -> None:
        """Give decoders and files back."""
        for decoder in self._decoders.values():
            decoder.close()
        for medium in self._media.values():
            medium.close()
        for flow in self._flows.values():
            flow.close()
        self._takes.clear()
        self._decoders.clear()
        self._media.clear()

    # -- what the page asks

    def _facts(self, asked: dict[str, Any]) -> dict[str, Any]:
        url = str(asked["url"])
        try:
            medium = self._medium(url, asked.get("bytes"))
        except _FAULTS as error:
            reason = error.reason if isinstance(error, Blocked) else _why(error)
            self._refuse(f"{url[:120]}: {reason}")
            raise
        self._plays = True
        key = medium.url
        video = None
        if medium.size is not None and asked.get("video"):
            self._shows = True
            width, height = medium.size
            video = {"width": width, "height": height, "blank": drawing.blank(width, height)}
        return {"key": key, "duration": medium.duration, "audio": medium.has_sound, "video": video}

    def _medium(self, url: str, given: str | None) -> Medium:
        if len(self._media) >= MOST_MEDIA:
            raise ValueError(f"a page plays at most {MOST_MEDIA} files")
        key = url
        if given is not None or url.startswith("data:"):
            self._given += len(url if given is None else given)
            if self._given > MOST_GIVEN:
                raise ValueError("the page hands over too many bytes")
            data = data_of(url) if given is None else base64.b64decode(given)
            key = f"given:{hashlib.sha256(data).hexdigest()}"
            self._opener.given[key] = data
        if key not in self._media:
            self._media[key] = Medium(key, self._opener)
        return self._media[key]

    def _picture(self, asked: dict[str, Any]) -> str:
        """A data: URL; "" where the picture of this element is the same still."""
        number, source, time = int(asked["id"]), str(asked["source"]), float(asked["time"])
        medium = self._media[source]
        picture = self._decoder(number, medium).at(_media_time(time, medium))
        if self._drawn.get(number) == (source, picture.time):
            return ""
        self._drawn[number] = source, picture.time
        self._shown_pixels += picture.frame.width * picture.frame.height
        return drawing.url_of(picture)

    def _pixels(self, asked: dict[str, Any]) -> dict[str, Any]:
        medium = self._media[str(asked["source"])]
        time = _media_time(float(asked["time"]), medium)
        picture = self._decoder(int(asked["id"]), medium).at(time)
        name = f"{medium.url[-100:]}@{picture.time}"
        if asked.get("shown") == name:
            return {"frame": name}
        return {"frame": name} | drawing.pixels(picture)

    def _decoder(self, number: int, medium: Medium) -> Pictures:
        key = number, medium.url
        if key not in self._decoders:
            if len(self._decoders) >= MOST_DECODERS:
                self._decoders.popitem(last=False)[1].close()
            self._decoders[key] = medium.pictures()
        self._decoders.move_to_end(key)
        return self._decoders[key]

    def _listen(self, _: str) -> str:
        self._listens = True
        return ""

    def _sound(self, asked: dict[str, Any]) -> str:
        """The next samples of an element that a graph of the page listens to, in base64."""
        name, count = str(asked["feed"]), min(int(asked["count"]), 10 * SAMPLE_RATE)
        if asked.get("fresh"):
            begun = name.rpartition(".")[0]
            for old in [key for key in self._flows if key.rpartition(".")[0] == begun]:
                self._flows.pop(old).close()
            reader = MediaReader(str(asked["source"]), self._opener, loop=bool(asked["loop"]))
            speed = float(asked["rate"]), bool(asked["pitch"])
            self._flows[name] = Flow(reader, float(asked["media"]), *speed)
        sound = self._flows[name].next(count)
        return base64.b64encode(sound.astype("<f4").tobytes()).decode()

    def _refuse(self, what: str) -> str:
        if len(self._refused) < MOST_REFUSED:
            self._refused[what[:300]] = None
        return ""

    # -- what the page is asked and told

    def _ask(self, expression: str) -> Any:
        if self._stage is None:
            raise RuntimeError("no stage is bound")
        return self._stage.evaluate(f"{_ROOM}.{expression}")

    def _draw(self, *, drawing_too: bool) -> bool:
        told = []
        for wanted in self._ask(f"wanted({json.dumps(drawing_too)})"):
            one: dict[str, Any] = {"id": wanted["id"]}
            try:
                if wanted.get("present"):
                    medium = self._media[wanted["source"]]
                    decoder = self._decoder(int(wanted["id"]), medium)
                    one["presented"] = float(decoder.time_at(_media_time(wanted["time"], medium)))
                if wanted.get("draw"):
                    one["picture"] = self._picture(wanted)
            except _FAULTS as error:
                self._refuse(f"{wanted['source'][:120]}: {_why(error)}")
                one["picture"] = ""
            told.append(one)
        if told:
            self._ask(f"draw({json.dumps(told)})")
            self._relieve()
        return any(one.get("picture") for one in told)

    def _hear(self, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            data = base64.b64decode(piece["data"])
            self._takes.add(int(piece["context"]), int(piece["first"]), data)

    def _relieve(self) -> None:
        """Let the browser forget the pictures that were shown: it keeps hundreds of them."""
        if self._shown_pixels >= MOST_SHOWN and self._stage is not None:
            self._shown_pixels = 0
            self._stage.relieve()

    def _strip(self, told: dict[str, Any], end: float) -> SoundStrip:
        start = told["start"] / 1000
        stop = end if told["stop"] is None else told["stop"] / 1000
        return SoundStrip(
            source=str(told["source"]),
            start=start,
            stop=stop,
            media_start=float(told["media"]),
            rate=float(told["rate"]),
            gains=tuple((at / 1000, float(gain)) for at, gain in told["gains"]),
            loop=bool(told["loop"]),
            preserves_pitch=bool(told["pitch"]),
            voice=str(told["voice"]),
        )


def _media_time(time: float, medium: Medium) -> Fraction:
    """A time of the page as one of the file: one that was rounded up to a tick is meant still."""
    return Fraction(time) + min(medium.tick / 2, _MOST_ROUNDED) + _MICROSECOND


def _why(error: BaseException) -> str:
    return getattr(error, "message", None) or str(error) or type(error).__name__
