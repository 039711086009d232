"""Pieces of drafts that clients put into the object store themselves, by URLs that are signed.

A piece that a client put is one as `ObjectDraft` writes them: an object named by its first byte.
So all that is known of drafts (taking them over, hashing, composing, sweeping) holds for it. What a
client puts is not trusted: its size and its bytes are looked at when the upload is completed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import obstore
from obstore.store import AzureStore, GCSStore, S3Store

from fragdex.service.store.contract import checked
from fragdex.service.store.object_requests import listing, object_errors, remove

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

__all__ = ["SignedParts"]


class SignedParts:
    """Pieces of the drafts in `bucket`, an obstore store."""

    def __init__(self, bucket: S3Store | GCSStore | AzureStore) -> None:
        self._bucket = bucket

    @classmethod
    def of(cls, bucket: Bucket) -> SignedParts | None:
        """Those of a bucket; None where it signs no URLs."""
        known = isinstance(bucket, (S3Store, GCSStore, AzureStore))
        return cls(cast("S3Store", bucket)) if known else None

    def urls(self, draft: str, starts: Sequence[int], seconds: float) -> list[str]:
        """URLs to PUT the pieces that begin at these bytes, valid so long.

        Raises:
            Unavailable: there are no credentials that sign.
        """
        if not starts:
            return []
        places = [f"drafts/{checked(draft)}/{start:020d}" for start in starts]
        with object_errors():
            return [*obstore.sign(self._bucket, "PUT", places, timedelta(seconds=seconds))]

    def pieces(self, draft: str) -> list[tuple[int, int]]:
        """(first byte, size) of all pieces that are here, in order, gaps or not."""
        found = listing(self._bucket, f"drafts/{checked(draft)}/")
        return [(int(place.rpartition("/")[2]), size) for place, size in found]

    def drop(self, draft: str, starts: Sequence[int]) -> None:
        """Delete the pieces that begin at these bytes."""
        remove(self._bucket, *(f"drafts/{checked(draft)}/{start:020d}" for start in starts))
