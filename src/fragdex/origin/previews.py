"""Thumbnails, storyboards, waveforms and loudness of a file, by their names in addresses.

What an address requests is bounded here, so that no query costs more than the file does.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import urlencode

from fragdex.decoding.picture_files import media_type as picture_type
from fragdex.decoding.picture_files import thumbnail
from fragdex.decoding.storyboards import SheetLayout, storyboard, storyboard_layout
from fragdex.errors import FragdexError, LimitExceeded, TrackNotFound
from fragdex.lru_cache import LRUCache
from fragdex.muxing.view import Sources, View
from fragdex.origin.addresses import PREVIEW, Query, flag, number, seconds
from fragdex.packaging.package import MULTIVARIANT, Package
from fragdex.packaging.playlists import MANIFEST
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import exact_time
from fragdex.sources import Source, open_source

SHEETS: Final = "storyboard-{}.jpg"
"""Name of a sheet of the storyboard that is requested without a query."""
_SIDE: Final = 4096
"""Pixels of a thumbnail's side at most."""
_TILE: Final = 640
"""Pixels of a tile's width at most."""
_TILES: Final = 100
"""Tiles of a sheet at most: each is a decoded key frame."""
_EXACT_SECONDS: Final = 60
"""From a key frame to an exact picture at most: all in between is decoded."""
_PIXELS: Final = 1 << 21
"""Of a waveform at most."""
_WANTED_PIXELS: Final = 1 << 19
"""Of a waveform where the query does not say how fine: half a million is finer than screens."""


@record(frozen=True, slots=True)
class Preview:
    """A preview that is described, and made when somebody needs its bytes.

    Attributes:
        media_type: of its bytes.
        index: of the file.
        recipe: what decides the bytes besides the file.
        kind: what is decoded for it.
        make: gives the bytes from the file's source, open for this call.
    """

    media_type: str
    index: Index
    recipe: Any
    kind: Literal["text", "picture", "sound"]
    make: Callable[[Source], bytes]

    @property
    def etag(self) -> str:
        """A strong entity tag, known before anything is decoded."""
        return self._view(b"").etag

    def view(self, source: Any) -> View:
        """It as a view, made from the file in any form that `open_source` takes.

        Raises:
            SourceChanged: the file is not the one that was indexed.
            FragdexError: it cannot be read or decoded.
        """
        if self.kind == "text":
            return self._view(self.make(source))
        if not isinstance(source, Source):
            with open_source(source) as opened:
                return self.view(opened)
        try:
            data = self.make(source)
        finally:
            # a failure may have this cause, too: the video is another one
            self._check(source)
        return self._view(data)

    def _view(self, data: bytes) -> View:
        known = [self.index.file]
        return View(self.media_type, known, ["preview", self.recipe], [len(data)], lambda _: [data])

    def _check(self, source: Source) -> None:
        with Sources([self.index.file], [source]) as sources:
            sources.source(0)


def preview_of(index: Index, name: str, query: Query) -> Preview:
    """What a name and a query ask for.

    Args:
        index: of the file.
        name: as in `PREVIEW`.
        query: `t`, `w`, `h`, `exact` of thumbnails; `every`, `width`, `columns`, `rows` of
            storyboards; `samples_per_pixel`, `bits`, `split` of waveforms; `track` of all.

    Raises:
        ValueError: a value of the query is invalid, or out of bounds.
        LimitExceeded: what is requested would cost too much.
        TrackNotFound: the file has no such track, or no such sheet.
        KeyError: no preview has this name.
    """
    if not PREVIEW.fullmatch(name):
        raise KeyError(name)
    what, _, suffix = name.partition(".")
    track = number(query, "track", 1, (1 << 32) - 1)
    if what == "thumbnail":
        return _thumbnail(index, suffix, track, query)
    if what == "storyboard":
        return _storyboard_list(index, suffix, track, query)
    if what == "peaks":
        return _peaks(index, suffix, track, query)
    if what == "loudness":
        return Preview("application/json", index, ["loudness", track], "sound",
                       partial(_loudness, index, track))  # fmt: skip
    return _sheet(index, int(what.rpartition("-")[2]), suffix, track, query)


def _thumbnail(index: Index, suffix: str, track: int | None, query: Query) -> Preview:
    time = seconds(query, "t", 0)
    options: dict[str, Any] = {
        "exact": flag(query, "exact", False),
        "width": number(query, "w", 1, _SIDE),
        "height": number(query, "h", 1, _SIDE),
        "format": _format(suffix),
        "track": track,
    }
    if options["exact"]:
        chosen = _pictures(index, track)
        end = chosen.stop.fraction if chosen.stop is not None else math.inf
        moment = min(exact_time(time), end)
        before = moment - chosen.seek(moment).time.fraction
        if before > _EXACT_SECONDS:
            raise LimitExceeded(
                "the key frame before this picture is too far away",
                expected=f"at most {_EXACT_SECONDS} s",
                found=f"{float(before):.3f} s",
                advice="ask for the key frame (exact=false)",
            )
    how = {name: value for name, value in options.items() if name != "exact"}
    how["at"] = "frame" if options["exact"] else "key_frame"
    return Preview(
        picture_type(options["format"]), index, ["thumbnail", str(time), options], "picture",
        lambda source: thumbnail(index, source, time, **how).data,
    )  # fmt: skip


def _storyboard_list(index: Index, suffix: str, track: int | None, requested: Query) -> Preview:
    layout = _layout(index, "jpg", track, requested)
    query = {name: requested[name] for name in ("every", "width", "columns", "rows", "track")
             if name in requested}  # fmt: skip
    name = SHEETS + (f"?{urlencode(query)}" if query else "")
    is_webvtt = suffix == "vtt"
    text = (layout.webvtt(name) if is_webvtt else layout.hls(name)).encode()
    kind = "text/vtt; charset=utf-8" if is_webvtt else "application/vnd.apple.mpegurl"
    return Preview(kind, index, ["storyboard", suffix, _known(layout), query], "text",
                   lambda _: text)  # fmt: skip


def _sheet(index: Index, sheet: int, suffix: str, track: int | None, query: Query) -> Preview:
    layout = _layout(index, suffix, track, query)
    if sheet >= layout.sheet_count:
        raise TrackNotFound(
            "the storyboard has no such sheet",
            expected=f"0 to {layout.sheet_count - 1}",
            found=sheet,
        )

    def made(source: Source) -> bytes:
        with storyboard(
            index, source, every=layout.every, width=layout.width, columns=layout.columns,
            rows=layout.rows, format=layout.format, track=track,  # type: ignore[arg-type]
        ) as board:  # fmt: skip
            return board.sheet(sheet).data

    recipe = ["sheet", sheet, track, _known(layout)]
    return Preview(layout.media_type, index, recipe, "picture", made)


def _layout(index: Index, suffix: str, track: int | None, query: Query) -> SheetLayout:
    columns, rows = (number(query, name, 1, _TILES) or 10 for name in ("columns", "rows"))
    if columns * rows > _TILES:
        raise ValueError(f"columns × rows: expected at most {_TILES}, found {columns} × {rows}")
    return storyboard_layout(
        _pictures(index, track), every=seconds(query, "every", 10), columns=columns, rows=rows,
        width=number(query, "width", 1, _TILE) or 160, format=_format(suffix),
    )  # fmt: skip


def _known(layout: SheetLayout) -> list[Any]:
    return [str(layout.every), layout.width, layout.columns, layout.rows, layout.format]


def _peaks(index: Index, suffix: str, track: int | None, query: Query) -> Preview:
    from fragdex.decoding.sound_levels import peaks

    chosen = _track(index, track, "audio")
    split = flag(query, "split", False)
    end = chosen.stop.seconds if chosen.stop is not None else 0.0
    values = end * (chosen.info.sample_rate or 48_000)
    values *= (chosen.info.channel_count or 2) if split else 1
    fine = number(query, "samples_per_pixel", 2, 1 << 20)
    if fine is None:
        fine = 256
        while values / fine > _WANTED_PIXELS:
            fine *= 2
    if values / fine > _PIXELS:
        raise LimitExceeded(
            "the waveform would have too many pixels", expected=f"at most {_PIXELS:,}",
            found=f"{values / fine:,.0f}", advice="ask for more samples_per_pixel",
        )  # fmt: skip
    bits = number(query, "bits", 8, 16) or 8
    if bits not in (8, 16):
        raise ValueError(f"bits: expected 8 or 16, found {bits}")
    is_json = suffix == "json"

    def made(source: Source) -> bytes:
        waveform = peaks(
            index, source, samples_per_pixel=fine, bits=bits, split=split, track=chosen.id
        )
        return waveform.json() if is_json else waveform.dat()

    kind = "application/json" if is_json else "application/octet-stream"
    return Preview(kind, index, ["peaks", suffix, chosen.id, fine, bits, split], "sound", made)


def _loudness(index: Index, track: int | None, source: Source) -> bytes:
    from fragdex.decoding.sound_levels import loudness

    measured: Mapping[str, Any] = asdict(loudness(index, source, track=track))
    return json.dumps(measured).encode() + b"\n"


def _format(suffix: str) -> Any:
    return "jpeg" if suffix == "jpg" else suffix


def _pictures(index: Index, track: int | None) -> Track:
    return _track(index, track, "video")


def _track(index: Index, track: int | None, kind: str) -> Track:
    for one in index.tracks:
        if one.kind == kind and track in (None, one.id):
            return one
    raise TrackNotFound(f"the file has no {kind} track" + (f" {track}" if track else ""))


MAX_BYTES: Final = 64 << 20
"""Of previews in memory."""

Opened = Callable[[], AbstractContextManager[Any]]
"""Opens the source of a file, in any form that `fragdex.open_source` takes."""


class TooManyWaiting(Exception):
    """So many previews wait to be made that another one is refused."""


class PreviewMaker:
    """Makes previews, so that decoding never takes more than some threads.

    Pictures and sound wait in two lines: waveforms of hours do not hold up thumbnails.

    Args:
        pictures, sounds: made at a time.
        waiting: at most, in each line.
        max_bytes: of previews that stay in memory.

    For several threads at a time.
    """

    def __init__(
        self,
        *,
        pictures: int = 2,
        sounds: int = 1,
        waiting: int = 64,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._lines = {
            "picture": ThreadPoolExecutor(pictures, "previews"),
            "sound": ThreadPoolExecutor(sounds, "previews"),
        }
        self._waiting = waiting
        self._made: LRUCache[View] = LRUCache(max_bytes)
        self._making: dict[str, tuple[str, Future[View]]] = {}
        self._lock = threading.Lock()

    def view(self, preview: Preview, opened: Opened) -> Future[View]:
        """A preview as a view, now or later.

        Args:
            preview: the requested one.
            opened: opens the file, in another thread.

        Raises:
            TooManyWaiting: ask again later.
        The future raises what `Preview.view` does.
        """
        if preview.kind == "text":
            ready: Future[View] = Future()
            ready.set_result(preview.view(None))
            return ready
        key = preview.etag
        with self._lock:
            cached = self._made.get(key)
            if cached is not None:
                ready = Future()
                ready.set_result(cached)
                return ready
            if key in self._making:
                return self._making[key][1]
            if sum(kind == preview.kind for kind, _ in self._making.values()) >= self._waiting:
                raise TooManyWaiting
            future = self._lines[preview.kind].submit(self._make, key, preview, opened)
            self._making[key] = preview.kind, future
        future.add_done_callback(lambda _: self._done(key))
        return future

    def close(self) -> None:
        """Begin no more; what is being made is still finished."""
        for line in self._lines.values():
            line.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: str, preview: Preview, opened: Opened) -> View:
        with opened() as source:
            view = preview.view(source)
        self._made.put(key, view, view.size + 1024)
        return view

    def _done(self, key: str) -> None:
        with self._lock:
            self._making.pop(key, None)


IMAGES: Final = "images.m3u8"
"""The image playlist of the storyboard, next to the other playlists."""
_PERIOD_ENDS: Final = "</Period>"


def package_file(package: Package, index: Callable[[], Index], name: str) -> View:
    """A file of a package; its lists name the storyboard of the first file, unless that grows.

    Args:
        index: gives that of the first file.
        package, name: of the file.

    Raises:
        KeyError: the package has no such file.
    """
    growth = package.title.growth
    if name not in (MULTIVARIANT, MANIFEST, IMAGES) or (growth is not None and not growth.ended):
        return package[name]
    return package.cached(f"{name} with its storyboard", lambda: _listing(package, index(), name))


def _listing(package: Package, index: Index, name: str) -> View:
    layout = _first_layout(index)
    sheets = f"../{SHEETS}"
    if name == IMAGES:
        if layout is None:
            raise KeyError(name)
        text = layout.hls(sheets)
        # of the first video alone, with the media type of the other playlists
        return _text(package[MULTIVARIANT].media_type, (index.file,), [name], text)
    view = package[name]
    if layout is None:
        return view
    text = view.read().decode()
    if name == MULTIVARIANT:
        text += layout.hls_stream_inf(IMAGES) + "\n"
    elif text.count(_PERIOD_ENDS) == 1:
        text = text.replace(_PERIOD_ENDS, layout.dash(sheets) + _PERIOD_ENDS)
    return _text(view.media_type, view.sources, [name, view.recipe], text)


def _first_layout(index: Index) -> SheetLayout | None:
    """The storyboard of a file, if it can have one."""
    for track in index.tracks:
        if track.kind == "video":
            if not track.is_encrypted() and len(track.sync_samples):
                with suppress(FragdexError):
                    return storyboard_layout(track)
            return None
    return None


def _text(media_type: str, sources: tuple[FileInfo, ...], recipe: list[str], text: str) -> View:
    data = text.encode()
    return View(media_type, sources, ["storyboard", *recipe], [len(data)], lambda _: [data])
