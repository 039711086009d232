"""What a user names: media, an index of them, or a saved index; verify, and samples of a saved one.

A saved index without samples can what a fresh one can: they are read from the media again, which
were given or are where the index says, under the rule for names inside files (`name_in_file`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias, Unpack

import numpy as np

from fragdex.errors import FormatError, InexactIndex, SourceError
from fragdex.formats import fidx
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import SampleTable
from fragdex.indexing.making import index as index_media
from fragdex.indexing.making import index_source
from fragdex.indexing.samples import RowSamples
from fragdex.seeking.difference import differences
from fragdex.seeking.model import Index
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceLike, SourceOptions, check_options, md5, open_source

__all__ = [
    "MediaOrIndex",
    "index_and_media",
    "is_one",
    "is_saved_index",
    "known_and_media",
    "lasting",
    "verify",
]

MediaOrIndex: TypeAlias = SourceLike | Index
"""Media in any form that `fragdex.open_source` takes, a saved index likewise, or an `Index`."""

FEW_ROWS = 16
"""Fragments of which a remote file is asked one by one; for more, all are read at one go."""


def is_saved_index(what: SourceLike) -> bool:
    """Whether this is a saved index: bytes by how they begin, all else by its suffix."""
    if isinstance(what, (bytes, bytearray, memoryview)):
        return bytes(what[: len(fidx.MAGIC)]) == fidx.MAGIC
    return isinstance(what, (str, os.PathLike)) and os.fsdecode(what).lower().endswith(".fidx")


def is_one(what: MediaOrIndex | Iterable[MediaOrIndex]) -> bool:
    """Whether this is one file or index, and not several."""
    if isinstance(what, (Index, str, bytes, bytearray, memoryview)):
        return True
    return hasattr(what, "read") or not isinstance(what, Iterable)


def index_and_media(
    what: MediaOrIndex, source: SourceLike | None, function: str
) -> tuple[Index, SourceLike | None]:
    """The index of what a user named, and the media that it is of.

    Args:
        source: the media that an index describes; None: where the index says.

    Returns: the index, and the media in a form that can be opened; None: by the index's own name.

    Raises:
        TypeError: `source` is given in addition to media.
        FragdexError: what indexing and `open_index` raise.
    """
    if isinstance(what, Index) or is_saved_index(what):
        index = what if isinstance(what, Index) else fidx.open_index(what)
        if source is not None and not all(track.has_samples for track in index.tracks):
            index = index.with_media(source)
        return index, source
    if isinstance(what, (list, tuple)):
        raise ValueError(f"{function} is of one index: fragdex.join puts several one after another")
    if source is not None:
        raise TypeError(
            f"{function}: source= gives the media of an index, but the media themselves are given"
        )
    # what has a name is opened by it again; open files and bytes are kept
    return index_media(what, exact=True), None if isinstance(what, (str, os.PathLike)) else what


def known_and_media(what: MediaOrIndex, index: Index | None) -> tuple[Index | None, SourceLike]:
    """The index that is known, if any is, and the media; nothing is read but a saved index.

    Raises:
        TypeError: an index is given twice.
        SourceNotFound: an index that was made from what has no name says no media.
    """
    if not isinstance(what, Index) and not is_saved_index(what):
        return index, what
    if index is not None:
        raise TypeError("the first argument is the media where index= is given")
    known = what if isinstance(what, Index) else fidx.open_index(what)
    given = next((track.home.media for track in known.tracks if track.home is not None), None)
    return known, known.file.media(given, "give the media first, and the index with index=")


def lasting(what: MediaOrIndex, media: SourceLike | None) -> SourceLike | None:
    """What a view keeps of its media: what can be opened again, or the user named as the file.

    An open source that was given for the media of an index is closed by whoever gave it.
    """
    return None if isinstance(what, Index) and isinstance(media, Source) else media


def samples_again(track: Track, start: int, stop: int) -> SampleTable:
    """Samples of rows of the fragment table of a saved index, from its media.

    Raises:
        InexactIndex: the media are not at hand, or are others.
    """
    home = track.home
    place = None if home is None else home.place
    if home is None or place is None:
        raise _missing(track, "it does not say where its media are")
    try:
        opened = open_source(place)
        try:
            home.file.refuse_other(
                opened.name, size=opened.size, etag=opened.etag, identity=opened.identity
            )
            if opened.remote and stop - start > FEW_ROWS:
                whole = index_source(opened, exact=True, partial=True)
                fresh = whole.periods[track.period].track(track.id)
                known = track.fragments.offset
                if not np.array_equal(fresh.fragments.offset[: len(known)], known):
                    raise _missing(track, "the media have other fragments")
                return fresh.samples_of(start, stop)
            rows = RowSamples(track, opened, home.init, home.defaults)
            samples = rows.rows(start, stop)
        finally:
            if opened is not place:
                opened.close()
    except (SourceError, FormatError) as error:
        raise _missing(track, str(error)) from error
    table = track.fragments.rows(slice(start, stop))
    if len(samples) != int(table.sample_count.sum()):
        raise _missing(track, "the media have other samples")
    return samples


def _missing(track: Track, why: str) -> InexactIndex:
    return InexactIndex(
        f"the samples of track {track.id} are not in this index, and cannot be read from its "
        f"media: {why}",
        advice="give the media: open_index(…, media=…), or index.with_media(…); or save indexes "
        "with samples=True",
    )


def verify(
    media: SourceLike,
    index: MediaOrIndex | None = None,
    *,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    **options: Unpack[SourceOptions],
) -> tuple[Finding, ...]:
    """Check an index against its media; without one, the media against themselves.

    Args:
        media: path, bytes, file or URL; every box header is read.
        index: an `Index`, or a saved one; its checksums are tested, too. None: what is odd about
            the media is found.
        max_bytes, max_requests: budget of the reads.
        options: passed on to `open_source`.

    Returns: a finding for each difference; empty: they agree.

    Raises:
        DamagedIndex: the saved index is damaged.
        SourceError: the media cannot be read.
        TypeError: there is no such option.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> verify(movie(3), fragdex.index(movie(3)))
    ()
    >>> [finding.code for finding in verify(movie(3), fragdex.index(movie(2)))][:2]
    ['samples', 'size']
    """
    check_options("fragdex.verify", options, ())
    source = open_source(media, max_bytes=max_bytes, max_requests=max_requests, **options)
    try:
        true = index_media(source, exact=True)
        if index is None:
            return tuple(true.findings)
        if not isinstance(index, Index):
            fidx.verify(index)
            index = fidx.open_index(index)
        findings = differences(index, true)
        if index.file.md5 is not None:
            digest = md5(source).hex
            if digest != index.file.md5:
                message = f"the md5 of the media is {digest}, the index says {index.file.md5}"
                findings += (Finding("md5", message),)
        return findings
    finally:
        if source is not media:
            source.close()
