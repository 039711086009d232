"""Pictures of pages that are one canvas: its pixels, without raster and without PNG.

For such a page the browser's PNG is most of the work, and the pixels are there already:
`new VideoFrame(canvas)` has them, to the bit. They do not pass through the DevTools protocol, where
a megabyte costs as much as its PNG: a worker writes them into a file that has no name and that this
process has open, too.

A page is read so while nothing but the canvas can be seen, which the browser's own description of
its layout tells (`DOMSnapshot`): each box, closed shadow trees and pseudo-elements included, with
all of its computed styles. Where anything of it has changed since a full picture was equal to the
pixels, a full picture is taken, and compared again. Each frame is looked at after its scripts ran
and while the page's clock stands: nothing can change between the look and the picture.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fragdex.record import record
from fragdex.rendering.browser.clocks import Clock, script
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.pipe import Pipe, ProtocolError

if TYPE_CHECKING:
    from fragdex.rendering.browser.process import Running

CANVAS: Final = "canvas.js"
CANVAS_WORKER: Final = "canvas_worker.js"

# What no box of the page may have: it would change pixels, or shows what the layout does not tell.
_PLAIN: Final = {
    "appearance": "none",
    "backdrop-filter": "none",
    "border-bottom-left-radius": "0px",
    "border-bottom-right-radius": "0px",
    "border-image-source": "none",
    "border-top-left-radius": "0px",
    "border-top-right-radius": "0px",
    "clip": "auto",
    "clip-path": "none",
    "column-rule-style": "none",
    "content": "normal",
    "content-visibility": "visible",
    "filter": "none",
    "mask-border-source": "none",
    "mask-image": "none",
    "mix-blend-mode": "normal",
    "offset-path": "none",
    "opacity": "1",
    "outline-style": "none",
    "perspective": "none",
    "resize": "none",
    "rotate": "none",
    "scale": "none",
    "scroll-marker-group": "none",
    "transform": "none",
    "translate": "none",
    "visibility": "visible",
    "zoom": "1",
    "-webkit-box-reflect": "none",
    "-webkit-mask-box-image-source": "none",
    "-webkit-user-modify": "read-only",
}
# … and the canvas itself.
_PLAIN_CANVAS: Final = _PLAIN | {
    "border-bottom-width": "0px",
    "border-left-width": "0px",
    "border-right-width": "0px",
    "border-top-width": "0px",
    "object-fit": "fill",
    "object-view-box": "none",
    "padding-bottom": "0px",
    "padding-left": "0px",
    "padding-right": "0px",
    "padding-top": "0px",
}
# … and boxes without an area.
_PLAIN_EMPTY: Final = _PLAIN | {"box-shadow": "none"}
_DISPLAYS: Final = ("block", "flex", "flow-root", "grid", "inline", "inline-block")
_OVERFLOWS: Final = ("visible", "hidden", "clip")
# Pictures that may move by themselves, and painters of the page's own.
_DRAWN: Final = ("url(", "paint(")
_ORDERS: Final = {"BGRA": "bgra", "BGRX": "bgra", "RGBA": "rgba", "RGBX": "rgba"}
_OPAQUE: Final = ("BGRX", "RGBX")
_MOST_BYTES: Final = 4 * 3840 * 2160
# Pictures that were not as the pixels say, or changes of the page, until it is not tried any more.
_MOST_CHECKS: Final = 12
# So many frames that are the same are a slide.
_UNCHANGED: Final = 3
_PATIENCE_SECONDS: Final = 3.0
_MARK_BYTES: Final = 32
# A pipe is not waited for, and a link not followed.
_AS_IT_IS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class CanvasDiffers(Exception):
    """The page shows something else than the pixels of its canvas: earlier frames may be wrong."""


@record(frozen=True, slots=True)
class CanvasPicture:
    """The pixels of a canvas, all of them opaque.

    Attributes:
        width, height: in pixels.
        order: of the four bytes of a pixel, as FFmpeg names it: `bgra` or `rgba`; the last one has
            no meaning.
        data: row by row, without gaps.
    """

    width: int
    height: int
    order: str
    data: bytes


def canvas_of(snapshot: dict[str, Any], view: PageView) -> int | None:
    """The canvas that is all that a page shows; None where anything else may be seen.

    Args:
        snapshot: of `DOMSnapshot.captureSnapshot`, whose computed styles are all there are, under
            the key `names` the list of them.

    Returns: its `backendNodeId`.
    """
    strings, documents = snapshot["strings"], snapshot["documents"]
    document = documents[0]
    nodes, layout = document["nodes"], document["layout"]
    shown: list[int] = layout["nodeIndex"]
    width, height = view.pixels
    is_still = (
        len(documents) == 1
        and not nodes["shadowRootType"]["index"]
        and document.get("scrollOffsetX", 0) == document.get("scrollOffsetY", 0) == 0
        and document.get("contentWidth", 0) <= width
        and document.get("contentHeight", 0) <= height
    )
    names = [strings[nodes["nodeName"][node]] for node in shown]
    if not is_still or names.count("CANVAS") != 1 or len({*shown}) != len(shown):
        return None
    canvas = shown[names.index("CANVAS")]
    within = {canvas, *_above(canvas, nodes["parentIndex"])}
    for at, (node, name) in enumerate(zip(shown, names, strict=True)):
        if name == "#text":
            text = layout["text"][at]
            if text >= 0 and strings[text].strip():
                return None
        elif name != "#document":
            styles = dict(zip(snapshot["names"], layout["styles"][at], strict=True))
            values = {key: strings[value] for key, value in styles.items()}
            wanted = _PLAIN_CANVAS if node == canvas else _PLAIN
            if node not in within:
                wanted = _PLAIN_EMPTY
                if all(layout["bounds"][at][2:]):
                    return None
            if not _is_plain(values, wanted):
                return None
    if layout["bounds"][shown.index(canvas)] != [0, 0, width, height]:
        return None
    number: int = nodes["backendNodeId"][canvas]
    return number


def _above(node: int, parents: list[int]) -> Iterator[int]:
    while (node := parents[node]) >= 0:
        yield node


def _is_plain(values: dict[str, str], wanted: dict[str, str]) -> bool:
    return (
        all(values.get(key, value) == value for key, value in wanted.items())
        and values["display"] in _DISPLAYS
        and {values["overflow-x"], values["overflow-y"]} <= {*_OVERFLOWS}
        and not any(drawn in value for value in values.values() for drawn in _DRAWN)
    )


class CanvasReader:
    """Takes the pictures of a page: of its canvas where that is all there is, else of the page.

    Args:
        clock: of the page; gives its pictures.
        running: the browser.
        frame: the page's main frame.
        is_alone: whether the page has no workers, and nothing else that frames of its own change.
        same: whether a picture shows the pixels of a canvas.
    """

    def __init__(
        self, clock: Clock, running: Running, view: PageView, frame: str,
        is_alone: Callable[[], bool], same: Callable[[bytes, CanvasPicture], bool],
    ) -> None:  # fmt: skip
        self._clock, self._running, self._view, self._frame = clock, running, view, frame
        self._pipe: Pipe = running.pipe
        self._session = running.session
        self._is_alone, self._same = is_alone, same
        self._width, self._height = view.pixels
        whole = (view.width * view.scale, view.height * view.scale)
        self._is_off = (
            not clock.has_begin_frame
            or view.transparent
            or whole != view.pixels
            or 4 * self._width * self._height > _MOST_BYTES
        )
        self._world = 0
        self._names: list[str] = []
        self._reader = self._canvas = ""
        self._worker: str | None = None
        self._fd = -1
        self._verified: dict[str, Any] | None = None
        """What the page was like when a full picture was equal to the pixels."""
        self._seen: dict[str, Any] = {}
        self._stays = False
        """Whether what is drawn on the canvas stays when it is presented."""
        self._is_candidate = False
        self._looks = self._checks = self._number = 0
        self._last: CanvasPicture | None = None
        """The last picture, where it was given as pixels."""
        self._unchanged = 0
        self.frames = 0
        """Of how many frames the pixels were given."""

    def capture(self, needed: bool, pixels: bool) -> bytes | CanvasPicture | None:
        """The frame as PNG, or as pixels; None where nothing changed, unless it is needed.

        Args:
            pixels: whether it may be pixels.

        Raises:
            CanvasDiffers: frames before it may be wrong.
        """
        if not self._wants(pixels):
            png = self._capture(needed)
            if pixels and not self._is_off:
                self._look()
            return png
        self._clock.pass_by()
        picture, is_known = self._read()
        if picture is None:
            self._checks += 1
            return self._capture(needed=True)
        if pixels and is_known:
            if not self._stays:
                # presented as any frame is: what is drawn next begins from an empty canvas
                self._clock.show()
            self._checks = max(0, self._checks - 1)
            return self._given(picture)
        png = self._capture(needed=True)
        assert png is not None
        if self._same(png, picture):
            self._know()
        elif is_known:
            raise CanvasDiffers
        else:
            self._verified = None
            self._checks += 1
        return png

    def _given(self, picture: CanvasPicture) -> CanvasPicture | None:
        if picture == self._last:
            self._unchanged += 1
            return None
        self._last, self._unchanged = picture, 0
        self.frames += 1
        return picture

    def _capture(self, needed: bool) -> bytes | None:
        # the clock knows nothing of the pixels that were given since its last picture
        given, self._last = self._last, None
        png = self._clock.capture(needed or given is not None)
        if given is None and png is not None:
            self._unchanged = 0
        return png

    def _wants(self, pixels: bool) -> bool:
        """Whether this frame is tried; those where slices meet are compared."""
        if self._is_off:
            return False
        if self._checks > _MOST_CHECKS or not self._is_alone():
            self._turn_off()
            return False
        if self._unchanged >= _UNCHANGED and pixels:
            # a frame that is not drawn costs less than one that is read
            return False
        return self._is_candidate and (pixels or self._verified is not None)

    def _look(self) -> None:
        """Look after frames 1, 2, 4, 8 and so on of a page whether the next one is tried.

        After a frame, whose styles are settled: before it, a look would settle them too early.
        """
        self._looks += 1
        if self._looks & (self._looks - 1):
            return
        try:
            self._is_candidate = self._is_likely() and self._canvas_of() is not None
        except ProtocolError:
            self._turn_off()

    def _is_likely(self) -> bool:
        if not self._world:
            answer = self._pipe.call("Page.createIsolatedWorld", self._session, frameId=self._frame)
            self._world = answer["executionContextId"]
            reader = self._pipe.call(
                "Runtime.evaluate", self._session, expression=script(CANVAS), contextId=self._world
            )
            self._reader = reader["result"]["objectId"]
            self._names = self._call("function() { return this.names; }")
        return bool(self._call("function() { return this.isLikely(); }"))

    def _canvas_of(self) -> int | None:
        return canvas_of(self._snapshot(self._names) | {"names": self._names}, self._view)

    def _read(self) -> tuple[CanvasPicture | None, bool]:
        """The pixels of the canvas if the page is one; whether all else is as it was compared."""
        try:
            self._seen = self._snapshot([])
            if self._seen == self._verified:
                picture, is_known = self._pixels()
                if is_known:
                    return picture, True
            node = self._canvas_of()
            if node is None:
                self._is_candidate, self._looks = False, 0
                return None, False
            answer = self._pipe.call(
                "DOM.resolveNode", self._session, backendNodeId=node, executionContextId=self._world
            )
            self._canvas = answer["object"]["objectId"]
            if self._worker is None and not self._start():
                self._turn_off()
                return None, False
            return self._pixels()[0], False
        except ProtocolError:
            self._turn_off()
            return None, False

    def _snapshot(self, names: list[str]) -> dict[str, Any]:
        return self._pipe.call(
            "DOMSnapshot.captureSnapshot", self._session, computedStyles=names,
            includePaintOrder=True,
        )  # fmt: skip

    def _know(self) -> None:
        """A full picture was equal to the pixels."""
        self._checks += self._seen != self._verified and self._verified is not None
        self._verified = self._seen
        with contextlib.suppress(ProtocolError):
            self._stays = bool(self._of_canvas("know")["result"].get("value"))

    def _pixels(self) -> tuple[CanvasPicture | None, bool]:
        self._number += 1
        size = 4 * self._width * self._height
        read = self._send_of_canvas("read", self._number, self._width, self._height)
        told = self._awaited(read)
        if told is None or not self._of_worker(f"until({self._number})"):
            return None, False
        form, is_known = told
        data = os.pread(self._fd, size, 0)
        is_whole = len(data) == size and (form in _OPAQUE or _is_opaque(data))
        if not is_whole or (not self._stays and not _is_drawn(data)):
            return None, is_known
        return CanvasPicture(self._width, self._height, _ORDERS[form], data), is_known

    def _of_canvas(self, name: str) -> dict[str, Any]:
        return self._pipe.answer(self._send_of_canvas(name), name)

    def _send_of_canvas(self, name: str, *given: int) -> int:
        function = f"function(...given) {{ return this.{name}(...given); }}"
        return self._pipe.send(
            "Runtime.callFunctionOn", self._session, objectId=self._reader, awaitPromise=True,
            functionDeclaration=function, returnByValue=True,
            arguments=[{"objectId": self._canvas}, *({"value": one} for one in given)],
        )  # fmt: skip

    def _start(self) -> bool:
        """Start the worker, and open its file; whether that went well."""
        url = self._call("function() { return this.url(); }")
        self._running.own_worker(url, self._began)
        self._call("function(url) { this.start(url); }", url)
        self._pipe.listen(_PATIENCE_SECONDS, lambda: self._worker is not None)
        if self._worker is None:
            return False
        mark = secrets.token_hex(_MARK_BYTES)
        size = 4 * self._width * self._height
        begun = self._of_worker(f"begin({size}, {json.dumps(mark)}).then(() => true)")
        self._fd = _opened(self._running.folder, mark, size) if begun else -1
        if self._fd >= 0:
            self._running.on_close(partial(os.close, self._fd))
        hidden = self._of_worker("hide().then(() => true)")
        return self._fd >= 0 and bool(hidden) and os.fstat(self._fd).st_nlink == 0

    def _began(self, session: str) -> None:
        self._pipe.post("Runtime.evaluate", session, expression=script(CANVAS_WORKER))
        self._worker = session

    def _of_worker(self, expression: str) -> Any:
        return self._awaited(
            self._pipe.send(
                "Runtime.evaluate", self._worker, expression=expression, awaitPromise=True,
                returnByValue=True,
            )
        )  # fmt: skip

    def _awaited(self, number: int) -> Any:
        """What a promise gives; None where it fails, or does not come in time."""
        self._pipe.listen(_PATIENCE_SECONDS, lambda: self._pipe.answered(number))
        if not self._pipe.answered(number):
            self._turn_off()
            return None
        answer = self._pipe.answer(number)
        return None if "exceptionDetails" in answer else answer["result"].get("value")

    def _call(self, function: str, *given: Any) -> Any:
        answer = self._pipe.call(
            "Runtime.callFunctionOn", self._session, objectId=self._reader, returnByValue=True,
            functionDeclaration=function, arguments=[{"value": one} for one in given],
        )  # fmt: skip
        return None if "exceptionDetails" in answer else answer["result"].get("value")

    def _turn_off(self) -> None:
        """Take pictures as of any other page from now on."""
        self._is_off, self._verified = True, None


def _is_opaque(data: bytes) -> bool:
    # loaded with the encoder, for which pixels are meant
    import numpy as np

    return bool(np.bitwise_and.reduce(np.frombuffer(data, "<u4")) >> 24 == 0xFF)


def _is_drawn(data: bytes) -> bool:
    """Whether anything is not black: a canvas is, once presented, until it is drawn on again."""
    import numpy as np

    return bool(np.bitwise_or.reduce(np.frombuffer(data, "<u4")) & 0xFFFFFF)


def _opened(folder: Path, mark: str, size: int) -> int:
    """A descriptor of the file in a browser's folder that begins with a mark; -1: there is none."""
    for place, _, names in os.walk(folder):
        for name in names:
            # whatever the browser may have put there
            with contextlib.suppress(OSError):
                fd = os.open(Path(place, name), _AS_IT_IS)
                about = os.fstat(fd)
                is_file = stat.S_ISREG(about.st_mode) and about.st_size == size
                if is_file and os.pread(fd, len(mark), 0) == mark.encode():
                    return fd
                os.close(fd)
    return -1
