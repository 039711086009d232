"""`fragdex view`, `extract` and `package`: a file in another arrangement, without re-encoding."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fragdex.cli import options
from fragdex.cli.inputs import (
    InputWork,
    bytes_of_view,
    exact_again,
    expand,
    notes,
    opened_media,
    places,
    saved_form,
)
from fragdex.cli.output import complain, counting, emit, json_line, say

if TYPE_CHECKING:
    from fragdex.muxing.clip_span import Clip
    from fragdex.muxing.copies import ClipRequest
    from fragdex.muxing.view import View
    from fragdex.seeking.model import Index


class ViewKind(StrEnum):
    """What a view is: an option's values."""

    # The library's own list would import numpy for every --help; a test holds the two equal.
    FASTSTART = "faststart"
    FRAGMENTED = "fragmented"
    CLIP = "clip"
    TRACKS = "tracks"
    INIT = "init"
    SEGMENT = "segment"
    TIMELINE = "timeline"


_CUT: Final = ("fragmented", "init", "segment", "timeline")
_APPLIES: Final = {
    "--start": ("clip",),
    "--stop": ("clip",),
    "--at-key-frame": ("clip",),
    "--track": ("clip", "tracks", *_CUT),
    "--segment-duration": _CUT,
    "--number": ("segment",),
    "--starts": ("timeline",),
}


_ProofPath = Annotated[
    str | None,
    typer.Option(
        "--proof",
        metavar="PATH",
        help="Write there which bytes of the output the digests of FILE prove (JSON); FILE is"
        " a .fidx with digests.",
    ),
]


@options.opens("strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def view(
    files: options.Files,
    kind: Annotated[
        ViewKind, typer.Option("--kind", "-k", help="What to make.")
    ] = ViewKind.FRAGMENTED,
    output: Annotated[
        str | None,
        options.placed("Write there: a file, a folder (it gets FILE's name), or - for stdout."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="TIME", help="Begin there, in a clip.", show_default="0, the start"
        ),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            "--stop",
            "--end",
            metavar="TIME",
            help="End there (exclusive), in a clip.",
            show_default="end",
        ),
    ] = None,
    at_key_frame: Annotated[
        bool,
        typer.Option(
            "--at-key-frame",
            help="Begin the clip at the sync sample at or before its start, in fragments, for"
            " readers that ignore edit lists.",
        ),
    ] = False,
    tracks: options.Tracks = None,
    segment_duration: options.SegmentDuration = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", min=0, metavar="N", help="Number of the segment.", show_default="0"
        ),
    ] = None,
    starts: Annotated[
        str | None,
        typer.Option(
            "--starts",
            metavar="TIMES",
            help="Where files begin on the timeline, with commas between them; source: at their"
            " own times, so that gaps stay.",
            show_default="each after the previous one",
        ),
    ] = None,
    proof: _ProofPath = None,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Write FILE in another arrangement, without re-encoding.

    `fragmented`: in fragments that begin with key frames, with a sidx. `faststart`: a
    progressive file with its moov before the media. `clip`: a span of it. `tracks`: some of its
    tracks. `init` and `segment`: the initialization segment and one media segment of `fragmented`.
    `timeline`: all FILEs one after the other. In Python, fragdex.view does the same without writing
    a file.

    Examples:
      fragdex view movie.mp4 -o streamable.mp4
      fragdex view movie.mp4 --kind faststart -o web.mp4
      fragdex view movie.mp4 --kind clip --start 60 --stop 90 -o clip.mp4
      fragdex view movie.mp4 --kind segment --number 3 --segment-duration 2 --track 1 -o 3.m4s
      fragdex view monday/*.mp4 --kind timeline -o monday.mp4
      fragdex view movie.fidx -o streamable.mp4 --proof streamable.json
    """
    given = {
        "--start": start is not None,
        "--stop": stop is not None,
        "--at-key-frame": at_key_frame,
        "--track": tracks is not None,
        "--segment-duration": segment_duration is not None,
        "--number": number is not None,
        "--starts": starts is not None,
    }
    for option, kinds in _APPLIES.items():
        if given[option] and kind.value not in kinds:
            raise typer.BadParameter(f"{option} does not apply to {kind.value}")
    first = Fraction(0) if start is None else options.parse_time(start)
    last = math.inf if stop is None else options.parse_time(stop)
    if not first < last:
        raise typer.BadParameter(f"--stop ({stop}) must be after --start ({start or 0})")
    if output is None:
        raise typer.BadParameter("an output is needed: -o made.mp4")
    names = expand(files, repeated=kind is ViewKind.TIMELINE)
    together = names if kind is ViewKind.TIMELINE else None
    suffix = ".m4s" if kind is ViewKind.SEGMENT else ".mp4"
    request: dict[str, Any] = {"tracks": tracks, "number": number or 0}
    request |= {"start": first, "stop": last, "exact": not at_key_frame}
    request["segment_duration"] = options.parse_segment_duration(segment_duration)
    request["starts"] = _parse_starts(starts, len(names))
    outputs = places(names[:1] if together else names, output, lambda name: suffix, "views")
    if outputs.get(names[0]) in names[1:] and together:
        raise typer.BadParameter(f"{outputs[names[0]]} is one of the inputs: give another -o")
    _check_proof(proof, names)
    making = partial(
        _view,
        outputs=outputs,
        together=together,
        kind=kind.value,
        request=request,
        proof=proof,
        opening=opening,
    )
    work = InputWork("view")
    for name, result in work.each(making, list(outputs), 1 if output == "-" else jobs):
        what = {"files": together} if together else {"file": name}
        several = f"{name} and {len(names) - 1} more" if together and names[1:] else name
        text = json_line({**what, **result}) if json else _view_line(several, result)
        # The view itself may be on stdout: then words go to stderr.
        say(text, err=output == "-")
    return work.code


def _parse_starts(text: str | None, count: int) -> Any:
    if text is None or text == "source":
        return text
    times = [options.parse_time(one) for one in text.split(",")]
    if len(times) != count or math.inf in times:
        raise typer.BadParameter(f"--starts has {len(times)} times for {count} files")
    return times


def _view(
    name: str,
    outputs: dict[str, str],
    together: Sequence[str] | None,
    kind: Any,
    request: dict[str, Any],
    proof: str | None,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    import fragdex
    from fragdex.errors import FragdexError, InexactIndex
    from fragdex.muxing.kinds import described

    indexes: list[Any] = []
    sources: list[Any] = []
    findings: list[str] = []

    def describe() -> fragdex.View:
        several = (indexes, sources) if together else (indexes[0], sources[0])
        return described(several[0], kind, source=several[1], **request)

    with ExitStack() as stack:
        for one in together or [name]:
            with ExitStack() as here:
                index, source, _ = here.enter_context(opened_media(one, opening))
                indexes.append(index)
                findings += [
                    f"{one}: {note}" if together else note for note in notes(index, findings=False)
                ]
                # a process cannot have the files of a whole day open
                sources.append(source.name if together and not source.remote else source)
                if sources[-1] is source:
                    stack.push(here.pop_all())
        try:
            try:
                view = describe()
            except InexactIndex:
                # A saved index without its samples, or one from a sidx or mfra.
                span = (
                    (request["start"], request["stop"], request["tracks"])
                    if kind == "clip"
                    else None
                )
                both = zip(indexes, sources, strict=True)
                indexes = [exact_again(index, source, opening, span) for index, source in both]
                view = describe()
        except IndexError as error:
            raise FragdexError(str(error)) from error
        emit(bytes_of_view(view, sources), outputs[name])
        proved = {} if proof is None else _proved(view, indexes[0], proof)
    return {
        "view": outputs[name],
        **proved,
        "kind": kind,
        "media_type": view.media_type,
        "size": view.size,
        "etag": view.etag,
        "findings": list(view.findings),
    }, [*findings, *view.findings]


def _check_proof(path: str | None, names: Sequence[str]) -> None:
    if path is not None and len(names) > 1:
        raise typer.BadParameter("--proof is about one FILE")


def _proved(view: Any, index: Any, path: str) -> dict[str, Any]:
    """Write the proof of a view; gives how many of its bytes are proved."""
    from fragdex.muxing.proof import proof_of

    proof = proof_of(view, index)
    emit([json_line(proof.to_json())], path)
    return {"proof": path, "proved": proof.size}


def _view_line(name: str, view: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return (
        f"{view['view']}: {view['kind']} of {name}, {view['media_type']}, "
        f"{byte_count(view['size'])}{_proved_words(view)}\n"
    )


def _proved_words(entry: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return f", {byte_count(entry['proved'])} proved ({entry['proof']})" if "proof" in entry else ""


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def extract(
    files: options.FilesAndTimes = None,
    start: Annotated[
        str | None, typer.Argument(metavar="T0", help="Where the clip starts.")
    ] = None,
    stop: Annotated[
        str | None, typer.Argument(metavar="T1", help="Where it ends (exclusive), or: end.")
    ] = None,
    first_time: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Begin there; the same as T0.")
    ] = None,
    last_time: Annotated[
        str | None,
        typer.Option(
            "--stop", "--end", metavar="TIME", help="End there (exclusive); the same as T1."
        ),
    ] = None,
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a file, a folder (the clip gets FILE's name), or - for stdout."
        ),
    ] = None,
    tracks: options.Tracks = None,
    keep_times: Annotated[
        bool,
        typer.Option(
            "--keep-times",
            help="Keep the source's times, in fragments, instead of a clip that starts at 0.",
        ),
    ] = False,
    fragmented: Annotated[
        bool,
        typer.Option(
            "--fragmented", help="Make a fragmented file; it starts at a sync sample before T0."
        ),
    ] = False,
    smart: options.Smart = False,
    proof: _ProofPath = None,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Cut a playable clip out of a file, without re-encoding.

    A clip shows exactly T0 to T1: what a decoder needs before T0 is included, and hidden by an
    edit list. With --fragmented, and for encrypted files, whole fragments are
    copied, or samples put into fragments; such a clip starts at the sync sample at or before T0.
    With --smart, the pictures from T0 to the next sync sample are re-encoded with the settings of
    the source, and all others are copied. The actual span of the clip is printed.

    Examples:
      fragdex extract movie.mp4 60 90 -o clip.mp4
      fragdex extract movie.mp4 --start 60 --end 90 -o clip.mp4
      fragdex extract movie.mp4 60 90 --smart -o clip.mp4
      fragdex extract 'episodes/*.mp4' 0 1:30 -o openings/ --jobs 4
    """
    from fragdex.muxing.copies import ClipRequest

    named = {"--start": (first_time, "0"), "--stop": (last_time, "end")}
    given, times = options.split_times(files, [start, stop], named)
    first, last = map(options.parse_time, times)
    if not first < last:
        raise typer.BadParameter(f"T1 ({times[1]}) must be after T0 ({times[0]})")
    if output is None:
        raise typer.BadParameter("an output is needed: -o clip.mp4")
    if smart and (fragmented or keep_times):
        raise typer.BadParameter("--smart makes a progressive clip that starts at 0")
    names = expand(given)
    _check_proof(proof, names)
    targets = places(names, output, lambda name: ".mp4", "clips")
    work = InputWork("extract")
    cut = ClipRequest(first, last, tracks, fragmented, keep_times, smart=smart)
    asked = [float(first), None if math.isinf(last) else float(last)]
    cutting = partial(_extract, targets=targets, cut=cut, asked=asked, proof=proof, opening=opening)
    for name, result in work.each(cutting, names, 1 if output == "-" else jobs):
        text = json_line({"file": name, **result}) if json else _clip_line(name, result)
        # The clip itself may be on stdout: then words go to stderr.
        say(text, err=output == "-")
    return work.code


def _extract(
    name: str,
    targets: dict[str, str],
    cut: ClipRequest,
    asked: list[float | None],
    proof: str | None,
    opening: dict[str, Any],
) -> tuple[dict[str, Any], Sequence[str]]:
    with cut_of(name, cut, targets[name], opening) as (index, view, clip):
        proved = {} if proof is None else _proved(view, index, proof)
    return {
        "clip": targets[name],
        **proved,
        "asked": asked,
        "start": float(clip.start),
        "stop": float(clip.stop),
        "tracks": list(clip.tracks),
        "exact": clip.exact,
        "whole_fragments": clip.whole_fragments,
        "encoded": clip.encoded,
        "size": view.size,
        "findings": list(view.findings),
    }, [*notes(index, findings=False), *view.findings]


@contextmanager
def cut_of(
    name: str, cut: ClipRequest, target: str, opening: dict[str, Any]
) -> Iterator[tuple[Index, View, Clip]]:
    """Write a clip; its index, as a view, and what it shows, while its source is open."""
    from dataclasses import replace

    from fragdex.errors import InexactIndex
    from fragdex.muxing.copies import clip_view
    from fragdex.seeking.origin import FileInfo

    with opened_media(name, opening) as (index, source, init):
        cut = replace(cut, init=init)
        tracks = None if cut.tracks is None else list(cut.tracks)
        try:
            view, clip = clip_view(index, source, cut)
        except InexactIndex:
            # A saved index without its samples, or one from a sidx or mfra.
            index = exact_again(index, source, opening, (cut.start, cut.stop, tracks))
            view, clip = clip_view(index, source, cut)
        # A recording may have grown since it was indexed from this very source.
        known = None if saved_form(name) else [FileInfo(name)]
        emit(bytes_of_view(view, source, known), target)
        yield index, view, clip


def _clip_line(name: str, clip: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count, clock

    span = [clip["asked"][0], math.inf if clip["asked"][1] is None else clip["asked"][1]]
    words = " – ".join("end" if math.isinf(at) else clock(at) for at in span)
    what = "whole fragments" if clip["whole_fragments"] else "samples, in new fragments"
    what = "exactly" if clip["exact"] else what
    if clip["encoded"]:
        what += f", {clip['encoded']} pictures re-encoded"
    return (
        f"{clip['clip']}: {clock(clip['start'])} – {clock(clip['stop'])} of {name} "
        f"(asked: {words}), {what}, {byte_count(clip['size'])}{_proved_words(clip)}\n"
    )


ENTRIES = ("master.m3u8", "manifest.mpd")
"""What players open."""


@options.opens("strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def package(
    files: options.Files,
    output: Annotated[str | None, options.placed("Write there: a folder, which is made.")] = None,
    segment_duration: options.SegmentDuration = None,
    tracks: options.Tracks = None,
    captions: Annotated[
        list[str] | None,
        typer.Option(
            "--captions",
            metavar="[LANG=]FILE",
            help="Subtitles of the file: WebVTT, SubRip or JSON; may be repeated. "
            "The language comes from the name (film.fr.srt), or from fr=FILE.",
        ),
    ] = None,
    single_file: Annotated[
        bool,
        typer.Option(
            "--single-file", help="One file for each rendition; its segments are ranges of it."
        ),
    ] = False,
    date_ranges: Annotated[
        bool,
        typer.Option(
            "--date-ranges", help="Cues of SCTE 35 and ID3 tags as EXT-X-DATERANGE in playlists."
        ),
    ] = False,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Write HLS and DASH of one title, without re-encoding.

    All FILEs are renditions of one title: the same video in several sizes, or its sound in several
    languages. Each track of video, audio and subtitles becomes a rendition. The folder gets
    `master.m3u8` and `manifest.mpd`, which players open, with their playlists and segments. If
    players cannot switch between renditions, stderr says why.

    Examples:
      fragdex package movie.mp4 -o movie/
      fragdex package 1080p.mp4 720p.mp4 french.m4a -o movie/ --segment-duration 2
      fragdex package movie.mp4 --captions movie.fr.srt --captions en=signs.vtt -o movie/
      fragdex package movie.mp4 --single-file -o movie/
    """
    if output is None or output == "-":
        raise typer.BadParameter("a folder is needed: -o DIR")
    length = options.parse_segment_duration(segment_duration)
    names = expand(files)
    texts = [_captions(one) for one in captions or ()]
    wanted = {
        "segment_duration": length,
        "tracks": tracks,
        "captions": texts,
        "single_file": single_file,
        "date_ranges": date_ranges,
    }
    with ExitStack() as stack:
        packaged, sources = _packaged(names, wanted, opening, stack)
        # Playlists come last: none names a file that is not there yet.
        order = sorted(packaged, key=lambda name: ("/" not in name, name in ENTRIES))
        written = _write_package(packaged, order, sources, output, names)
    for finding in packaged.findings:
        complain(finding)
    value = {
        "files": names,
        "package": output,
        "renditions": [one.name for one in (*packaged.title.renditions, *packaged.title.subtitles)],
        "written": len(order),
        "size": written,
        "findings": list(packaged.findings),
    }
    say(json_line(value) if json else _package_line(value))
    return 0


def _captions(given: str) -> Any:
    """A caption file, its language by `LANG=` or by its name."""
    from fragdex.packaging.subtitles import read_captions

    language, mark, path = given.partition("=")
    if mark and re.fullmatch(r"[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*", language):
        return read_captions(path, language=language)
    return read_captions(given)


def _packaged(
    names: Sequence[str],
    wanted: Mapping[str, Any],
    opening: Mapping[str, Any],
    stack: ExitStack,
) -> tuple[Any, list[tuple[Any, Any]]]:
    """The package, and what each index says of its source with that source, open."""
    import fragdex

    indexes, sources = [], []
    for name in names:
        index, source, _ = stack.enter_context(opened_media(name, opening))
        if not all(track.has_samples for track in index.tracks):
            # A saved index without its samples, or one from a sidx or mfra.
            index = exact_again(index, source, opening)
        for note in notes(index, findings=False):
            complain(f"{name}: {note}")
        indexes.append(index)
        sources.append(source)
    packaged = fragdex.package(indexes, source=sources, **wanted)
    return packaged, [(i.file, s) for i, s in zip(indexes, sources, strict=True)]


def _write_package(
    packaged: Any,
    order: Sequence[str],
    sources: Sequence[tuple[Any, Any]],
    folder: str,
    inputs: Sequence[str],
) -> int:
    """Write the files of a package; returns their bytes.

    Raises:
        typer.BadParameter: one of them would replace an input.
    """
    from fragdex.sources.files import write_file

    places = {name: os.path.join(folder, *name.split("/")) for name in order}
    inputs_taken = {os.path.realpath(name) for name in inputs}
    for place in places.values():
        if os.path.realpath(place) in inputs_taken:
            raise typer.BadParameter(f"{place} would be overwritten: give another -o")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise typer.BadParameter(f"{folder} is not a folder: give one with -o")
    for place in {os.path.dirname(place) for place in places.values()}:
        os.makedirs(place, exist_ok=True)
    size = 0
    with counting("package", len(order)) as advance:
        for name, place in places.items():
            view = packaged[name]
            source = [next(s for info, s in sources if info is known) for known in view.sources]
            size += write_file(place, bytes_of_view(view, source))
            advance()
    return size


def _package_line(value: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return (
        f"{value['package']}: {', '.join(value['files'])} as {', '.join(value['renditions'])}, "
        f"{value['written']} files, {byte_count(value['size'])}\n"
    )
