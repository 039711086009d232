"""`fragdex.index`: a source in, an index out, by the cheapest way that can be trusted."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Unpack

from fragdex.byterange import ByteRange
from fragdex.errors import NotISOBMFF, TruncatedInput
from fragdex.fragments.findings import Finding
from fragdex.fragments.track_info import Movie
from fragdex.indexing.assemble import assemble
from fragdex.indexing.embedded_index import by_mfra, by_sidx
from fragdex.indexing.periods import Moov
from fragdex.indexing.reading import Head, read_all, read_on
from fragdex.indexing.scan import MDAT, MEDIA_TYPES, META, MOOF, MOOV, Captured, Scan
from fragdex.indexing.simple_files import (
    first_fragments,
    index_of_simple,
    read_simple_file,
    remember_headers,
)
from fragdex.seeking.model import FileInfo, How, Index
from fragdex.sources import Source, SourceLike, SourceOptions, check_options, open_source

if TYPE_CHECKING:
    from fragdex.digest import Digest

__all__ = ["finished", "index", "index_source", "read_init"]


def index(
    what: SourceLike,
    *,
    exact: bool = False,
    strict: bool = False,
    partial: bool = False,
    md5: bool = False,
    digests: bool = False,
    init: SourceLike | Index | None = None,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    **options: Unpack[SourceOptions],
) -> Index:
    """Index a file.

    Args:
        what: path, bytes, seekable binary file, http(s):// or object-store URL, or an open
            `Source`.
        exact: index every sample, even where a sidx or mfra would need fewer reads.
        strict: use the positions of the standard's rule even where they are outside the media
            data, and raise at the first damage instead of adding a finding.
        partial: keep fragments whose media data is incomplete.
        md5: hash the whole file as well.
        digests: hash each piece of the file as well, in the same pass as `md5`: `index.digests`
            tells which fragment is damaged, and `index.checked` reads what is not.
        init: the initialization segment of a segment without moov, in any form `what` takes, or
            an index that was made with it.
        max_bytes, max_requests: budget of the reads; a read that would exceed it raises
            BudgetExceeded.
        options: passed on to `open_source`: retries, timeout, connections, headers, client,
            store.

    Returns: a `Index`. `index.how` says how it was made: `boxes`, `sidx`, `mfra`,
    `stbl` or `stbl+boxes`.

    Raises:
        NotISOBMFF: nothing in it is an ISO base media file.
        TruncatedInput: it ends before anything could be indexed.
        MalformedBox: its structure contradicts itself, so that nothing can be indexed.
        SourceError: it could not be read, or is not a source.
        TypeError: there is no such option.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> fragdex.index(movie(fragments=3)).how.method
    'boxes'
    """
    check_options(
        "fragdex.index", options, ("exact", "strict", "partial", "md5", "digests", "init")
    )
    source = open_source(what, max_bytes=max_bytes, max_requests=max_requests, **options)
    opened_here = source is not what
    try:
        known = read_init(init) if init is not None else None
        with _hashing(source) if md5 and not digests else nullcontext() as hashed:
            made_index = index_source(source, known, exact=exact, strict=strict, partial=partial)
            if hashed is not None:
                made_index.file = replace(made_index.file, md5=hashed())
        if digests:
            _add_digests(made_index, source, md5=md5)
        return made_index
    finally:
        if opened_here:
            source.close()


def _hashing(source: Source) -> AbstractContextManager[Callable[[], Digest] | None]:
    from fragdex.sources import md5_beside

    return md5_beside(source)


def _add_digests(index: Index, source: Source, *, md5: bool) -> None:
    """Where pieces end is known when the index is made: both digests are made after it."""
    from fragdex.digest import Md5
    from fragdex.indexing.piece_digests import digest_pieces, edges_of

    size = source.size if source.size is not None else index.file.size or 0
    running = Md5() if md5 else None
    index.digests = digest_pieces(source, edges_of(index, size), running)
    if running is not None:
        index.file = replace(index.file, md5=running.digest())


def index_source(
    source: Source,
    init: Moov | None = None,
    *,
    exact: bool = False,
    strict: bool = False,
    partial: bool = False,
    head: Head | None = None,
    parts_clocks: bool = True,
) -> Index:
    """`index` of an open source.

    Args:
        head: remembers what is read of the start, and the first moov.
        parts_clocks: whether a period begins where the clock of all tracks begins again.
    """
    head = Head() if head is None else head
    way = init, exact, strict, partial, head, parts_clocks
    keep_freed()
    simple = read_simple_file(source) if init is None else None
    if simple is None:
        return _index_of_boxes(source, *way)
    made = index_of_simple(simple, source)
    if made is None and (stop := first_fragments(simple)):
        # what the headers say, a few fragments tell as well as all: that takes less memory
        index_source(open_source(source.read(ByteRange(0, stop))), exact=True)
        made = index_of_simple(simple, source)
    if made is None:
        by_boxes = _index_of_boxes(source, *way)
        remember_headers(simple, by_boxes)
        # The answer is the same from the first time on, also in what it says of its cost.
        made = index_of_simple(simple, source)
        if made is None:
            return by_boxes
    head.is_simple = True
    head.pieces = [(simple.moov_at, simple.moov)]
    return made


def _index_of_boxes(
    source: Source,
    init: Moov | None,
    exact: bool,
    strict: bool,
    partial: bool,
    head: Head,
    parts_clocks: bool,
) -> Index:
    """The general way, for all files."""
    defaults = None
    if init is not None:
        defaults = {t.id: t.defaults for t in init[1].tracks if t.defaults is not None}
    scan = Scan(defaults=defaults)
    scan.parts_clocks = parts_clocks
    is_quick = not exact and not strict
    if is_quick or source.remote:
        head.read(source, scan)
    if is_quick:
        embedded = by_sidx(source, scan, head, init) or by_mfra(source, scan, head, init)
        if embedded is not None:
            return embedded
    read_on(source, scan)
    head.moov = scan.moov
    return finished(scan, source, init=init, strict=strict, partial=partial, known=head.doubts)


def finished(
    scan: Scan,
    source: Source | None,
    *,
    size: int | None = None,
    info: FileInfo | None = None,
    init: Moov | None = None,
    strict: bool = False,
    partial: bool = False,
    going_on: bool = False,
    known: tuple[Finding, ...] = (),
) -> Index:
    """The index of a scan that has seen everything.

    Raises:
        NotISOBMFF, TruncatedInput, MalformedBox: nothing could be indexed.
    """
    end = size if size is not None else (source.size if source is not None else None) or 0
    scan.refuse_the_large(end)
    scan.close_last(end)
    if not going_on:
        try:
            _refuse_the_hopeless(scan, end)
        except NotISOBMFF as error:
            if source is not None and source.read_up_to(ByteRange(0, 4)) == SAVED:
                raise NotISOBMFF(
                    "this is a saved index, not media", advice="open it with fragdex.open_index"
                ) from error
            begin = film_in_jpeg(source) if source is not None else None
            if begin is None:
                raise
            raise NotISOBMFF(
                "this is a JPEG picture followed by a complete MP4",
                offset=begin,
                advice=f"index the bytes from {begin:,} on",
            ) from error
    assembled = assemble(scan, end, init=init, strict=strict, partial=partial, known=known)
    virtual = any(
        len(t.fragments) and t.fragments.flags[0] & 1 for p in assembled.periods for t in p.tracks
    )
    moofs = scan.moof_count
    method = "boxes" if not virtual else ("stbl+boxes" if moofs else "stbl")
    reasons = {
        "boxes": "every fragment was read",
        "stbl": "a progressive file: the moov names every sample",
        "stbl+boxes": "samples in the moov, and fragments after it",
    }
    how = How(
        method,
        True,
        reasons[method],
        source.requests if source is not None else 0,
        source.bytes_read if source is not None else 0,
        max(0, source.bytes_read - scan.carried - scan.box_bytes) if source is not None else 0,
    )
    if info is None:
        info = (
            FileInfo(source.name, end, None, source.etag, source.mtime_ns)
            if source
            else FileInfo("", end)
        )
    return Index(
        info,
        how,
        assembled.periods,
        findings=assembled.findings,
        complete=assembled.complete,
        resume_offset=assembled.resume_offset,
    )


def _refuse_the_hopeless(scan: Scan, size: int) -> None:
    """Where there is neither moov nor moof, say what the file has instead."""
    kinds = {kind for top in scan.tops()[:64] for kind in top["type"][:64].tolist()}
    if MOOF in kinds or scan.movies or scan.moof_count:
        return
    if not kinds & MEDIA_TYPES and (scan.to_end is None or scan.to_end[1] not in MEDIA_TYPES):
        waiting = scan.waiting_for
        if size and waiting in MEDIA_TYPES:
            raise TruncatedInput(
                "the file ends inside its first box",
                path=waiting.to_bytes(4, "big").decode("latin-1"),
                offset=scan.position,
                expected=f"{scan.need.stop - scan.position if scan.need else 8} bytes",
                found=size - scan.position,
            )
        raise NotISOBMFF(
            "this is not an ISO base media file" if size else "the input is empty",
            offset=0,
            expected="a box such as ftyp, styp, moov or moof",
            found="nothing" if not size else "something else",
        )
    if scan.stopped is not None:
        raise scan.stopped
    need = scan.need
    if scan.cut_off or (need is not None and (scan.carried or scan.position > size)):
        raise TruncatedInput(
            "the file ends before any moov or moof is complete",
            offset=scan.position,
            expected=f"at least {need.stop} bytes" if need is not None else "the rest of a box",
            found=size,
            advice=(
                "the recording stopped before its moov was written, or the file was not copied "
                "completely; fragdex repair finds the samples without it"
                if MDAT in kinds
                else None
            ),
        )
    # A file of items (a still picture) has its media data described by a meta.
    if META not in kinds and (MDAT in kinds or (scan.to_end or (0, 0))[1] == MDAT):
        raise TruncatedInput(
            "there is media data, but no moov that describes it",
            offset=size,
            expected="a moov after the media data",
            found="the end of the file",
            advice="the recording stopped before its index was written; fragdex repair finds the "
            "samples without it",
        )


def read_init(what: SourceLike | Index) -> Moov:
    """The moov of an initialization segment, or what an index knows of it.

    Raises:
        NotISOBMFF: it has no moov.
    """
    if isinstance(what, Index):
        movie = what.periods[0].movie if what.periods else Movie(0, 0, True, ())
        return Captured(0, int(MOOV), b""), movie
    with open_source(what) as source:
        scan = Scan()
        read_all(source, scan)
        if not scan.movies:
            raise NotISOBMFF(
                "the initialization segment has no moov", expected="moov", found="none"
            )
        return scan.movies[0]


SAVED = b"\x89FDX"
"""What a saved index begins with (docs/index-format.md)."""
LARGEST_BLOCK = (32 << 20) - (1 << 13)
"""Bytes of a block just below the size from which glibc learns nothing any more."""


@cache
def keep_freed() -> None:
    """Let the C library keep freed memory for the next column; once in a process is enough.

    glibc's malloc gives what is freed back to the system at once, until it has seen a large block
    come and go (mallopt(3), M_MMAP_THRESHOLD). Columns of a megabyte then cost a page fault every
    4 KiB, again and again: up to two thirds of the time of an index. One large block is requested
    and freed; none of it is touched. Elsewhere than with glibc nothing changes.
    """
    bytes(LARGEST_BLOCK)


JPEG = b"\xff\xd8\xff"
"""What a JPEG begins with: start of image, and the next marker."""
MOST_JPEG_BYTES = 1 << 26
"""Bytes in which the video is looked for; pictures have a tenth of that."""
JPEG_PIECE = 1 << 20
FTYP_PATTERN = re.compile(rb"\0\0[\0-\x01]([\x10-\xff])ftyp[ -~]{4}")
"""The beginning of an MP4: a short ftyp, and a brand that can be read."""


def film_in_jpeg(source: Source) -> int | None:
    """Where the MP4 after a JPEG begins; None where the file is not a JPEG, or has none."""
    if source.read_up_to(ByteRange(0, len(JPEG))) != JPEG:
        return None
    at, buffer = 0, b""
    while at < MOST_JPEG_BYTES and (piece := source.read_up_to(ByteRange(at, at + JPEG_PIECE))):
        buffer = buffer[-16:] + piece
        match = FTYP_PATTERN.search(buffer)
        if match is not None:
            return at + len(piece) - len(buffer) + match.start()
        at += len(piece)
    return None
