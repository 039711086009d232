"""A fragmented file of one track that players take as it is needs no work: it is its own track.

What players need of a track: one track a file, a codec that browsers play, fragments whose
addresses count from their own moof (default-base-is-moof), and each of them beginning with a
sample that needs nothing before it. The last is looked up in the pictures themselves where the
codec is AVC: muxers mark pictures sync that are none.
"""

from __future__ import annotations

import re
from typing import Final

from fragdex import ByteRange, FragmentIndex, Source, TrackIndex, parse
from fragdex.errors import FragdexError
from fragdex.service.media.avc import IDR, first_slice

__all__ = ["CODECS", "codec_name", "why_not"]

CODECS: Final = (
    # profiles of 8 bits and 4:2:0 (ISO/IEC 14496-10, Annex A): Baseline, Main, Extended, High
    (re.compile(r"avc1\.(42|4D|58|64)[0-9A-F]{4}", re.IGNORECASE), "h264"),
    # profiles 0 and 2: 4:2:0, of 10 bits at most
    (re.compile(r"vp09\.0[02]\.\d\d\.(08|10)(\..*)?"), "vp9"),
    (re.compile(r"av01\.0\.\d\d[MH]\.(08|10)(\..*)?"), "av1"),
    (re.compile(r"mp4a\.40\.(2|5|29)"), "aac"),
    (re.compile(r"mp4a\.(69|6B)", re.IGNORECASE), "mp3"),
    (re.compile(r"Opus", re.IGNORECASE), "opus"),
    (re.compile(r"fLaC", re.IGNORECASE), "flac"),
)
"""Codec strings that browsers play, and FFmpeg's names of the codecs."""

MOST_FRAGMENTS: Final = 20_000
"""Above that, looking into each of them takes longer than an answer may."""
MOST_REMOTE: Final = 32
"""The same, where each look is a request to an object store."""
MOST_MOOF: Final = 1 << 20
HEAD: Final = 4096
"""Bytes of a picture in which its first slice is looked for; an encoder's name comes before it."""


def codec_name(codec: str | None) -> str | None:
    """FFmpeg's name of a codec that browsers play; None for any other.

    >>> codec_name("avc1.64001F"), codec_name("hvc1.1.6.L93.B0")
    ('h264', None)
    """
    for pattern, name in CODECS:
        if pattern.fullmatch(codec or ""):
            return name
    return None


def why_not(index: FragmentIndex, source: Source, *, remote: bool = False) -> str | None:
    """Why a file must be processed; None where it is a track as it came.

    Args:
        index: of the whole file, made from its boxes.
        source: its bytes; a few are read for each fragment.
        remote: each read is a request over a network.
    """
    if len(index.tracks) != 1:
        return "it has several tracks"
    (track,) = index.tracks
    fragments = track.fragments
    if track.kind not in ("video", "audio") or codec_name(track.codec) is None:
        return "browsers do not play its codec"
    if track.info.encryption is not None:
        return "it is encrypted"
    if not track.timescale or not len(fragments) or fragments.flags.any():
        return "it is not fragmented as players need it"
    if (fragments.sync != 0).any():
        return "its fragments do not begin with sync samples"
    shown = [edit for edit in track.info.edits if edit.media_time != -1]
    if len(shown) > 1 or any(edit.rate != 1 for edit in shown):
        return "its edit list does more than to set its start"
    if len(fragments) > (MOST_REMOTE if remote else MOST_FRAGMENTS):
        return "it has too many fragments to look into each"
    try:
        return _why_not_inside(index, track, source)
    except FragdexError:
        return "its fragments could not be read"


def _why_not_inside(index: FragmentIndex, track: TrackIndex, source: Source) -> str | None:
    size = 0
    if codec_name(track.codec) == "h264":
        size = _length_size(index, source)
        if not size:
            return "its parameter sets are not in its header"
    fragments, end = track.fragments, index.source.size or 0
    for moof, start, stop in zip(
        fragments.moof_offset.tolist(),
        fragments.data_start.tolist(),
        fragments.data_stop.tolist(),
        strict=True,
    ):
        if not _counts_from_itself(source, moof, end):
            return "its fragments' addresses do not count from their own moof"
        if size:
            head = source.read(ByteRange(start, min(start + HEAD, stop)))
            if first_slice(head, size) != IDR:
                return "its fragments do not begin with IDR pictures"
    return None


def _length_size(index: FragmentIndex, source: Source) -> int:
    """Bytes of a NAL unit's length (ISO/IEC 14496-15, 5.3.3); 0 where no header tells."""
    for init in index.periods[0].init:
        for box in parse(source.read(init)):
            found = box.find("trak/mdia/minf/stbl/stsd/avc1/avcC") if box.type == "moov" else None
            if found is not None and "lengthSizeMinusOne" in found.fields:
                return int(found.fields["lengthSizeMinusOne"]) + 1
    return 0


def _counts_from_itself(source: Source, moof: int, end: int) -> bool:
    """Whether each traf has default-base-is-moof (ISO/IEC 14496-12, 8.8.7)."""
    size = int.from_bytes(source.read(ByteRange(moof, moof + 4)), "big")
    if not 8 < size <= min(MOST_MOOF, end - moof):
        return False
    boxes = parse(source.read(ByteRange(moof, moof + size)))
    heads = boxes[0].find_all("traf/tfhd")
    # base-data-offset-present would take precedence
    return len(heads) == 1 and heads[0].fields.get("flags", 0) & 0x020001 == 0x020000
