"""Rendering in a child process: it takes jobs one after the other, and keeps its browser between.

It asks its parent for all that lies outside of its folder: files of the site come open, the rest as
bytes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from fragdex.rendering import messages
from fragdex.rendering.browser.model import Limits
from fragdex.rendering.browser.process import NO_SANDBOX
from fragdex.rendering.messages import Joined, SliceMade
from fragdex.rendering.plan import OneBrowserNeeded
from fragdex.rendering.site import Answer, OpenAsset, Site
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.processes import end_descendants

MADE: Final = "made"
"""What a job makes, in the folder of this process."""

_TELL_SECONDS: Final = 0.1
_TRIES: Final = 20


class _Parent(Site):
    """A `Site` and an `Outside` that put every request to the parent."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        """As `Outside.fetch`."""
        answer, _ = self._channel.ask(url=url, headers=dict(headers))
        return messages.answer_of_json(answer)

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        answer, files = self._channel.ask(path=path)
        return OpenAsset(opened(files[0], path), answer["media_type"]) if files else None


class _Work:
    """The jobs, by name; what they make stands in the folder of this process."""

    def __init__(self, channel: Channel) -> None:
        from fragdex.rendering.slice import Slicer

        self._channel, self._parent, self._make = channel, _Parent(channel), Slicer
        self._slicer: Any = None
        self._told = 0.0

    def begin(self, limits: Mapping[str, Any], sandbox: bool, watched: bool) -> dict[str, Any]:
        # The browser inherits what this process is shut in with.
        sandbox = sandbox and os.geteuid() != 0
        missing = (*self._channel.missing, *(() if sandbox else (NO_SANDBOX,)))
        self._slicer = self._make(
            self._parent, outside=self._parent, limits=Limits(**limits),
            sandbox=sandbox, missing=missing, watched=watched,
        )  # fmt: skip
        # FFmpeg's libraries take as long to load as the browser takes to start: at the same time.
        threading.Thread(target=_load, daemon=True).start()
        return {}

    def look(self, view: Mapping[str, Any]) -> dict[str, Any]:
        return asdict(self._slicer.look(messages.view_of_json(view)))

    def draw(
        self, view: Mapping[str, Any], first: int, stop: int, still: Mapping[str, Any] | None,
        film: Mapping[str, Any], all_drawn: bool, ahead: int,
    ) -> dict[str, Any]:  # fmt: skip
        from fragdex.rendering.outputs import Film, Still

        try:
            drawn = self._slicer.draw(
                messages.view_of_json(view), range(first, stop), Path(MADE),
                None if still is None else Still(**still), self._progress, Film(**film),
                all_drawn=all_drawn, ahead=ahead,
            )  # fmt: skip
        except OneBrowserNeeded as error:
            return {"needs_one": str(error)}
        plain: dict[str, Any] = drawn.as_json()
        return plain

    def join(
        self, slices: list[Mapping[str, Any]], view: Mapping[str, Any], film: Mapping[str, Any]
    ) -> dict[str, Any]:
        from fragdex.rendering.join import join, join_sound
        from fragdex.rendering.outputs import Film
        from fragdex.rendering.page_media.opening import Opener
        from fragdex.rendering.page_media.strips import SoundStrip, joined

        slices_made = [SliceMade.of_json(one) for one in slices]
        files = [partial(self._open_slice, number) for number in range(len(slices_made))]
        seen, stored = messages.view_of_json(view), Film(**film)
        strips = stored.sound_codec and joined(
            [[SoundStrip.of_json(strip) for strip in one.sound] for one in slices_made]
        )
        sound = None
        failed: list[str] = []
        loudness = None
        if strips or stored.is_sound:
            from fragdex.rendering.join import normalized
            from fragdex.rendering.page_media.mixing import mix

            # the decoders can use its memory
            self._slicer.close()
            in_files = {
                name: (file, place[0], place[1])
                for one, file in zip(slices_made, files, strict=True)
                for name, place in one.samples.items()
            }
            opener = Opener(self._parent, self._parent, in_files)
            start, stop = (
                slices_made[0].first / seen.fps,
                (slices_made[-1].first + slices_made[-1].frames) / seen.fps,
            )
            mixed = partial(mix, strips or (), opener, stop, failed.append, start=start)
            if stored.loudness is None:
                sound = mixed()
            else:
                normalization, sound = normalized(mixed, stored.loudness)
                loudness = asdict(normalization)
            if stored.is_sound:
                join_sound(Path(MADE), sound, stored)
                frames = sum(one.frames for one in slices_made)
                seconds = float(frames / seen.fps)
                return asdict(Joined(MADE, frames, seconds, bool(strips), failed, loudness))
        whole = join(files, seen, Path(MADE), sound, self._progress, stored, slices_made[0].first)
        return asdict(whole) | {"failed": failed, "loudness": loudness}

    def _open_slice(self, number: int) -> BinaryIO:
        _, files = self._channel.ask(slice=number)
        return opened(files[0], f"slice {number}")

    def _progress(self, done: int) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            self._channel.send(progress=done)


def main(channel: Channel) -> None:
    """Do jobs until the parent is gone."""
    # The way to its folder may be closed to the user of this process.
    tempfile.tempdir = os.curdir
    work = _Work(channel)
    jobs = (work.begin, work.look, work.draw, work.join)
    channel.serve({job.__name__: job for job in jobs}, _clear_up)


def _clear_up() -> None:
    """The parent is gone: the folder takes no room until whoever comes next removes it."""
    end_descendants()
    for _ in range(_TRIES):
        for left in Path().iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        if not any(Path().iterdir()):
            return
        # what was ended may still have been writing
        time.sleep(_TELL_SECONDS)


def _load() -> None:
    import av.logging

    av.logging.set_level(None)
    import fragdex.rendering.page_media.player  # noqa: F401 — loaded before it is needed
