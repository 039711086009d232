"""`fragdex pull`: bytes from a service into files."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fragdex.cli import options, remote
from fragdex.cli.inputs import Work
from fragdex.cli.output import emit, json_line
from fragdex.cli.report import byte_progress
from fragdex.cli.status import record_of
from fragdex.errors import FragdexError

__all__ = ["pull"]

_CAPTIONS: Final = (".vtt", ".srt", ".json")
_SUFFIXES: Final = {"image/jpeg": ".jpeg", "audio/mp4": ".m4a", "video/quicktime": ".mov"}


def pull(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Of files, renders or transcriptions."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="The file, or a folder for its files.",
            show_default="this folder, by name",
        ),
    ] = None,
    track: options.Tracks = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there already.")
    ] = False,
    server: remote.Server = None,
    key: remote.Key = None,
    json: options.Json = False,
) -> int:
    """Receive files, films of renders and captions from a service.

    A video comes as one fragmented MP4, or with --track as a file for each track; a transcription
    as WebVTT, or what the suffix of -o says (.srt, .json). What breaks off is continued; a file
    appears when it is complete. A file that is there already stays, unless --overwrite is given.
    Needs httpx (pip install 'fragdex[client]').

    Examples:
      fragdex pull 0193f0a2-… -o film.mp4
      fragdex pull 0193f0a2-… 0193f0a3-… -o films/
    """
    folder = output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))
    if output is not None and not folder and len(ids) > 1:
        raise typer.BadParameter("several IDs need a folder: -o FOLDER/")
    if folder:
        os.makedirs(str(output), exist_ok=True)
    work = Work("pull")
    with remote.client_of(server, key) as client:
        receiving = partial(
            _receive,
            client=client,
            output=None if folder else output,
            folder=Path(str(output)) if folder else Path(),
            tracks=track,
            overwrite=overwrite,
        )

        def lines() -> Iterator[str]:
            for name, paths in work.each(receiving, ids, 1):
                for path in paths:
                    yield json_line({"id": name, "file": path}) if json else f"{path}\n"

        emit(lines(), None)
    return work.code


def _receive(
    id: str,
    client: Any,
    output: str | None,
    folder: Path,
    tracks: Sequence[int] | None,
    overwrite: bool,
) -> tuple[list[str], Sequence[str]]:
    kind, record = record_of(client, id)
    found = list(_parts(client, kind, record, output, tracks))
    if output is not None and len(found) > 1:
        listed = ", ".join(name for _, name in found)
        raise FragdexError(f"{id} has several files: {listed}", advice="name one by --track")
    paths = []
    for request, name in found:
        path = output if output is not None else str(folder / name)
        if not overwrite and os.path.lexists(path):
            raise FragdexError(
                f"{path} is there already", advice="--overwrite replaces it, -o names another file"
            )
        with byte_progress(path) as progress:
            client.download(request, path, progress=progress)
        paths.append(path)
    return paths, ()


def _parts(
    client: Any, kind: str, record: Any, output: str | None, tracks: Sequence[int] | None
) -> Iterator[tuple[Any, str]]:
    """Requests of bytes, with the names that their files get."""
    from fragdex.client import api

    if kind == "render":
        yield api.download_render_mp4(record.id), f"{record.id}{_suffix(record.media_type)}"
    elif kind == "transcription":
        suffix = Path(output or "").suffix.lower()
        suffix = suffix if suffix in _CAPTIONS else ".vtt"
        download = getattr(api, f"download_transcription_{suffix[1:]}")
        yield download(record.id), f"{record.id}{suffix}"
    elif record.type == "image":
        yield api.download_image_file(record.id), _own_name(record)
    elif record.type == "caption":
        yield api.download_caption_file(record.id), _own_name(record)
    else:
        stem = Path(_own_name(record)).stem or record.id
        wanted = [
            one
            for one in record.tracks
            if one.byte_size is not None and (tracks is None or one.track_id in tracks)
        ]
        if not wanted:
            raise FragdexError(f"{record.id} has no such track, or none yet: it is {record.status}")
        if tracks is None:
            yield api.get_file_fragmented(record.id), f"{stem}.mp4"
            return
        for one in wanted:
            request = api.download_file_track(record.id, one.track_id)
            yield request, f"{stem}-{one.track_id if one.track_id > 0 else 'scrub'}.mp4"


def _own_name(record: Any) -> str:
    """The name of a file in a folder, whatever the service says that it is called."""
    last = re.split(r"[/\\]", record.filename)[-1]
    name = re.sub(r"[\x00-\x1f\x7f-\x9f]", "_", last).lstrip(".")
    return name or str(record.id)


def _suffix(media_type: str) -> str:
    return _SUFFIXES.get(media_type) or mimetypes.guess_extension(media_type) or ".bin"
