"""`fragdex.verify`: an index held against its media."""

from __future__ import annotations

from typing import Unpack

from fragdex.formats import fidx
from fragdex.formats.media_or_index import MediaOrIndex
from fragdex.fragments.findings import Finding
from fragdex.indexing.making import index as index_media
from fragdex.seeking.difference import differences
from fragdex.seeking.model import Index
from fragdex.sources import SourceLike, SourceOptions, check_options, md5, open_source

__all__ = ["verify"]


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
