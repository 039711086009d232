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

import json
import os
import secrets
from collections.abc import Callable, Iterator
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
_DISPLAYS: Final = ("block", "flex", "flow-root", "grid", "inline", "inline-block")
_OVERFLOWS: Final = ("visible", "hidden", "clip")
# Pictures that may move by themselves, and painters of the page's own.
_DRAWN: Final = ("url(", "paint(")
_ORDERS: Final = {"BGRA": "bgra", "BGRX": "bgra", "RGBA": "rgba", "RGBX": "rgba"}
_OPAQUE: Final = ("BGRX", "RGBX")
_MOST_BYTES: Final = 4 * 3840 * 2160
# Pictures that were not as the pixels say, or changes of the page, until it is not tried any more.
_MOST_CHECKS: Final = 12
_PATIENCE_SECONDS: Final = 3.0
_MARK_BYTES: Final = 32


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
    is_still = (
        len(documents) == 1
        and not nodes["shadowRootType"]["index"]
        and document.get("scrollOffsetX", 0) == document.get("scrollOffsetY", 0) == 0
        and document.get("contentWidth", 0) <= view.width
        and document.get("contentHeight", 0) <= view.height
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
        elif node not in within:
            return None
        elif name != "#document":
            styles = dict(zip(snapshot["names"], layout["styles"][at], strict=True))
            values = {key: strings[value] for key, value in styles.items()}
            if not _is_plain(values, _PLAIN_CANVAS if node == canvas else _PLAIN):
                return None
    if layout["bounds"][shown.index(canvas)] != [0, 0, view.width, view.height]:
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
        self._looks = self._checks = self._number = 0
        self._gave_pixels = False
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
            return self._capture(needed)
        self._clock.pass_by()
        snapshot, picture = self._read()
        if picture is None:
            self._checks += 1
            return self._capture(needed=True)
        is_known = snapshot == self._verified
        if pixels and is_known:
            # presented as any frame is: what is drawn next may begin from an empty canvas
            self._clock.show()
            self._gave_pixels = True
            self.frames += 1
            return picture
        png = self._capture(needed=True)
        assert png is not None
        if not self._same(png, picture):
            if is_known:
                raise CanvasDiffers
            self._verified = None
            self._checks += 1
        elif not is_known:
            self._checks += self._verified is not None
            self._verified = snapshot
        return png

    def _capture(self, needed: bool) -> bytes | None:
        # the clock knows nothing of the pixels that were given since its last picture
        gave, self._gave_pixels = self._gave_pixels, False
        return self._clock.capture(needed or gave)

    def _wants(self, pixels: bool) -> bool:
        """Whether this frame is tried; ordinary pages are looked at in frames 1, 2, 4, 8, …"""
        if self._is_off:
            return False
        if self._checks > _MOST_CHECKS or not self._is_alone():
            self._turn_off()
            return False
        if self._verified is not None:
            return True
        if not pixels:
            return False
        self._looks += 1
        if self._looks & (self._looks - 1):
            return False
        try:
            return self._prepared()
        except ProtocolError:
            self._turn_off()
            return False

    def _prepared(self) -> bool:
        if not self._world:
            answer = self._pipe.call(
                "Page.createIsolatedWorld", self._session, frameId=self._frame
            )
            self._world = answer["executionContextId"]
            reader = self._in_world(script(CANVAS))
            self._reader = reader["result"]["objectId"]
            styles = "[...getComputedStyle(document.documentElement)]"
            self._names = self._in_world(styles, returnByValue=True)["result"]["value"]
        return bool(self._call("function() { return this.isLikely(); }"))

    def _read(self) -> tuple[dict[str, Any], CanvasPicture | None]:
        """What the page is like, and the pixels of its canvas if it is one."""
        snapshot: dict[str, Any] = {}
        try:
            snapshot = self._pipe.call(
                "DOMSnapshot.captureSnapshot", self._session, computedStyles=self._names,
                includePaintOrder=True,
            )  # fmt: skip
            if snapshot != self._verified:
                node = canvas_of(snapshot | {"names": self._names}, self._view)
                if node is None:
                    return snapshot, None
                answer = self._pipe.call(
                    "DOM.resolveNode", self._session, backendNodeId=node,
                    executionContextId=self._world,
                )  # fmt: skip
                self._canvas = answer["object"]["objectId"]
            if self._worker is None and not self._start():
                self._turn_off()
                return snapshot, None
            return snapshot, self._pixels()
        except ProtocolError:
            self._turn_off()
            return snapshot, None

    def _pixels(self) -> CanvasPicture | None:
        self._number += 1
        size = 4 * self._width * self._height
        read = "function(...given) { return this.read(...given); }"
        given = [self._number, self._width, self._height]
        form = self._awaited(
            self._pipe.send(
                "Runtime.callFunctionOn", self._session, objectId=self._reader,
                functionDeclaration=read, awaitPromise=True, returnByValue=True,
                arguments=[{"objectId": self._canvas}, *({"value": one} for one in given)],
            )
        )  # fmt: skip
        if form is None or not self._of_worker(f"until({self._number})"):
            return None
        data = os.pread(self._fd, size, 0)
        if len(data) != size or not (form in _OPAQUE or _is_opaque(data)):
            return None
        return CanvasPicture(self._width, self._height, _ORDERS[form], data)

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
        path = _file_of(self._running.folder, mark, size) if begun else None
        if path is not None:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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

    def _in_world(self, expression: str, **how: Any) -> dict[str, Any]:
        return self._pipe.call(
            "Runtime.evaluate", self._session, expression=expression, contextId=self._world, **how
        )

    def _turn_off(self) -> None:
        """Take pictures as of any other page from now on."""
        self._is_off, self._verified = True, None

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_opaque(data: bytes) -> bool:
    # loaded with the encoder, for which pixels are meant
    import numpy as np

    return bool(np.bitwise_and.reduce(np.frombuffer(data, "<u4")) >> 24 == 0xFF)


def _file_of(folder: Path, mark: str, size: int) -> Path | None:
    """The file of a browser's folder that begins with a mark."""
    for path in folder.rglob("*"):
        try:
            if path.is_file() and path.stat().st_size == size:
                with path.open("rb") as file:
                    if file.read(len(mark)) == mark.encode():
                        return path
        except OSError:
            continue
    return None
