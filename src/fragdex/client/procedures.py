"""What takes several requests: pushing a file, rendering a page with its files, pulling."""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias
from urllib.parse import unquote

from fragdex.client import api
from fragdex.client.errors import ClientError, InvalidRequest, NotFound, TooLarge
from fragdex.client.exchange import Await, Procedure, Request, Retries, exchange
from fragdex.client.transfers import (
    CHUNK,
    DIRECT_BYTES,
    DirectUpload,
    Progress,
    Upload,
    background,
    download,
)
from fragdex.sources import md5 as md5_of

IMAGES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp", ".svg"})
CAPTIONS: Final = frozenset({".vtt", ".srt", ".json"})


Job: TypeAlias = api.AnyFile | api.RenderRecord | api.TranscriptionRecord | api.RepairRecord
"""What the service works on until it is ready, complete or failed."""


def record_of(job: Job | str, retries: Retries) -> Procedure[Job]:
    """The record of a file, render, transcription or repair by its id; a record stays as it is.

    An id is a UUIDv7, which says when it was made and not of what, and no address of the service
    answers for records of every kind: so each kind is asked, files first, until one knows it. A
    record in place of its id costs no request.

    Raises:
        NotFound: the tenant has none of this id.
    """
    if not isinstance(job, str):
        return job
    with suppress(NotFound):
        return (yield from exchange(api.get_file(job), retries))
    with suppress(NotFound):
        return (yield from exchange(api.get_render(job), retries))
    with suppress(NotFound):
        return (yield from exchange(api.get_transcription(job), retries))
    return (yield from exchange(api.get_repair(job), retries))


def is_done(job: Job) -> bool:
    """Whether the service has made of it all that it will.

    A failed one is not: its events say why.
    """
    return job.status in ("ready", "complete")


def progress_of(job: Job) -> Request[api.Event]:
    """The request of its events."""
    if isinstance(job, api.AnyFile):
        return api.get_file_progress(job.id)
    if isinstance(job, api.RenderRecord):
        return api.get_render_progress(job.id)
    if isinstance(job, api.RepairRecord):
        return api.get_repair_progress(job.id)
    return api.get_transcription_progress(job.id)


def bytes_of(job: Job, to: Any) -> Request[bytes]:
    """The request of its bytes.

    Args:
        to: where they go; of a path, the suffix chooses the form of captions.
    """
    if isinstance(job, api.RenderRecord):
        return api.download_render(job.id, "mp4")  # whichever suffix: the result is one
    if isinstance(job, api.TranscriptionRecord):
        suffix = Path(to).suffix.lower() if isinstance(to, str | os.PathLike) else ""
        suffix = suffix if suffix in CAPTIONS else ".vtt"
        request: Request[bytes] = getattr(api, f"download_transcription_{suffix[1:]}")(job.id)
        return request
    if isinstance(job, api.RepairRecord):
        return api.get_file_fragmented(job.repaired_file_id or job.id)
    if job.type == "image":
        return api.download_image_file(job.id)
    if job.type == "caption":
        return api.download_caption_file(job.id)
    return api.get_file_fragmented(job.id)


def pull(job: Job | str, to: Any, progress: Progress | None, retries: Retries) -> Procedure[int]:
    """Receive the bytes of a record into a file, as `Client.pull` explains."""
    record = yield from record_of(job, retries)
    return (yield from download(bytes_of(record, to), to, progress, retries))


def transcribe(
    file: api.AnyFile | str, fields: Mapping[str, Any], retries: Retries
) -> Procedure[api.TranscriptionRecord]:
    """Have a file transcribed; gives the record of the transcription."""
    id = file if isinstance(file, str) else file.id
    begun = yield from exchange(api.transcribe_file(id, **fields), retries)
    return (yield from exchange(api.get_transcription(begun.id), retries))


def repair(
    file: api.AnyFile | str, fields: Mapping[str, Any], retries: Retries
) -> Procedure[api.RepairRecord]:
    """Have a file repaired; gives the record of the repair."""
    id = file if isinstance(file, str) else file.id
    return (yield from exchange(api.repair_file(id, **fields), retries))


def type_of(filename: str) -> str:
    """The type of a file by its suffix: what is neither an image nor captions is media."""
    suffix = Path(filename).suffix.lower()
    return "image" if suffix in IMAGES else "caption" if suffix in CAPTIONS else "video"


def push(
    path: str | os.PathLike[str],
    *,
    filename: str | None = None,
    type: str | None = None,
    expires_at: datetime | None = None,
    hash_first: bool = True,
    chunk: int = CHUNK,
    progress: Progress | None = None,
    retries: Retries,
) -> Procedure[api.AnyFile]:
    """Send a file, as `Client.push` explains; gives its record once all bytes are there."""
    name = filename or Path(path).name
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        md5 = None
        if hash_first:
            with background() as submit:
                md5 = (yield Await(submit(md5_of, path))).dashed
        record = yield from exchange(
            api.create_file(
                filename=name,
                type=type or type_of(name),  # type: ignore[arg-type]
                byte_size=size,
                md5=md5,
                expires_at=expires_at,
            ),
            retries,
        )
        if record.status not in ("created", "uploading"):
            if progress is not None:
                progress(size, size)
            return record
        if record.next_byte == 0 and size >= DIRECT_BYTES:
            direct = DirectUpload(file, size, record.id, progress, hashed=not hash_first)
            sent = yield from direct.run(retries)
            if sent is not None:
                return _same(sent, direct.md5, name)
        upload = Upload(
            file,
            lambda data, where: api.upload_file(record.id, data, content_range=where),
            api.get_file_upload(record.id),
            chunk=chunk,
            progress=progress,
            hashed=not hash_first,
        )
        record = yield from upload.run(record.next_byte, retries)
    return _same(record, upload.md5, name)


def _same(record: api.AnyFile, md5: str | None, name: str) -> api.AnyFile:
    """The record, whose bytes are those that were hashed on their way, if they were."""
    stored = (record.md5 or "").replace("-", "")
    if md5 is not None and stored and stored != md5:
        raise InvalidRequest(
            422, {"detail": f"the service has other bytes of {name}: md5 {stored}, not {md5}"}
        )
    return record


def render(
    page: str | os.PathLike[str] | None,
    fields: Mapping[str, Any],
    *,
    progress: Progress | None,
    retries: Retries,
) -> Procedure[api.RenderRecord]:
    """Have a page rendered: HTML, or a site that is sent; gives its record."""
    if page is None:
        return (yield from exchange(api.create_render(**fields), retries))
    with packed(page) as file:
        record = yield from exchange(api.create_render(**fields), retries)
        upload = Upload(
            file,
            lambda data, where: api.upload_render(record.id, data, content_range=where),
            api.get_render_upload(record.id),
            chunk=CHUNK,
            progress=progress,
        )
        try:
            return (yield from upload.run(0, retries))
        except (InvalidRequest, TooLarge):
            # it would wait for its page for ever
            with suppress(ClientError):
                yield from exchange(api.delete_render(record.id), retries)
            raise


INDEX: Final = "index.html"
_PAGES: Final = frozenset({".html", ".htm", ".xhtml"})
_TEXTS: Final = _PAGES | {".css", ".js", ".mjs", ".svg", ".json", ".webmanifest", ".vtt"}
_MOST_TEXT: Final = 16 << 20
"""Bytes of a file that are searched for names: no person wrote more."""
_QUOTED: Final = re.compile(r"""["'`(]([^"'`()\n]{1,1024})["'`)]""")
# A name of a template (`img/${n}.png`) ends where it is not known any further.
_BARE: Final = re.compile(r"""[^\s"'`()<>=,;:${}|\\?#]{1,1024}""")


def packed(page: str | os.PathLike[str]) -> BinaryIO:
    """A site as .tar.gz, open at its start; what is packed already as it is.

    Args:
        page: a folder, an HTML file (with the files that it names, as `files_of` finds them), or
            an archive.

    Raises:
        OSError: it is not there.
    """
    path = Path(page)
    if path.is_dir():
        paths: Mapping[str, Path] = {
            one.relative_to(path).as_posix(): one for one in _visible(path, path)
        }
    elif path.suffix.lower() in _PAGES:
        paths = files_of(path)
    else:
        return path.open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 — the caller closes it
    with tarfile.open(fileobj=file, mode="w:gz", dereference=True) as archive:
        for name, one in sorted(paths.items()):
            archive.add(one, name, recursive=False)
    file.seek(0)
    return file


def files_of(page: str | os.PathLike[str]) -> dict[str, Path]:
    """An HTML file as index.html, with the files of its folder that it names: by their names.

    Names are looked for in pages, style sheets, scripts and what else is text, and in the files
    found, too. A folder that is named (`img/`) is taken whole. Nothing outside the page's folder
    is taken, and no name that begins with a dot.

    Raises:
        OSError: the page cannot be read.
    """
    path = Path(page)
    folder = path.parent.resolve()
    files = {INDEX: path}
    waiting = [path]
    seen = {path.resolve()}
    while waiting:
        text = waiting.pop()
        for one in _named(text, folder):
            if one in seen:
                continue
            seen.add(one)
            files.setdefault(one.relative_to(folder).as_posix(), one)
            if one.suffix.lower() in _TEXTS:
                waiting.append(one)
    return files


def _named(text: Path, folder: Path) -> Iterator[Path]:
    """The files below a folder that a text names."""
    with text.open("rb") as file:
        start = file.read(_MOST_TEXT).decode("utf-8", "replace")
    names = {one.partition("?")[0].partition("#")[0] for one in _QUOTED.findall(start)}
    names.update(_BARE.findall(start))
    for name in names:
        if "." not in name and not name.endswith("/"):
            continue
        for base in (text.parent, folder):
            try:
                one = (base / unquote(name).lstrip("/")).resolve()
                if one == folder or not one.is_relative_to(folder) or _hidden(one, folder):
                    continue
                if one.is_file():
                    yield one
                elif name.endswith("/") and one.is_dir():
                    yield from _visible(one, folder)
            except (OSError, ValueError):
                continue  # no name of a file


def _visible(inside: Path, folder: Path) -> Iterator[Path]:
    for one in inside.rglob("*"):
        if one.is_file() and not _hidden(one, folder):
            yield one


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
