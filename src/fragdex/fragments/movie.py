"""Read a parsed moov: what it says of the movie and its tracks (ISO/IEC 14496-12, 8.2 to 8.8)."""

from __future__ import annotations

from fragdex.boxes import Box
from fragdex.boxes.limits import MAX_TRACKS
from fragdex.errors import LimitExceeded
from fragdex.fragments.codecs import codec_string, nal_length_size, original_format
from fragdex.fragments.facts import chapters, facts
from fragdex.fragments.sound import Sound, sound_of
from fragdex.fragments.table import FAR
from fragdex.fragments.track_info import Edit, Encryption, Movie, SampleDefaults, TrackInfo

__all__ = ["decoders", "read_movie", "sample_tables"]

MAX_EDITS = 4096
"""Edits that are kept of one track; real lists have a handful."""
KINDS = {
    "vide": "video",
    "auxv": "video",
    "pict": "video",
    "soun": "audio",
    "text": "text",
    "sbtl": "text",
    "subt": "text",
    "subp": "text",
    "clcp": "text",
    "meta": "metadata",
    "tmcd": "timecode",
    "hint": "hint",
}


def read_movie(moov: Box) -> Movie:
    """The values of a parsed moov.

    Tracks without a tkhd are left out: nothing can refer to them.

    Raises:
        LimitExceeded: it has too many tracks.
    """
    traks = moov.find_all("trak")
    if len(traks) > MAX_TRACKS:
        raise LimitExceeded(
            "the moov has too many tracks",
            path="moov/trak",
            offset=traks[MAX_TRACKS].offset,
            expected=f"at most {MAX_TRACKS}",
            found=len(traks),
        )
    header = moov.find("mvhd")
    extends = {
        trex["track_ID"]: SampleDefaults(
            trex["default_sample_duration"],
            trex["default_sample_size"],
            trex["default_sample_flags"],
        )
        for trex in moov.find_all("mvex/trex")
        if "track_ID" in trex.fields
    }
    duration = moov.find("mvex/mehd") or header
    tracks = []
    for trak in traks:
        tkhd = trak.find("tkhd")
        if tkhd is not None and "track_ID" in tkhd.fields:
            tracks.append(_read_track(trak, tkhd["track_ID"], extends))
    return Movie(
        header.fields.get("timescale", 0) if header else 0,
        _duration(duration),
        moov.find("mvex") is not None,
        tuple(tracks),
        chapters(moov),
    )


def sample_tables(moov: Box) -> dict[int, Box]:
    """track_ID → stbl of each track of a parsed moov."""
    found: dict[int, Box] = {}
    for trak in moov.find_all("trak"):
        tkhd, stbl = trak.find("tkhd"), trak.find("mdia/minf/stbl")
        if tkhd is not None and stbl is not None and "track_ID" in tkhd.fields:
            found.setdefault(tkhd["track_ID"], stbl)
    return found


def decoders(moov: Box, data: bytes) -> dict[int, bytes]:
    """track_ID → what decodes its samples: the bytes of hdlr's type, timescale and stsd.

    Args:
        moov: parsed from `data`.
    """
    found: dict[int, bytes] = {}
    for trak in moov.find_all("trak"):
        tkhd, stsd = trak.find("tkhd"), trak.find("mdia/minf/stbl/stsd")
        mdhd, hdlr = trak.find("mdia/mdhd"), trak.find("mdia/hdlr")
        if tkhd is None or "track_ID" not in tkhd.fields:
            continue
        entries = b""
        if stsd is not None:
            at = stsd.offset - moov.offset
            entries = data[at : at + stsd.size]
        handler = hdlr.fields.get("handler_type", "") if hdlr is not None else ""
        timescale = mdhd.fields.get("timescale", 0) if mdhd is not None else 0
        found.setdefault(tkhd["track_ID"], f"{handler} {timescale} ".encode() + entries)
    return found


def _duration(box: Box | None) -> int:
    if box is None:
        return 0
    value = int(box.fields.get("fragment_duration", box.fields.get("duration", 0)))
    # All ones mean "unknown" (ISO/IEC 14496-12, 8.2.2.3).
    return 0 if value == 2**32 - 1 else _countable(value)


def _countable(duration: int) -> int:
    """No recording lasts 2^63 ticks: such a duration says nothing, and columns have no room."""
    return duration if duration < 2**63 else 0


def _read_track(trak: Box, track_id: int, extends: dict[int, SampleDefaults]) -> TrackInfo:
    mdhd, hdlr = trak.find("mdia/mdhd"), trak.find("mdia/hdlr")
    stsd = trak.find("mdia/minf/stbl/stsd")
    entry = stsd.children[0] if stsd is not None and stsd.children else None
    handler = hdlr.fields.get("handler_type", "") if hdlr else ""
    values = entry.fields if entry is not None else {}
    sound = sound_of(entry, original_format(entry)) if entry and handler == "soun" else Sound()
    return TrackInfo(
        id=track_id,
        handler=handler,
        kind=KINDS.get(handler, "other"),
        timescale=mdhd.fields.get("timescale", 0) if mdhd else 0,
        format=original_format(entry) if entry is not None else "",
        codec=codec_string(entry) if entry is not None else None,
        media_duration=_duration(mdhd),
        width=values.get("width"),
        height=values.get("height"),
        channel_count=sound.channel_count,
        sample_rate=sound.sample_rate,
        sample_size=sound.sample_size,
        language=_language(mdhd.fields.get("language", 0)) if mdhd else None,
        edits=_edits(trak),
        encryption=_encryption(entry),
        defaults=extends.get(track_id),
        nal_length_size=nal_length_size(entry) if entry is not None else None,
        **facts(trak, entry),
    )


def _language(packed: int) -> str | None:
    """Three letters, five bits each, counted from 0x60 (8.4.2.3)."""
    letters = "".join(chr((packed >> shift & 31) + 0x60) for shift in (10, 5, 0))
    return letters if letters.isalpha() and letters != "und" else None


def _edits(trak: Box) -> tuple[Edit, ...]:
    elst = trak.find("edts/elst")
    if elst is None or "entries" not in elst.fields:
        return ()
    return tuple(
        Edit(
            _countable(int(row["segment_duration"])),
            int(row["media_time"]),
            int(row["media_rate_integer"]) + int(row["media_rate_fraction"]) % 65536 / 65536,
        )
        for row in elst["entries"][:MAX_EDITS]
        if abs(int(row["media_time"])) < FAR
    )


def _encryption(entry: Box | None) -> Encryption | None:
    if entry is None or entry.type not in ("encv", "enca", "enct", "encs", "encm"):
        return None
    schm = entry.find("sinf/schm")
    tenc = entry.find("sinf/schi/tenc") or next(
        (b for b in entry.find_all("sinf/schi/uuid") if "default_KID" in b.fields), None
    )
    kid = tenc.fields.get("default_KID") if tenc is not None else None
    return Encryption(
        schm.fields.get("scheme_type", "") if schm is not None else "",
        bytes(kid).hex() if kid is not None else None,
        tenc.fields.get("default_Per_Sample_IV_Size") if tenc is not None else None,
    )
