"""`fragdex doctor`: what this machine has of what fragdex can use, and how to get the rest."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fragdex.cli import options
from fragdex.cli.output import json_line
from fragdex.errors import FragdexError, MissingExtra, install_command
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.rendering.browser.finding import SystemPackage
    from fragdex.speech.engines import EngineChoice
    from fragdex.speech.process import EngineState

_FONTS: Final = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")
_FONT_SUFFIXES: Final = {".ttf", ".otf", ".ttc", ".woff2", ".pfb"}
_ADVICE_OF_WALLS: Final = "Linux 5.13 or later has all of them; see docs/threat-model.md"
# Chromium gets fixes every week or two.
_STALE_DAYS: Final = 7
_LITTLE_ROOM: Final = 4 << 30


class RequirementState(StrEnum):
    """How a part is."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@record(frozen=True, slots=True)
class Requirement:
    """Something that fragdex uses.

    Args:
        name: of the part.
        state: limited: it works, with the restriction that `said` tells.
        said: what was found.
        advice: how to get what is missing.
    """

    name: str
    state: RequirementState
    said: str
    advice: str = ""


OK, LIMITED, MISSING = RequirementState


def library() -> Iterator[Requirement]:
    """The library itself."""
    from importlib.metadata import version

    running = f"{version('fragdex')} on Python {platform.python_version()}"
    try:
        importlib.import_module("fragdex._native")
    except ImportError:
        slow = f"{running}; boxes are walked in pure Python, which is slower"
        yield Requirement("fragdex", LIMITED, slow, "install a C compiler and reinstall it")
    else:
        yield Requirement("fragdex", OK, running)


def service() -> Iterator[Requirement]:
    """What the media service needs."""
    try:
        import fragdex.service.app  # noqa: F401 — whether it can be imported
    except (ImportError, MissingExtra) as error:
        yield Requirement("service", MISSING, str(error), install_command("service"))
    else:
        yield Requirement("service", OK, "fragdex serve, fragdex worker")


def media() -> Iterator[Requirement]:
    """Decoding and encoding."""
    advice = install_command("media")
    try:
        import av
        from av.codec import Codec
    except ImportError:
        yield Requirement("media", MISSING, "no PyAV", advice)
        return
    missing = []
    for name in ("libx264", "aac"):
        try:
            Codec(name, "w")
        except ValueError:
            missing.append(name)
    release = f"PyAV {av.__version__}"
    if missing:
        lacking = f"{release} without {' and '.join(missing)}"
        yield Requirement("media", MISSING, lacking, advice)
    else:
        yield Requirement("media", OK, f"{release}, libx264, aac")


def stills() -> Iterator[Requirement]:
    """JPEG, PNG and WebP."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = f"Pillow {version('pillow')}"
        import PIL.features
    except (ImportError, PackageNotFoundError):
        yield Requirement("stills", MISSING, "no Pillow", install_command("media"))
        return
    lacking = [name for name in ("jpg", "zlib", "webp") if not PIL.features.check(name)]
    if lacking:
        yield Requirement("stills", LIMITED, f"{release} without {', '.join(lacking)}")
    else:
        yield Requirement("stills", OK, release)


def browser() -> Iterator[Requirement]:
    """Chromium, tried with a page; its sandbox."""
    from fragdex.rendering.browser import finding

    path: Path | None = None
    try:
        path = finding.find_engine().path
        began = time.monotonic()
        with options.extra("render"):
            from fragdex.rendering.browser.model import PageView
            from fragdex.rendering.browser.process import NO_BEGIN_FRAMES
            from fragdex.rendering.pool import RenderProcess
            from fragdex.rendering.site import Page

        view = PageView(64, 64)
        with (
            tempfile.TemporaryDirectory(prefix="fragdex-") as folder,
            RenderProcess(Page("<p>fragdex")) as child,
        ):
            facts = child.look(view)
            notes = child.draw(view, range(1), Path(folder)).notes
    except FragdexError as error:
        if path is None or not isinstance(error, MissingExtra):
            advice = error.advice or finding.ADVICE
            yield Requirement("chromium", MISSING, error.message, advice)
            return
        # the browser is there: a package around it is not
        yield Requirement("chromium", LIMITED, f"{path} is here, and cannot be tried")
        yield Requirement("renders", MISSING, error.message, error.advice or "")
        return
    took = time.monotonic() - began
    summary = f"{facts.browser_version}, {path}, first picture after {took:.1f} s"
    yield Requirement("chromium", OK, summary)
    yield from _updates(finding.package_of(path))
    if facts.has_begin_frame:
        yield Requirement("beginFrame", OK, "frames on request, in virtual time")
    else:
        yield Requirement(
            "beginFrame",
            LIMITED,
            "no frames on request: pages run on a scripted clock, at half the speed or less,"
            " and videos may differ from run to run",
            finding.ADVICE,
        )
    missing = [line for line in notes.browser if line != NO_BEGIN_FRAMES]
    yield from (Requirement("sandbox", LIMITED, line) for line in missing)
    if not missing:
        yield Requirement("sandbox", OK, "Chromium's own, and no network")


def _updates(package: SystemPackage | None) -> list[Requirement]:
    """Whether a browser has its security updates; nothing where apt does not know it."""
    if package is None:
        return []
    advice = f"apt-get update && apt-get install {package.name}"
    known = f"{package.name} {package.installed}"
    if package.is_behind:
        summary = f"{known} is out of date: apt offers {package.candidate}"
        return [Requirement("updates", LIMITED, summary, advice)]
    if package.days is None or package.days > _STALE_DAYS:
        since = "not there" if package.days is None else f"{package.days:.0f} days old"
        summary = f"{known} may be out of date: apt's package lists are {since}"
        return [Requirement("updates", LIMITED, summary, advice)]
    return [Requirement("updates", OK, f"{known}, the newest that apt offers")]


def walls() -> Iterator[Requirement]:
    """What is around the processes that open the files of strangers."""
    try:
        from fragdex.sandbox.child import missing_walls

        missing = missing_walls()
    except (ImportError, MissingExtra) as error:
        yield Requirement("walls", MISSING, str(error), install_command("service"))
        return
    except (FragdexError, RuntimeError, OSError) as error:
        yield Requirement("walls", MISSING, f"no child process can be started: {error}")
        return
    yield from (Requirement("walls", LIMITED, line, _ADVICE_OF_WALLS) for line in missing)
    if not missing:
        summary = "no network, no privileges, files of their own, bounds of memory"
        yield Requirement("walls", OK, summary)


def _chosen_engines() -> list[EngineChoice]:
    """The engines as the operator set them up for the service, where there is one."""
    from fragdex.speech.engines import ENGINES

    try:
        from fragdex.service.config import load_settings
        from fragdex.service.transcriptions.records import choice_of
    except ImportError:
        return []
    settings = load_settings()
    return [choice_of(settings, name) for name in ENGINES]


def _engine_taken() -> str:
    """The engine of transcriptions that name none."""
    from fragdex.speech.engines import default_engine

    try:
        from fragdex.service.config import load_settings
    except ImportError:
        return default_engine()
    return load_settings().speech_engine or default_engine()


def speech() -> Iterator[Requirement]:
    """The engines that turn speech into words."""
    try:
        from fragdex.speech.process import engine_states
    except (ImportError, MissingExtra) as error:
        yield Requirement("speech", MISSING, str(error), install_command("speech"))
        return
    states = engine_states(_chosen_engines())
    usual = _engine_taken()
    # One engine is enough; the others are a choice.
    lacking = LIMITED if any(one.ready for one in states) else MISSING
    for one in states:
        state, advice = (OK, "") if one.ready else (lacking, one.fix)
        yield Requirement(one.name, state, _said_of(one, usual), advice)


def _said_of(one: EngineState, usual: str) -> str:
    """Version and model of an engine, or why it is not ready; and whether it is taken."""
    line = f"{one.version}, model {one.model}" if one.ready else one.reason
    if one.ready and one.name == "moonshine":
        from fragdex.speech.acoustics import model_folder

        line += "" if model_folder() else "; times of words are rough without pocketsphinx"
    return f"{line}; taken where no engine is named" if one.name == usual else line


def fonts() -> Iterator[Requirement]:
    """Whether pages find letters."""
    count = sum(
        path.suffix.lower() in _FONT_SUFFIXES
        for folder in _FONTS
        for path in Path(folder).expanduser().rglob("*")
    )
    if count:
        yield Requirement("fonts", OK, f"{count} files")
    else:
        advice = "on Debian: apt-get install fonts-dejavu-core fonts-noto-color-emoji"
        yield Requirement("fonts", LIMITED, "no font: pages must bring their own", advice)


def room() -> Iterator[Requirement]:
    """Where slices and browsers keep what they are working on."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    summary = f"{free / 1e9:.0f} GB free in {folder}, {os.cpu_count()} processors"
    yield Requirement("machine", LIMITED if free < _LITTLE_ROOM else OK, summary)


CHECKS: list[Callable[[], Iterable[Requirement]]] = [
    library, service, media, stills, walls, browser, fonts, speech, room,
]  # fmt: skip
"""What is looked at, in this order."""


def doctor(json: options.Json = False) -> int:
    """Check which parts of fragdex work on this machine, and say how to get the others.

    Chromium is started once, with a page of one line. The exit code is 1 if a part is missing.

    Examples:
      fragdex doctor
      fragdex doctor --json
    """
    parts = [part for check in CHECKS for part in check()]
    if json:
        print(json_line([asdict(part) for part in parts]), end="")
    else:
        width = max(len(part.name) for part in parts)
        for part in parts:
            print(f"{part.name:{width}}  {part.state:7}  {part.said}")
            if part.advice:
                print(f"{'':{width}}  {'':7}  → {part.advice}")
    return 1 if any(part.state is MISSING for part in parts) else 0
