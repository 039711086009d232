"""A fragmented file of one track that players take as it is needs no work: it is its own track.

What players need of a track: one track a file, a codec that browsers play, fragments whose
addresses count from their own moof (default-base-is-moof), and each of them beginning with a
sample that needs nothing before it. The last is looked up in the pictures themselves where the
codec is AVC: muxers wrongly mark pictures sync.

A file with much structure is indexed, and looked into, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex import ByteRange, Index, Source, Track, index
from fragdex.boxes import Box, parse
from fragdex.errors import FragdexError, SourceUnavailable
from fragdex.fragments.table import FragmentFlags
from fragdex.indexing.access import Access, CannotTell, SampleBytes, access_of
from fragdex.indexing.codecs import Missing, aac_config, config, decoder_config
from fragdex.indexing.moov import plain_init
from fragdex.record import record
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX
from fragdex.service.indexing.isolated import run_isolated
from fragdex.service.unprocessed.inspection import usable
from fragdex.transcode.playable import codec_name, why_not_channels

MOST_FRAGMENTS: Final = 20_000
"""Above that, looking into each of them takes longer than an answer may."""
MOST_REMOTE: Final = 32
"""The same, where each look is a request to an object store."""
MOST_MOOF: Final = 1 << 20


def why_not(index: Index, source: Source, *, remote: bool = False) -> str | None:
    """Why a file must be processed; None where it is a track as uploaded.

    Args:
        index: of the whole file, made from its boxes.
        source: its bytes; a few are read for each fragment.
        remote: each read is a request over a network.
    """
    reason = why_not_by_index(index, remote=remote)
    if reason is not None:
        return reason
    try:
        return _why_not_inside(index, index.tracks[0], source)
    except FragdexError:
        return "its fragments could not be read"


def why_not_by_index(index: Index, *, remote: bool = False) -> str | None:
    """The same, as far as the index tells it."""
    if len(index.tracks) != 1:
        return "it has several tracks"
    (track,) = index.tracks
    fragments = track.fragments
    if track.kind not in ("video", "audio") or codec_name(track.codec) is None:
        return "browsers do not play its codec"
    if track.is_encrypted():
        return "it is encrypted"
    # Where their positions count from is asked of each moof below.
    known = FragmentFlags.DECLARED_BASE | FragmentFlags.BETWEEN | FragmentFlags.BESIDE
    odd = fragments.flags & ~np.uint32(known)
    if not track.timescale or not len(fragments) or odd.any():
        return "it is not fragmented as players need it"
    if (fragments.first_sync != 0).any():
        return "its fragments do not begin with sync samples"
    shown = [edit for edit in track.info.edits if edit.media_time != -1]
    if len(shown) > 1 or any(edit.rate != 1 for edit in shown):
        return "its edit list does more than to set its start"
    if len(fragments) > (MOST_REMOTE if remote else MOST_FRAGMENTS):
        return "it has too many fragments to look into each"
    return None


def _why_not_inside(index: Index, track: Track, source: Source) -> str | None:
    size = 0
    if codec_name(track.codec) == "h264":
        size = _length_size(index, source)
        if not size:
            return "its parameter sets are not in its header"
    elif codec_name(track.codec) == "aac":
        reason = _why_not_channels(index, source)
        if reason:
            return reason
    fragments, end = track.fragments, index.file.size or 0
    for moof, start, stop in zip(
        fragments.moof_offset.tolist(),
        fragments.data_start.tolist(),
        fragments.data_stop.tolist(),
        strict=True,
    ):
        if not _counts_from_itself(source, moof, end):
            return "its fragments' addresses do not count from their own moof"
        if size and not _closed(source, start, stop, size):
            return "its fragments do not begin with IDR pictures"
    return None


def _closed(source: Source, start: int, stop: int, size: int) -> bool:
    """Whether the media data of a fragment begin with an IDR picture."""

    def read(low: int, high: int) -> bytes:
        return source.read(ByteRange(start + low, start + high))

    try:
        return access_of(SampleBytes(stop - start, read), "avc1", None, size) is Access.CLOSED
    except CannotTell:
        return False


def _length_size(index: Index, source: Source) -> int:
    """Bytes of a NAL unit's length (ISO/IEC 14496-15, 5.3.3); 0 where no header tells."""
    entry = _sample_entry(index, source, "avc1/avcC")
    if entry is not None and "lengthSizeMinusOne" in entry.fields:
        return int(entry.fields["lengthSizeMinusOne"]) + 1
    return 0


def _why_not_channels(index: Index, source: Source) -> str | None:
    """Why browsers refuse the channels of AAC; None where they do not."""
    entry = _sample_entry(index, source, "mp4a")
    try:
        if entry is None:
            raise Missing
        specific = decoder_config(config(entry, "esds", least=5)[4:])[2]
        return why_not_channels(aac_config(specific).channel_configuration)
    except (Missing, IndexError):
        return "its header does not say how it is decoded"


def _sample_entry(index: Index, source: Source, path: str) -> Box | None:
    """The first box at a path below stsd; None where there is none."""
    for init in index.periods[0].init:
        for box in parse(plain_init(source.read(init))):
            entry = box.find(f"trak/mdia/minf/stbl/stsd/{path}") if box.type == "moov" else None
            if entry is not None:
                return entry
    return None


def _counts_from_itself(source: Source, moof: int, end: int) -> bool:
    """Whether each traf has default-base-is-moof (ISO/IEC 14496-12, 8.8.7)."""
    size = int.from_bytes(source.read(ByteRange(moof, moof + 4)), "big")
    if not 8 < size <= min(MOST_MOOF, end - moof):
        return False
    boxes = parse(source.read(ByteRange(moof, moof + size)))
    heads = boxes[0].find_all("traf/tfhd")
    # base-data-offset-present would take precedence
    return len(heads) == 1 and heads[0].fields.get("flags", 0) & 0x020001 == 0x020000


@record(frozen=True, slots=True)
class Indexed:
    """What came of a file.

    Attributes:
        path: of its index, which is opened where it is needed: it may be large, too.
        tracks: their ids.
        reason: why the file must be processed, as `why_not`.
    """

    path: Path
    tracks: tuple[int, ...]
    reason: str | None


@contextmanager
def indexed_in_child(
    context: ServiceContext, tenant_id: str, key: str, md5: bytes, size: int
) -> Iterator[Indexed | None]:
    """The exact index of a stored file, made in a process of its own.

    Args:
        key: of the file in the store.
        md5, size: of the file; 16 bytes, and how many it has.

    Gives: None where it is not an ISO base media file, or a broken one; else an index that is gone
    at the end of the context.

    Raises:
        Unprocessable, Unavailable: as `run_isolated`.
    """
    with OwnFolder() as folder:
        path = folder / INDEX
        answer = run_isolated(context, tenant_id, key, size, indexed, {INDEX: path}, md5=md5.hex())
        if "refused" in answer:
            yield None
        else:
            yield Indexed(path, tuple(answer["tracks"]), answer["reason"])


def indexed(source: Source, md5: str) -> dict[str, Any]:
    """What the process does: the index goes into its folder, and its description comes back."""
    try:
        exact = usable(index(source, exact=True), bytes.fromhex(md5))
        if exact is None:
            return {"refused": "it is not a movie, or none that is whole"}
        exact.save(Path(INDEX))
        reason = why_not(exact, source, remote=source.remote)
    except SourceUnavailable:
        raise
    except FragdexError as error:
        return {"refused": str(error)}
    return {"tracks": [track.id for track in exact.tracks], "reason": reason}
