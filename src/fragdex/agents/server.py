"""The tools that an agent is given, over the Model Context Protocol: few, in a person's words.

Each answer is one JSON document, with its pictures after it: what was found, what reading it cost
(`read`), and how to continue (`next`).
"""

from __future__ import annotations

import base64
import functools
import inspect
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from html import escape
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

import fragdex
from fragdex.agents.work import Call, Worker
from fragdex.errors import EngineUnavailable, FragdexError, InvalidRequest, MissingExtra
from fragdex.origin.film_list import is_name
from fragdex.sandbox.folders import take_file
from fragdex.sandbox.processes import share_memory_among

AT_ONCE: Final = 4
"""Answers that are worked on at once."""
_INSTRUCTIONS: Final = (
    "Videos that can be looked at and listened to without being played. Begin with list_videos and "
    "describe_video; look at a whole video by look (a sheet of small pictures), then at single "
    "frames by their times. Times are seconds (73.4) or clocks (1:13.4); frames are numbered from "
    "0. `read` says what an answer cost, `next` how to continue."
)

Tools = tuple[Callable[..., Any], ...]
Time = Annotated[str | float, Field(description="Seconds (73.4) or a clock (1:13.4).")]
Stop = Annotated[str | float | None, Field(description="Where to end; null: the end of the video.")]
Video = Annotated[str, Field(description="A name that list_videos gives, or an allowed URL.")]
Name = Annotated[str, Field(description="Of the new file or folder, without a folder before it.")]
After = Annotated[str, Field(description="`next` of the page before.")]
Times = Annotated[
    list[str | float] | None, Field(description="Give the frames of these times.", max_length=1000)
]
Numbers = Annotated[
    list[int] | None, Field(description="Give the frames of these numbers.", max_length=1000)
]
Pictures = Annotated[int, Field(description="On the sheet.", ge=1, le=64)]
Width = Annotated[int | None, Field(description="Pixels of each picture.", ge=16, le=3840)]
Search = Annotated[str, Field(description="Only lines with this.", max_length=500)]
Language = Annotated[str, Field(description="Such as en, where there are several.", max_length=35)]
Transcribe = Annotated[bool, Field(description="Listen where there are no captions.")]
Least = Annotated[float, Field(description="Percent that a cut changes.", gt=0, le=100)]
Quiet = Annotated[float, Field(description="dBFS below which it is silent.", ge=-120, le=0)]
Videos = Annotated[
    list[str], Field(description="Sizes or languages of one title.", min_length=1, max_length=16)
]
Like = Annotated[str | None, Field(description="A good video of the same camera and settings.")]
Page = Annotated[str, Field(description="An HTML file, such as site/card.html.")]
Seconds = Annotated[float | None, Field(description="null: what the page says.", gt=0, le=600)]
Side = Annotated[int | None, Field(description="null: what the page says.", ge=2, le=3840)]
Rate = Annotated[int, Field(description="Frames a second.", ge=1, le=60)]


class Part(BaseModel):
    """A part of a video; without times all of it."""

    video: Video
    start: Time | None = None
    stop: Stop = None


Parts = Annotated[list[Part], Field(description="In their order.", min_length=1, max_length=32)]


def list_videos(call: Call, after: After = "") -> dict[str, Any]:
    """Which videos there are: names and sizes, 100 a page."""
    videos, further = call.allowed.listed(after)
    return {
        "videos": videos, "urls_below": list(call.allowed.prefixes),
        "next": {"after": further} if further else None,
    }  # fmt: skip


def describe_video(call: Call, video: Video) -> dict[str, Any]:
    """What is in a video: length, tracks, frame rate, chapters, captions, and what is odd."""
    return call.do("describe", [video]) | {"caption_files": call.allowed.captions(video)}


def look(
    call: Call, video: Video, times: Times = None, frames: Numbers = None, start: Time = 0,
    stop: Stop = None, pictures: Pictures = 24, width: Width = None,
) -> dict[str, Any]:  # fmt: skip
    """Look at a video: a sheet of small pictures from start to stop, or exact frames.

    Frames are given by their times or numbers, 12 an answer; each picture has its time and number.
    """
    if times or frames:
        chosen: dict[str, Any] = {"times": times or [], "numbers": frames or []}
        return call.do("frames", [video], width=width or 960, **chosen)
    return call.do("sheet", [video], start=start, stop=stop, pictures=pictures, width=width or 256)


def read_words(
    call: Call, video: Video, start: Time = 0, stop: Stop = None, search: Search = "",
    language: Language = "", transcribe: Transcribe = True,
) -> dict[str, Any]:  # fmt: skip
    """The words that are spoken, with times and speakers.

    From captions in the video or in a file next to it; where there are none, the speech is
    transcribed.
    """
    words = call.do(
        "words", [video], beside=call.allowed.captions(video), start=start, stop=stop,
        search=search, language=language,
    )  # fmt: skip
    if words["from"] is not None or words["captions"] or not transcribe:
        return words
    from fragdex.agents.transcribing import transcribed

    try:
        heard = transcribed(call, video, words["start"], words["stop"], search, language)
    except (EngineUnavailable, LookupError, MissingExtra) as error:
        return words | {"not_transcribed": _sentence(error)}
    read = {name: heard["read"][name] + cost for name, cost in words["read"].items()}
    return words | heard | {"read": read}


def find_changes(
    call: Call, video: Video, start: Time = 0, stop: Stop = None, least: Least = 6
) -> dict[str, Any]:
    """Where the picture changes: the first frame after each cut, with its time and strength.

    `every_frame` says whether each frame was compared with the one before; if not, a shorter span
    finds more.
    """
    return call.do("changes", [video], start=start, stop=stop, least=least)


def measure_sound(
    call: Call, video: Video, start: Time = 0, stop: Stop = None, quiet: Quiet = -50
) -> dict[str, Any]:
    """How loud the sound is, and where it is silent.

    Loudness (EBU R 128), levels over time, silences, the loudest moment; an hour an answer.
    """
    return call.do("sound", [video], start=start, stop=stop, quiet=quiet)


def cut_video(call: Call, parts: Parts, name: Name) -> dict[str, Any]:
    """Write a clip of a video (.mp4), or several parts joined, without re-encoding."""
    times = [{"start": one.start, "stop": one.stop} for one in parts]
    with _claimed(call, name) as place:
        return _written(call, place, "cut", [one.video for one in parts], parts=times)


def package_video(call: Call, videos: Videos, name: Name) -> dict[str, Any]:
    """Write HLS and DASH for players into a folder."""
    beside = call.allowed.captions(videos[0])
    with _claimed(call, name, is_folder=True) as place:
        return _written(call, place, "package", videos, beside=beside, captions=len(beside))


def repair_video(call: Call, video: Video, name: Name, like: Like = None) -> dict[str, Any]:
    """Write a playable copy (.mp4) of a video whose index is lost or wrong."""
    with _claimed(call, name) as place:
        return _written(call, place, "repair", [video, *([] if like is None else [like])])


def render_page(
    call: Call, page: Page, name: Name, seconds: Seconds = None, width: Side = None,
    height: Side = None, fps: Rate = 30,
) -> dict[str, Any]:  # fmt: skip
    """Write a web page as a video (.mp4), frame by frame; it reaches no network."""
    from fragdex.rendering.render import render
    from fragdex.rendering.spec import RenderSpec
    from fragdex.rendering.web import site_at

    def progress(done: int, size: int) -> None:
        call.check()
        call.report(done / size if size else 0.0, "frames")

    site, _ = site_at(str(call.allowed.page(page)))
    length = None if seconds is None else round(1000 * seconds)
    spec = RenderSpec(width=width, height=height, fps=Fraction(fps), duration_ms=length)
    with _claimed(call, name) as place:
        made = render(site, spec, place, progress=progress)
        return {
            "written": call.allowed.shown(place), "frames": made.frames, "seconds": made.seconds,
            "sound": made.sound, "console": _short(made.notes.console),
            "incomplete": _short(made.notes.incomplete),
            "blocked": _short(one.url for one in made.notes.blocked),
        }  # fmt: skip


def frame(call: Call, time: str, video: str) -> bytes:
    """The frame of a time, as a JPEG."""
    made = call.do("frames", [video], times=[time], numbers=[], width=1920)
    return base64.b64decode(made["pictures"][0]["data"])


def captions(call: Call, video: str) -> str:
    """The captions of a video, as WebVTT."""
    from fragdex.muxing.captions import timing

    beside = call.allowed.captions(video)
    whole: dict[str, Any] = {"start": 0, "stop": None, "search": "", "language": ""}
    cues = [
        f"{timing(round(1000 * one['start']), round(1000 * one['stop']))}\n"
        + (f"<v {escape(one['speaker'])}>" if "speaker" in one else "")
        + escape(one["text"], quote=False)
        for one in call.do("words", [video], beside=beside, **whole)["lines"]
    ]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


READING: Final[Tools] = (list_videos, describe_video, look, read_words, find_changes, measure_sound)
WRITING: Final[Tools] = (cut_video, package_video, repair_video, render_page)
"""Offered where something may be written."""


@contextmanager
def _claimed(call: Call, name: str, *, is_folder: bool = False) -> Iterator[Path]:
    """A new file or folder that nobody else takes; it is gone again if the work fails."""
    place = call.allowed.target(name)
    if not is_folder and place.suffix.lower() != ".mp4":
        raise InvalidRequest(f"{name} has another suffix", expected=".mp4")
    try:
        if is_folder:
            place.mkdir()
        else:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        raise InvalidRequest(f"{name} is there already", advice="give another name") from None
    try:
        yield place
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(place) if is_folder else place.unlink()
        raise


def _written(
    call: Call, place: Path, job: str, videos: list[str], **arguments: Any
) -> dict[str, Any]:
    """Have files made, and take them out of the folder of the child, by the names that it gives."""

    def take(folder: Path, answer: dict[str, Any]) -> None:
        for number, name in enumerate(answer.get("files", [""])):
            if name and not is_name(name):
                raise InvalidRequest("a result has a name that cannot be used", found=name)
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            take_file(folder / f"result-{number}", target)

    return {"written": call.allowed.shown(place), **call.do(job, videos, take=take, **arguments)}


def _short(texts: Iterable[str]) -> list[str]:
    return [text[:300] for text in islice(texts, 20)]


def _sentence(error: Exception) -> str:
    """What went wrong, and what to do."""
    advice, text = getattr(error, "advice", None), str(error)
    return text if not advice or advice in text else f"{text}: {advice}"


def _answer(made: dict[str, Any]) -> CallToolResult:
    """An answer: JSON, and its pictures after it."""
    images = [
        ImageContent(type="image", data=one.pop("data"), mime_type="image/jpeg")
        for one in made.get("pictures", ())
    ]
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text), *images])


def _served(
    worker: Worker, limit: anyio.CapacityLimiter, function: Callable[..., Any],
    refused: type[Exception], give: Callable[[Any], Any],
) -> Callable[..., Any]:  # fmt: skip
    """A function of a call as the SDK takes it: in a thread, with progress, to be cancelled."""

    @functools.wraps(function)
    async def run(ctx: Context, **given: Any) -> Any:
        call = Call(worker)
        made: Any = None

        async def tell() -> None:
            while True:
                await anyio.sleep(0.3)
                if call.progress is not None:
                    (done, what), call.progress = call.progress, None
                    await ctx.report_progress(done, 1.0, what)

        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            work = functools.partial(function, call, **given)
            try:
                made = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limit)
            except FragdexError as error:
                made = error
            finally:
                call.cancelled.set()
            group.cancel_scope.cancel()
        if isinstance(made, FragdexError):
            raise refused(_sentence(made)) from made
        return give(made)

    first, *own = inspect.signature(function, eval_str=True).parameters.values()
    parameters = [first.replace(name="ctx", annotation=Context), *own]
    # the SDK reads the arguments of a tool off these two
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def server_of(worker: Worker) -> MCPServer[Any]:
    """A server with the tools for what is allowed; those that write only where something may be."""
    share_memory_among(AT_ONCE)
    limit = anyio.CapacityLimiter(AT_ONCE)
    server: MCPServer[Any] = MCPServer(
        "fragdex", title="Videos", instructions=_INSTRUCTIONS, version=fragdex.__version__,
        log_level="WARNING",
    )  # fmt: skip
    for tool in READING + (WRITING if worker.allowed.output is not None else ()):
        hints = ToolAnnotations(
            read_only_hint=tool in READING, destructive_hint=False, open_world_hint=False
        )
        server.add_tool(
            _served(worker, limit, tool, ToolError, _answer), annotations=hints,
            description=" ".join((tool.__doc__ or "").split()), structured_output=False,
        )  # fmt: skip
    resources: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        ("fragdex://frame/{time}/{+video}", "image/jpeg", frame),
        ("fragdex://captions/{+video}", "text/vtt", captions),
    )
    for uri, kind, resource in resources:
        read = _served(worker, limit, resource, ResourceError, lambda made: made)
        server.resource(uri, mime_type=kind, description=resource.__doc__)(read)
    return server
