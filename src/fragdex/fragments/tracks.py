"""What a moov says of the movie and its tracks, as plain values (ISO/IEC 14496-12, 8.2 to 8.8)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fragdex.boxes import Box
from fragdex.fragments.codecs import codec_string, original_format

__all__ = [
    "Edit",
    "Encryption",
    "Movie",
    "SampleDefaults",
    "TrackInfo",
    "read_movie",
    "sample_tables",
]

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


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of an edit list (ISO/IEC 14496-12, 8.6.6).

    Attributes:
        duration: in ticks of the movie's timescale; 0 in a fragmented file: all that follows.
        media_time: in ticks of the track's timescale; -1: an empty edit, nothing is shown.
        rate: playback rate; 1 unless a file says otherwise.

    >>> Edit(duration=0, media_time=1024, rate=1.0).media_time
    1024
    """

    duration: int
    media_time: int
    rate: float = 1.0


@dataclass(frozen=True, slots=True)
class Encryption:
    """How the samples of a track are protected (ISO/IEC 23001-7, 8).

    Attributes:
        scheme: four-letter scheme type such as `cenc` or `cbcs`; `piff` for PIFF's own boxes.
        default_kid: key identifier as 32 hex digits, or None.
        iv_size: bytes of the initialization vector of each sample; 0: a constant one.

    >>> Encryption("cenc", None, 8).scheme
    'cenc'
    """

    scheme: str
    default_kid: str | None
    iv_size: int | None


@dataclass(frozen=True, slots=True)
class SampleDefaults:
    """A trex: what holds for samples where neither trun nor tfhd says otherwise (8.8.3).

    >>> SampleDefaults(duration=1024, size=0, flags=0).duration
    1024
    """

    duration: int
    size: int
    flags: int


@dataclass(frozen=True, slots=True)
class TrackInfo:
    """What the moov says of one track.

    Attributes:
        id: track_ID.
        handler: four-letter handler type (`vide`, `soun`, …), or "" without a moov.
        kind: video, audio, text, metadata, timecode, hint or other.
        timescale: ticks a second; 0: unknown.
        format: code of the first sample entry, with the original one for protected tracks.
        codec: RFC 6381 codec string, or None where there is none.
        media_duration: mdhd's duration in ticks; 0 is usual in fragmented files.
        width, height: coded picture size in pixels of the first sample entry, or None.
        channel_count, sample_rate, sample_size: of the first audio sample entry, or None;
            Hz for the rate, bits for the size.
        language: ISO 639-2 code, or None where it is undetermined.
        edits: the edit list in file order.
        encryption: None for a clear track.
        defaults: the trex, or None where the movie has none for this track.

    >>> TrackInfo.unknown(3).id
    3
    """

    id: int
    handler: str
    kind: str
    timescale: int
    format: str
    codec: str | None
    media_duration: int = 0
    width: int | None = None
    height: int | None = None
    channel_count: int | None = None
    sample_rate: int | None = None
    sample_size: int | None = None
    language: str | None = None
    edits: tuple[Edit, ...] = ()
    encryption: Encryption | None = None
    defaults: SampleDefaults | None = None

    @classmethod
    def unknown(cls, track_id: int) -> TrackInfo:
        """A track met in a fragment without any moov: its id is all that is known.

        >>> TrackInfo.unknown(1).timescale
        0
        """
        return cls(track_id, "", "other", 0, "", None)

    def shift(self, movie_timescale: int) -> Fraction:
        """Ticks to add to a composition time to get the presentation time (8.6.6).

        Leading empty edits delay, the first other edit names the media time that is shown first.
        Later edits do not move it.

        >>> info = TrackInfo(1, "vide", "video", 90000, "avc1", None, edits=(Edit(0, 3003),))
        >>> info.shift(1000)
        Fraction(-3003, 1)
        """
        delay = Fraction(0)
        for edit in self.edits:
            if edit.media_time >= 0:
                return delay - edit.media_time
            if movie_timescale:
                delay += Fraction(edit.duration * self.timescale, movie_timescale)
        return delay


@dataclass(frozen=True, slots=True)
class Movie:
    """One moov: its timescale and its tracks.

    Attributes:
        timescale: ticks a second of mvhd and of edit durations; 0: unknown.
        duration: mvhd's duration in those ticks, or mehd's where it is there.
        fragmented: whether an mvex announces fragments.
        tracks: in file order.

    >>> Movie(1000, 0, True, ()).tracks
    ()
    """

    timescale: int
    duration: int
    fragmented: bool
    tracks: tuple[TrackInfo, ...]


def read_movie(moov: Box) -> Movie:
    """The values of a parsed moov.

    Tracks without a tkhd are left out: nothing can refer to them.
    """
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
    for trak in moov.find_all("trak"):
        tkhd = trak.find("tkhd")
        if tkhd is not None and "track_ID" in tkhd.fields:
            tracks.append(_read_track(trak, tkhd["track_ID"], extends))
    return Movie(
        header.fields.get("timescale", 0) if header else 0,
        _duration(duration),
        moov.find("mvex") is not None,
        tuple(tracks),
    )


def sample_tables(moov: Box) -> dict[int, Box]:
    """track_ID → stbl of each track of a parsed moov."""
    found: dict[int, Box] = {}
    for trak in moov.find_all("trak"):
        tkhd, stbl = trak.find("tkhd"), trak.find("mdia/minf/stbl")
        if tkhd is not None and stbl is not None and "track_ID" in tkhd.fields:
            found.setdefault(tkhd["track_ID"], stbl)
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
    audio = handler == "soun"
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
        channel_count=values.get("channelcount") if audio else None,
        sample_rate=_sample_rate(entry, values) if audio else None,
        sample_size=values.get("samplesize") if audio else None,
        language=_language(mdhd.fields.get("language", 0)) if mdhd else None,
        edits=_edits(trak),
        encryption=_encryption(entry),
        defaults=extends.get(track_id),
    )


def _sample_rate(entry: Box | None, values: object) -> int | None:
    if entry is None or "samplerate" not in entry.fields:
        return None
    rate = entry.find("srat")
    if rate is not None and "sampling_rate" in rate.fields:
        return int(rate["sampling_rate"])
    return int(entry["samplerate"]) >> 16  # 16.16 fixed point


def _language(packed: int) -> str | None:
    """Three letters, five bits each, counted from 0x60 (8.4.2.3)."""
    letters = "".join(chr((packed >> shift & 31) + 0x60) for shift in (10, 5, 0))
    return letters if letters.isalpha() and letters != "und" else None


def _edits(trak: Box) -> tuple[Edit, ...]:
    elst = trak.find("edts/elst")
    if elst is None or "entries" not in elst.fields:
        return ()
    entries = elst["entries"]
    return tuple(
        Edit(
            _countable(int(row["segment_duration"])),
            int(row["media_time"]),
            int(row["media_rate_integer"]) + int(row["media_rate_fraction"]) % 65536 / 65536,
        )
        for row in entries[:MAX_EDITS]
    )


MAX_EDITS = 4096
"""Edits that are kept of one track; real lists have a handful."""


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
