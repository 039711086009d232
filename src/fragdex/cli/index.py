"""`fragdex index`: write the index of files, in any form; many videos to one set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from fragdex.cli import options
from fragdex.cli.inputs import (
    STDIN,
    InputWork,
    bytes_of_view,
    expand,
    is_url,
    media_of,
    notes,
    open_any,
    places,
    saved_form,
    source_of,
    stem,
)
from fragdex.cli.output import complain, counting, emit, say, validate_folder
from fragdex.record import record
from fragdex.seeking.forms import FORMS, forms_with

EMBED = "embed"
"""Not a form: a copy of the file with a sidx inside, which takes options of that form."""
EMBED_OPTIONS = ("track", "segment_duration")

if TYPE_CHECKING:
    FormName = str
else:
    FormName = StrEnum("FormName", [(name.replace("-", "_"), name) for name in FORMS])


def _names(option: str) -> str:
    """The forms that take an option, for its help."""
    return ", ".join([*forms_with(option), *(["--embed"] if option in EMBED_OPTIONS else [])])


class Playlist(StrEnum):
    """The playlists of HLS."""

    MEDIA = "media"
    IFRAMES = "iframes"
    MASTER = "master"
    ALL = "all"


@options.opens(
    "init", "exact", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests"
)
def index(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a file, a folder (FILE's name with the form's suffix goes into it),"
            " or - for stdout. Default: binary forms go to FILE's name with their suffix, in the"
            " same folder; text forms to stdout."
        ),
    ] = None,
    format: Annotated[
        FormName | None,
        typer.Option("--format", "-f", help="The form to write.", show_default="fidx"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the same as --format json.")
    ] = False,
    embed: Annotated[
        bool,
        typer.Option("--embed", help="Write a copy of FILE with the index as a sidx box inside."),
    ] = False,
    tracks: options.Tracks = None,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples", help=f"Include the samples ({_names('samples')}, {_names('of')})."
        ),
    ] = False,
    presentation: Annotated[
        bool,
        typer.Option(
            "--presentation", help=f"Apply the edit list to the times ({_names('presentation')})."
        ),
    ] = False,
    segment_duration: Annotated[
        str | None,
        typer.Option(
            "--segment-duration",
            metavar="S",
            help=f"Approximate length of a segment: at least ({_names('segment_duration')}).",
            show_default="2; sidx, --embed: 0",
        ),
    ] = None,
    playlist: Annotated[
        Playlist | None,
        typer.Option(
            "--playlist",
            help=f"Which playlist to write ({_names('playlist')}). A master playlist for PATH.m3u8"
            " refers to PATH-media.m3u8 and PATH-iframes.m3u8; all writes all three.",
            show_default="media",
        ),
    ] = None,
    uri: Annotated[
        str | None,
        typer.Option(
            "--uri",
            metavar="URI",
            help=f"The URI of the media file in the playlist or manifest ({_names('uri')}).",
            show_default="its place, seen from the playlist",
        ),
    ] = None,
    md5: Annotated[
        bool, typer.Option("--md5", help="Hash the whole FILE as well; fidx and verify use it.")
    ] = False,
    digests: Annotated[
        bool,
        typer.Option(
            "--digests",
            help="Hash each fragment as well, and each MiB of a progressive file (fidx); verify"
            " then names what is damaged.",
        ),
    ] = False,
    partial_fragments: Annotated[
        bool,
        typer.Option(
            "--partial", help="Keep the last fragment even if its media data is incomplete."
        ),
    ] = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Index files: write FILE.fidx next to each, or another form of the index.

    FILE may be a path, a glob, a URL, a saved index, or - for stdin. One line is printed for each
    index file that is written; findings go to stderr. With -o NAME.parquet and no --format, all
    videos become one set; FILE may also be a folder or a bucket (s3://bucket/folder/**). Videos
    that are already in the set are indexed again only if they changed.

    Examples:
      fragdex index movie.mp4                         write movie.fidx
      fragdex index *.mp4 -o indexes/ --jobs 4
      fragdex index movie.mp4 --json | jq .
      fragdex index movie.mp4 -f hls --playlist all -o movie.m3u8
      fragdex index movie.mp4 --embed -o seekable.mp4
      fragdex index films/ -o set.parquet --jobs 8    a set to train on: docs/training.md
      curl -s https://example.org/a.mp4 | fragdex index - -o a.fidx
    """
    form = _form(format, json, embed)
    if output is not None and output.endswith(".parquet") and form == "fidx" and format is None:
        given = {
            name: value
            for name, value in opening.items()
            if value not in (None, False) and name != "exact"
        }
        unused = (
            samples, presentation, segment_duration, playlist, uri, md5, digests, partial_fragments,
            tracks, given,
        )  # fmt: skip
        if any(unused):
            raise typer.BadParameter("a set of videos takes no option but --jobs")
        return index_set(files, output, jobs)
    known = EMBED_OPTIONS if form == EMBED else FORMS[form].options
    for option, is_given, names_of_it in (
        ("--samples", samples, ("samples", "of")),
        ("--presentation", presentation, ("presentation",)),
        ("--segment-duration", segment_duration is not None, ("segment_duration",)),
        ("--playlist", playlist is not None, ("playlist",)),
        ("--uri", uri is not None, ("uri",)),
        ("--track", tracks is not None, ("track", "tracks")),
    ):
        if is_given and not {*names_of_it} & {*known}:
            raise typer.BadParameter(f"{option} does not apply to {form}")
    if digests and form != "fidx":
        raise typer.BadParameter(f"--digests does not apply to {form}")
    names = expand(files)
    if digests and STDIN in names:
        raise typer.BadParameter("--digests needs a file: what comes through a pipe is read once")
    if playlist is Playlist.ALL and output in (None, "-"):
        raise typer.BadParameter("--playlist all writes several files: -o is needed")
    exporting = _chosen(form, known, tracks, samples)
    if presentation:
        exporting["presentation"] = True
    if segment_duration is not None:
        exporting["segment_duration"] = _least(segment_duration)
    if playlist is not None:
        exporting["playlist"] = playlist.value
    if uri is not None:
        exporting["uri"] = uri
    job = _Job(
        form=form,
        targets=_targets(names, form, output),
        exporting=exporting,
        opening={**opening, "partial": partial_fragments, "md5": md5, "digests": digests},
    )
    work = InputWork("index")
    for _, (data, line) in work.each(partial(_index, job=job), names, jobs):
        if data is not None:
            emit([data], None)
        else:
            say(line + "\n")
    return work.code


def _least(text: str) -> Fraction:
    """The least length of a segment.

    Raises:
        typer.BadParameter: it is not a length.
    """
    length = options.parse_time(text)
    if not isinstance(length, Fraction) or length < 0:
        raise typer.BadParameter(f"--segment-duration is a length, 0 or more: {text}")
    return length


@record(frozen=True, slots=True)
class _Job:
    """What is done with each input; target None: stdout."""

    form: str
    targets: dict[str, str | None]
    exporting: dict[str, Any]
    opening: dict[str, Any]


def _form(form: str | None, json: bool, embed: bool) -> str:
    if json and form not in (None, "json"):
        raise typer.BadParameter(f"--json and --format {form} contradict each other")
    if embed and (json or form is not None):
        raise typer.BadParameter("--embed writes a media file: it takes no --format")
    if embed:
        return EMBED
    return "json" if json else str(form or "fidx")


def _targets(names: Sequence[str], form: str, output: str | None) -> dict[str, str | None]:
    """Where the index of each input goes; None: stdout.

    Raises:
        typer.BadParameter: two inputs would go to one place, or one over itself.
    """
    if form == EMBED and output is None:
        raise typer.BadParameter("--embed writes a whole media file: -o is needed")
    on_stdout = output == "-" or (output is None and form != EMBED and FORMS[form].is_text)
    # JSON has a line for each input; of other forms two would run into one another.
    if on_stdout and (len(names) == 1 or form == "json"):
        return dict.fromkeys(names)
    return {**places(names, "-" if on_stdout else output, partial(_suffix, form=form), form)}


def _suffix(name: str, form: str) -> str:
    if form == EMBED:
        return os.path.splitext(name.partition("?")[0])[1] or ".mp4"
    return FORMS[form].suffix


def _chosen(
    form: str, known: Sequence[str], tracks: list[int] | None, samples: bool
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if tracks and "track" in known:
        if len(tracks) > 1:
            raise typer.BadParameter(f"{form} takes one --track")
        given["track"] = tracks[0]
    elif tracks:
        given["tracks"] = tracks
    if samples:
        given |= {"samples": True} if "samples" in known else {"of": "samples"}
    return given


def _index(name: str, job: _Job) -> tuple[tuple[bytes | None, str], Sequence[str]]:
    from fragdex.formats import export

    opening, exporting = dict(job.opening), job.exporting
    # Stale base offsets, which a copy repairs, are found in the moofs alone.
    needs_samples = job.form == EMBED or FORMS[job.form].needs_samples
    media = saved_form(name) is None and name != STDIN and not is_url(name)
    pictures = exporting.get("playlist") in ("iframes", "all")
    playable = job.form != EMBED and "uri" in FORMS[job.form].options
    if needs_samples or {"of", "samples"} & exporting.keys() or pictures or (playable and media):
        # the sample-exact way at once, and not a sidx first
        opening["exact"] = True
    index = open_any(name, **opening)
    if opening["exact"] and saved_form(name) and not all(t.has_samples for t in index.tracks):
        # the saved index has no samples: the file that it describes has
        index = open_any(media_of(index, name), **opening)
    target = job.targets[name]
    if job.form == EMBED:
        return _embed(name, index, job), notes(index)
    if job.form == "fidx" and target is not None:
        validate_folder(target)
        index.save(target, samples=exporting.get("samples", False))
        return (None, _line(target, index)), notes(index)
    lines = notes(index)
    if playable:
        exporting = {**addresses(name, index, target, job.opening["init"]), **exporting}
        lines = [*lines, *playback_notes(index)]
    if job.form == "hls" and exporting.get("playlist") in ("master", "all"):
        written = playlists(name, index, target, exporting)
        for place, data in written[1:]:
            emit([data], place)
        data = written[0][1]
    else:
        with _media(name, index, job.form) as more:
            data = export(index, job.form, **exporting, **more)
    if target is not None:
        emit([data], target)
        return (None, _line(target, index)), lines
    if FORMS[job.form].is_text and not data.endswith(b"\n"):
        data += b"\n"
    return (data, ""), lines


@contextmanager
def _media(name: str, index: Any, form: str) -> Iterator[dict[str, Any]]:
    """The file itself for those forms that look into it, where it is available."""
    from fragdex import open_source
    from fragdex.errors import SourceError

    if "source" not in FORMS[form].options or name == STDIN:
        yield {}
        return
    try:
        source = open_source(media_of(index, name))
    except SourceError:
        yield {}
        return
    with source:
        yield {"source": source}


def _embed(name: str, index: Any, job: _Job) -> tuple[bytes | None, str]:
    from fragdex.muxing.copies import embedded

    target = job.targets[name]
    with source_of(media_of(index, name), job.opening) as source:
        emit(bytes_of_view(embedded(index, source, **job.exporting), source), target or "-")
    return (b"", "") if target is None else (None, _line(target, index))


def _line(target: str | None, index: Any) -> str:
    """What was written and what it describes."""
    return f"{target}: {repr(index).partition(chr(10))[0]}"


SUFFIX = ".m3u8"


def addresses(name: str, index: Any, target: str | None, init: str | None) -> dict[str, str]:
    """How a playlist that is written to `target` names the media file and its init segment.

    Paths are seen from the folder of the playlist; on stdout the last part of the path alone.
    """
    uris = {}
    media = index.file.name if saved_form(name) else name
    if target is not None and media and media != STDIN and not is_url(media):
        uris["uri"] = _seen_from(target, media)
    if init is not None:
        local = _escaped(os.path.basename(init), "")
        seen = _seen_from(target, init) if target is not None else local
        uris["init_uri"] = init if is_url(init) else seen
    return uris


def _seen_from(target: str, path: str) -> str:
    folder = os.path.dirname(os.path.realpath(target))
    try:
        relative = os.path.relpath(os.path.realpath(path), folder)
    except ValueError:  # on another drive
        return _escaped(os.path.basename(path), "")
    return _escaped(relative.replace(os.sep, "/"), "/")


def _escaped(path: str, safe: str) -> str:
    from fragdex.packaging.m3u8 import bytes_of_name

    return quote(bytes_of_name(path), safe=safe)


def playlists(
    name: str, index: Any, target: str | None, exporting: Mapping[str, Any]
) -> list[tuple[str | None, bytes]]:
    """The master playlist and, where all are requested, those that it names: (place, text)."""
    from fragdex.formats import export
    from fragdex.packaging import hls

    common = {key: exporting[key] for key in ("track", "segment_duration") if key in exporting}
    track = exporting.get("track")
    base = stem(name) if target is None else os.path.splitext(target)[0]
    has_iframes = hls.has_iframes(index, track)
    places = {"media": f"{base}-media{SUFFIX}"}
    if has_iframes:
        places["iframes"] = f"{base}-iframes{SUFFIX}"
    uris = {f"{kind}_uri": _escaped(os.path.basename(place), "") for kind, place in places.items()}
    written: list[tuple[str | None, bytes]] = [
        (target, export(index, "hls", playlist="master", **common, **uris))
    ]
    if exporting["playlist"] == "all":
        named = {key: exporting[key] for key in ("uri", "init_uri") if key in exporting}
        for kind, place in places.items():
            written.append((place, export(index, "hls", playlist=kind, **common, **named)))
    return written


def playback_notes(index: Any) -> list[str]:
    """What keeps players from playing it, except the findings of every index."""
    from fragdex.packaging.hls import playback_findings

    known = {finding.code for finding in index.findings}
    return [str(finding) for finding in playback_findings(index) if finding.code not in known]


def index_set(names: Sequence[str], output: str, jobs: int) -> int:
    """Write a set; the exit code is 2 where a video is broken."""
    from multiprocessing import get_context

    from fragdex.data import write_set
    from fragdex.data.film_listing import listed

    validate_folder(output)
    # Indexing local files is computing: processes. Remote videos are waited for: threads.
    local = jobs > 1 and not any(map(is_url, names))
    with counting("index", sum(1 for _ in listed(names)) if local else 0) as advance:

        def each(name: str, error: str | None) -> None:
            advance()
            if error is not None:
                complain(error if name in error else f"{name}: {error}")

        if local:
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
                summary = write_set(names, output, jobs=jobs, executor=pool, each=each)
        else:
            summary = write_set(names, output, jobs=jobs, each=each)
    counts = [f"{summary.films} videos", f"{summary.indexed} indexed"]
    for count, word in (
        (summary.unchanged, "unchanged"),
        (summary.gone, "gone"),
        (len(summary.broken), "broken"),
    ):
        if count:
            counts.append(f"{count} {word}")
    say(f"{output}: {', '.join(counts)}\n")
    return 2 if summary.broken else 0
