"""Rendering as a process of its own: `python -m fragdex.service.renders.child`.

Takes jobs one after the other as JSON lines (`running.py` says them) and keeps its browser between
them. Asks whoever started it for all that lies outside of the site; ends with them.
"""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fragdex.service.errors import PageFailed, ServiceError
from fragdex.service.processes import Speech, bounded, end_descendants
from fragdex.service.renders import speaking
from fragdex.service.renders.browser.model import Limits
from fragdex.service.renders.made import SliceMade
from fragdex.service.renders.outside import Answer
from fragdex.service.renders.site import Asset
from fragdex.service.renders.speaking import SCRATCH

# No file of a render is larger, whatever a page does.
_LARGEST_FILE: Final = 64 << 30
_TELL_SECONDS: Final = 0.1
_TRIES: Final = 20


class _Parent:
    """An `Outside` that puts every request to the process that started this one."""

    def __init__(self, speech: Speech) -> None:
        self._speech = speech
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}

    def fetch(self, url: str, headers: Mapping[str, str]) -> Answer:
        return speaking.answer_of_json(self._ask(url=url, headers=dict(headers)))

    def read(self, path: str) -> Asset | None:
        """A file of a site that only the parent knows."""
        return speaking.asset_of_json(self._ask(path=path))

    def _ask(self, **question: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._waiting[number] = answer
        self._speech.say(ask=number, **question)
        return answer.get()

    def answered(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message.pop("answer"), None)
        if waiting is not None:
            waiting.put(message)


class _Work:
    """The jobs, by name."""

    def __init__(self, speech: Speech, parent: _Parent) -> None:
        from fragdex.service.renders.slice import Slicer

        self._speech, self._parent, self._make = speech, parent, Slicer
        self._slicer: Any = None
        self._site: Any = None
        self._told = 0.0

    def begin(
        self, site: Mapping[str, Any], limits: Mapping[str, Any], walls: Mapping[str, Any]
    ) -> dict[str, Any]:
        speaking.walls_of_json(walls)
        self._site = speaking.site_of_json(site, self._parent.read)
        self._slicer = self._make(self._site, outside=self._parent, limits=Limits(**limits))
        self._slicer.network = not site  # nobody knows whether another site reads the same
        return {}

    def look(self, view: Mapping[str, Any]) -> dict[str, Any]:
        return asdict(self._slicer.look(speaking.view_of_json(view)))

    def slice(self, view: Mapping[str, Any], first: int, stop: int, path: str) -> dict[str, Any]:
        seen = speaking.view_of_json(view)
        made = self._slicer.slice(seen, first, stop, Path(path), self._progress)
        plain: dict[str, Any] = made.as_json()
        return plain

    def still(
        self, view: Mapping[str, Any], time_ms: int, still: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        from fragdex.service.renders.stills import Still

        seen = speaking.view_of_json(view)
        made = self._slicer.still(seen, time_ms, Still(**still), Path(path))
        plain: dict[str, Any] = made.as_json()
        return plain

    def join(
        self, slices: list[Mapping[str, Any]], view: Mapping[str, Any], out: str
    ) -> dict[str, Any]:
        from fragdex.service.renders.join import join
        from fragdex.service.renders.media.opening import Opener
        from fragdex.service.renders.media.strips import SoundStrip, joined

        made = [SliceMade.of_json(one) for one in slices]
        seen = speaking.view_of_json(view)
        strips = joined([[SoundStrip.of_json(strip) for strip in one.sound] for one in made])
        sound = None
        failed: list[str] = []
        if strips:
            from fragdex.service.renders.media.mixing import mix

            # its memory is of use to the decoders
            self._slicer.close()
            kept = {
                name: (Path(one.path), place[0], place[1])
                for one in made
                for name, place in one.samples.items()
            }
            opener = Opener(self._site, self._parent, kept)
            duration = sum(one.frames for one in made) / seen.fps
            sound = mix(strips, opener, duration, failed.append)
        paths = [Path(one.path) for one in made]
        return asdict(join(paths, seen, Path(out), sound, self._progress)) | {"failed": failed}

    def _progress(self, done: int) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            self._speech.say(progress=done)


def main() -> int:
    """Do jobs until the last word was said."""
    speech = Speech()
    parent = _Parent(speech)
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def take(message: dict[str, Any]) -> None:
        if "answer" in message:
            parent.answered(message)
        else:
            jobs.put(message)

    speech.listen(take, _clear_up)
    bounded([("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", _LARGEST_FILE)])
    os.nice(5)  # requests come first
    # FFmpeg's libraries take as long to load as the browser takes to start: at the same time.
    threading.Thread(target=_load, daemon=True).start()
    work = _Work(speech, parent)
    while True:
        message = jobs.get()
        job: Callable[..., dict[str, Any]] = getattr(work, message.pop("do"))
        try:
            speech.say(done=job(**message))
        except ServiceError as error:
            speech.say(failed=speaking.error_as_json(error))
        except MemoryError:
            much = PageFailed("the page needs more memory than a rendering process may have")
            speech.say(failed=speaking.error_as_json(much))


def _clear_up() -> None:
    """Whoever started this process is gone, and cannot remove its folder any more."""
    end_descendants()
    folder = Path(tempfile.gettempdir())
    if not folder.name.startswith(SCRATCH):
        return
    # what was ended may still have been writing
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_TELL_SECONDS)


def _load() -> None:
    import av.logging

    av.logging.set_level(None)
    import fragdex.service.renders.media.player  # noqa: F401 — so that it is there when asked for


if __name__ == "__main__":
    sys.exit(main())
