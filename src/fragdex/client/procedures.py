"""What takes several requests: pushing a file, having a page rendered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fragdex.client import api
from fragdex.client.direct import DIRECT_BYTES, DirectUpload
from fragdex.client.errors import ClientError, InvalidRequest, TooLarge
from fragdex.client.exchange import Await, Procedure, Retries, exchange
from fragdex.client.sites import packed
from fragdex.client.uploads import CHUNK, Progress, Upload, background
from fragdex.sources import md5 as md5_of

__all__ = ["push", "render", "type_of"]

IMAGES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp", ".svg"})
CAPTIONS: Final = frozenset({".vtt", ".srt", ".json"})


def type_of(filename: str) -> str:
    """The type of a file by its suffix: what is no image and no captions is media.

    >>> type_of("a.PNG"), type_of("a.srt"), type_of("a.mkv")
    ('image', 'caption', 'video')
    """
    suffix = Path(filename).suffix.lower()
    return "image" if suffix in IMAGES else "caption" if suffix in CAPTIONS else "video"


def push(
    path: str | os.PathLike[str],
    *,
    filename: str | None,
    type: str | None,
    expires_at: Any,
    hash_first: bool,
    chunk: int,
    progress: Progress | None,
    retries: Retries,
) -> Procedure[api.AnyFile]:
    """Send a file; gives its record once all bytes are there."""
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
    found = (record.md5 or "").replace("-", "")
    if md5 is not None and found and found != md5:
        raise InvalidRequest(
            422, {"detail": f"the service has other bytes of {name}: md5 {found}, not {md5}"}
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
