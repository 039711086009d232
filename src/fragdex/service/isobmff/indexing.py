"""An index that comes in: held against its rules, and against the sizes that are known.

It is read as it arrives, and written down only when all of it holds. The objects have new names, so
that the index before it answers until the very moment at which the new one stands in the record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex import Index
from fragdex.errors import FormatError, IndexMismatch, Unavailable, Unprocessable
from fragdex.formats import fidx, wire
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.operations import FILES, FileRecord
from fragdex.service.outbox import emit
from fragdex.service.records import trash
from fragdex.service.records.identifiers import instant, md5_text, new_id
from fragdex.service.records.tables import isobmff_files, isobmff_tracks

IN_MEMORY = 4 << 20
"""Bytes of JSON that are kept in memory while they are read; more go into a temporary file."""

Sizes = int | Mapping[int, int] | None


@record(frozen=True, slots=True)
class StoredIndex:
    """An index whose objects are written, and which no record names yet.

    Attributes:
        key: of its `.fidx`.
        json_key: of the JSON it was sent as, or None.
        tracks: ids of its tracks.
    """

    key: str
    json_key: str | None
    tracks: tuple[int, ...]


def receive_index(
    context: ServiceContext, tenant_id: str, file_id: str, pieces: Iterator[bytes]
) -> FileRecord:
    """Take the index of a file as JSON or as our binary form; the one before it is replaced.

    Raises:
        RecordNotFound: this tenant has no such file.
        Unprocessable: it breaks a rule of its form, or refers to missing bytes; `pointer`
            names the place. The index before it stays.
        IndexMismatch: it is the index of another file.
    """
    with context.database.read() as connection:
        file = FILES.row(connection, tenant_id, file_id)
        sizes = _sizes(connection, file_id, file.byte_size)
    first = b""
    for piece in pieces:
        first += piece
        if len(first) >= len(fidx.MAGIC):
            break
    pieces = chain([first], pieces)
    try:
        if first.startswith(fidx.MAGIC):
            stored = _binary(context, tenant_id, b"".join(pieces), sizes, bytes(file.md5))
        else:
            stored = _json(context, tenant_id, pieces, sizes)
    except FormatError as error:
        raise Unprocessable(
            error.message,
            pointer=error.path or "",
            offset=error.offset,
            expected=error.expected,
            found=error.found,
        ) from error
    with context.database.write() as connection:
        set_index(context, connection, tenant_id, file_id, stored)
    return FILES.get(context, tenant_id, file_id)


def store_index(
    context: ServiceContext, tenant_id: str, index: Index, *, samples: bool = False
) -> StoredIndex:
    """Write an index that was made here; `set_index` makes it that of a file."""
    return _store(context, tenant_id, _ids(index), fidx.pieces(index, samples=samples))


def store_saved(
    context: ServiceContext, tenant_id: str, path: Path, tracks: tuple[int, ...]
) -> StoredIndex:
    """The same of an index that was saved to a file, of tracks of these ids."""
    with path.open("rb") as file:
        return _store(context, tenant_id, tracks, _read(file))


def set_index(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    file_id: str,
    stored: StoredIndex,
) -> None:
    """Make a stored index that of a file. What stood before of the same tracks is let go.

    Raises:
        RecordNotFound: the file was deleted meanwhile.
        Unavailable: the objects were not kept in time.
    """
    file = FILES.row(connection, tenant_id, file_id, lock=True)
    keys = [key for key in (stored.key, stored.json_key) if key is not None]
    if not trash.claim(connection, *keys):
        raise Unavailable("the index was not kept in time; send it again", retry_after=1)
    trash.discard(connection, file.index_key, file.index_json_key)
    connection.execute(
        isobmff_files.update()
        .where(isobmff_files.c.id == file_id)
        .values(index_key=stored.key, index_json_key=stored.json_key, index_completed_at=instant())
    )
    track = isobmff_tracks.c
    of_tracks = (track.file_id == file_id) & track.track_id.in_(stored.tracks)
    before = connection.scalars(sa.select(track.index_key).where(of_tracks)).all()
    trash.discard(connection, *before)
    connection.execute(isobmff_tracks.update().where(of_tracks).values(index_key=None))
    data = {"id": file_id, "type": "video", "md5": md5_text(file.md5), "isobmff_file_id": file_id}
    emit(context, connection, tenant_id, "file.ready", data)


def _sizes(connection: Connection, file_id: str, byte_size: int | None) -> Sizes:
    """What is known of where the offsets of an index may lie."""
    track = isobmff_tracks.c
    query = sa.select(track.track_id, track.byte_size).where(
        track.file_id == file_id, track.byte_size.is_not(None)
    )
    apart = {row.track_id: row.byte_size for row in connection.execute(query)}
    return apart or byte_size


def _json(
    context: ServiceContext, tenant_id: str, pieces: Iterable[bytes], sizes: Sizes
) -> StoredIndex:
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as sent:

        def kept() -> Iterator[bytes]:
            for piece in pieces:
                sent.write(piece)
                yield piece

        index = wire.read_pieces(kept(), size=sizes)
        fidx.verify(index)
        _need_tracks(index)
        sent.seek(0)
        return _store(context, tenant_id, _ids(index), fidx.pieces(index), _read(sent))


def _binary(
    context: ServiceContext, tenant_id: str, sent: bytes, sizes: Sizes, md5: bytes
) -> StoredIndex:
    # In a thread: sums over columns, at most `max_index_bytes` of them. 64 MiB of 680,000 fragments
    # took 65 ms; opening it again, whoever made it, 2 ms.
    fidx.verify(sent)
    index = fidx.read(sent)
    _need_tracks(index)
    digest = index.file.md5
    if digest is not None and digest != md5.hex() and not isinstance(sizes, Mapping):
        raise IndexMismatch(
            "this is the index of another file", expected=md5_text(md5), found=digest
        )
    _inside(index, sizes)
    return _store(context, tenant_id, _ids(index), [sent])


def _need_tracks(index: Index) -> None:
    if not index.tracks:
        raise Unprocessable("the index has no track", pointer="")


def _inside(index: Index, sizes: Sizes) -> None:
    for number, track in enumerate(index.tracks):
        size = sizes.get(track.id) if isinstance(sizes, Mapping) else sizes
        if size is None:
            continue
        init = index.periods[track.period].init
        table = track.fragments
        filled = table.sample_count != 0
        ends = (table.offset + table.size)[filled]
        last = max(int(ends.max()) if len(ends) else 0, *(part.stop for part in init), 0)
        if last > size:
            raise Unprocessable(
                f"track {track.id} has bytes after the end of its file",
                pointer=f"/tracks/{number}",
                expected=f"bytes before {size}",
                found=last,
            )


def _ids(index: Index) -> tuple[int, ...]:
    return tuple(track.id for track in index.tracks)


def _store(
    context: ServiceContext,
    tenant_id: str,
    tracks: tuple[int, ...],
    pieces: Iterable[bytes | memoryview],
    sent: Iterable[bytes] | None = None,
) -> StoredIndex:
    name = f"indexes/{tenant_id}/{new_id()}"
    key, json_key = f"{name}.fidx", None if sent is None else f"{name}.json"
    keys = [key] if json_key is None else [key, json_key]
    with context.database.write() as connection:
        trash.expect(connection, *keys)
    context.store.write(key, map(bytes, pieces))
    if json_key is not None and sent is not None:
        context.store.write(json_key, sent)
    return StoredIndex(key, json_key, tracks)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(1 << 20):
        yield piece
