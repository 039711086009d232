"""What a parsed moov says of the movie and its tracks (ISO/IEC 14496-12, 8.2 to 8.8).

In addition to what an index needs, the headers of a track say colours, rates, titles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from fragdex.boxes import Box, build, parse_box
from fragdex.boxes.limits import MAX_TRACKS
from fragdex.errors import FormatError, LimitExceeded
from fragdex.fragments.table import FAR
from fragdex.fragments.track_info import (
    KINDS_OF_HANDLERS,
    OTHER,
    Chapter,
    ContentLight,
    DolbyVision,
    Edit,
    Encryption,
    MasteringDisplay,
    Movie,
    SampleDefaults,
    TrackInfo,
)
from fragdex.indexing.codecs import (
    Missing,
    Sound,
    body,
    codec_string,
    config,
    decoder_config,
    encrypted_entries,
    joint_objects,
    nal_length_size,
    original_format,
    sound_of,
)
from fragdex.indexing.colours import colour_of

MAX_TEXT = 1024
"""Letters of a title that are taken."""
TRACK_ENABLED = 1


def facts(trak: Box, described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `TrackInfo` that headers say, by name; what they do not say is left out.

    Args:
        trak: parsed; udta may be left unparsed.
        described: what its first sample entry says, likewise.
    """
    elng = trak.find("mdia/elng")
    fields: dict[str, Any] = {"chapter_tracks": _references(trak, "chap")}
    tkhd = trak.find("tkhd")
    if tkhd is not None and "matrix" in tkhd.fields:
        fields["alternate_group"] = int(tkhd["alternate_group"]) & 0xFFFF
        fields["enabled"] = bool(tkhd["flags"] & TRACK_ENABLED)
        fields["rotation"], fields["mirrored"] = _rotation(tkhd["matrix"])
    if elng is not None:
        fields["extended_language"] = _text(elng.get("extended_language"))
    if trak.find("udta") is not None:
        fields["title"] = _title(trak)
    fields |= described
    return {
        name: value for name, value in fields.items() if value is not None or name == "rotation"
    }


def chapters(moov: Box) -> tuple[Chapter, ...]:
    """The chapters of a Nero chapter list."""
    left = moov.find("udta")
    if left is None or (left.opaque and b"chpl" not in bytes(left["data"])):
        return ()
    udta = _user_data(left)
    chpl = udta.find("chpl") if udta is not None else None
    if chpl is None or chpl.opaque:
        return ()
    return tuple(
        Chapter(int(one["start"]), _text(one["title"]) or "")
        for one in chpl["chapters"]
        if one["start"] < 2**63
    )


_TURNS = {(1, 0, 0, 1): 0, (0, 1, -1, 0): 90, (-1, 0, 0, -1): 180, (0, -1, 1, 0): 270}


def _rotation(matrix: Sequence[int]) -> tuple[int | None, bool]:
    """Degrees clockwise of a matrix a b u c d v x y w (8.3.2), and whether it mirrors afterwards.

    None: it does something else.
    """
    a, b, _, c, d = matrix[:5]
    if a == d > 0 == b == c:
        return 0, False
    mirrored = a * d < b * c
    if mirrored:
        a, c = -a, -c
    one = max(map(abs, (a, b, c, d))) or 1
    turn = _TURNS.get((a // one, b // one, c // one, d // one))
    turn = turn if all(abs(value) in (0, one) for value in (a, b, c, d)) else None
    return turn, mirrored and turn is not None


_COLOURS, _MASTERING, _LIGHT = {"colr", "vpcC", "avcC", "hvcC"}, {"mdcv", "SmDm"}, {"clli", "CoLL"}
_DOLBY_VISION, _RATES = {"dvcC", "dvvC", "dvwC"}, {"btrt", "esds", "wave"}


def entry_facts(entry: Box) -> dict[str, Any]:
    """The fields of a `TrackInfo` that a sample entry says, by name, but codec and sizes."""
    fields: dict[str, Any] = {}
    kinds = {child.type for child in entry.children}
    if "pasp" in kinds:
        with suppress(Missing):
            pasp = config(entry, "pasp", least=8)
            aspect = int.from_bytes(pasp[:4], "big"), int.from_bytes(pasp[4:8], "big")
            fields["pixel_aspect"] = aspect if all(aspect) else None
    for name, boxes, read in (
        ("colour", _COLOURS, colour_of),
        ("mastering_display", _MASTERING, _mastering),
        ("content_light", _LIGHT, _light),
        ("dolby_vision", _DOLBY_VISION, _dolby_vision),
    ):
        if not kinds.isdisjoint(boxes):
            fields[name] = read(entry)
    if "dec3" in kinds:
        fields["joint_objects"] = joint_objects(entry)
    return fields if kinds.isdisjoint(_RATES) else fields | _rates(entry)


def _numbers(data: bytes, *sizes: int) -> list[int]:
    numbers, at = [], 0
    for size in sizes:
        numbers.append(int.from_bytes(data[at : at + size], "big"))
        at += size
    return numbers


def _mastering(entry: Box) -> MasteringDisplay | None:
    # mdcv: green, blue, red in units of 0.00002 (12.1.7)
    for name, skipped, order, place, most_of, least_of in (
        ("mdcv", 0, (4, 5, 0, 1, 2, 3), 50_000, 10_000, 10_000),
        ("SmDm", 4, range(6), 65_536, 256, 16_384),
    ):
        for box in entry.find_all(name):
            if len(data := body(box)[skipped:]) >= 24:
                *places, most, least = _numbers(data, *[2] * 8, 4, 4)
                primaries = tuple(places[n] / place for n in order)
                white = places[6] / place, places[7] / place
                return MasteringDisplay(primaries, white, most / most_of, least / least_of)
    return None


def _light(entry: Box) -> ContentLight | None:
    for name, skipped in (("clli", 0), ("CoLL", 4)):
        for box in entry.find_all(name):
            if len(data := body(box)[skipped:]) >= 4:
                most, average = _numbers(data, 2, 2)
                return ContentLight(most, average)
    return None


def _dolby_vision(entry: Box) -> DolbyVision | None:
    try:
        record = config(entry, "dvcC", "dvvC", "dvwC", least=5)
    except Missing:
        return None
    return DolbyVision(record[2] >> 1, (record[2] & 1) << 5 | record[3] >> 3, record[4] >> 4)


def _rates(entry: Box) -> dict[str, Any]:
    """Bits a second that btrt (8.5.2) or the decoder's configuration (14496-1, 7.2.6.6) declare."""
    try:
        btrt = config(entry, "btrt", least=12)
        most, average = _numbers(btrt[4:], 4, 4)
    except Missing:
        try:
            _, record, _ = decoder_config(config(entry, "esds", "wave/esds", least=5)[4:])
            most, average = _numbers(record[5:], 4, 4)
        except (Missing, IndexError):
            return {}
    return {"declared_bit_rate": average or None, "declared_peak_bit_rate": most or None}


def _references(trak: Box, kind: str) -> tuple[int, ...]:
    tref = trak.find(f"tref/{kind}")
    if tref is None:
        return ()
    data = body(tref)
    ids = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data) - 3, 4)]
    return tuple(one for one in ids[:64] if one)


def _title(trak: Box) -> str | None:
    udta = _user_data(trak.find("udta"))
    if udta is None:
        return None
    for child in udta.children:
        if child.type == "name":
            return _text(child.get("name"))
    for child in udta.children:
        # QuickTime File Format, user data text: a length and a language, then the text.
        if child.type == "\xa9nam" and len(data := body(child)) >= 4:
            size = int.from_bytes(data[:2], "big")
            return _text(data[4 : 4 + size].decode("utf-8", "replace"))
    return None


def _user_data(udta: Box | None) -> Box | None:
    """A udta that was left unparsed, as far as it can be read; its damage concerns no one."""
    if udta is None:
        return None
    try:
        return parse_box(build(udta), leave=frozenset({"meta"}))
    except FormatError:
        return None


def _text(value: object) -> str | None:
    """Text that can be shown and written as JSON; None where there is none."""
    if not isinstance(value, str):
        return None
    clean = value.encode("utf-8", "replace").decode("utf-8").split("\0")[0][:MAX_TEXT].strip()
    return clean or None


MAX_EDITS = 4096
"""Edits that are kept of one track; real lists have a handful."""


def read_movie(moov: Box, data: bytes | None = None) -> Movie:
    """The values of a parsed moov.

    Tracks without a tkhd are left out: nothing can refer to them.

    Args:
        data: what it was parsed from, where none of it was damaged: what a sample entry of the
            same bytes said is taken again.

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
    tracks: list[TrackInfo] = []
    reasons: dict[int, str] = {}
    for trak in traks:
        tkhd = trak.find("tkhd")
        if tkhd is not None and "track_ID" in tkhd.fields:
            tracks.append(_read_track(trak, tkhd["track_ID"], extends, moov.offset, data))
            for kind, reason in _AUXILIARY.items():
                if of := _references(trak, kind):
                    reasons.setdefault(tracks[-1].id, f"{reason} of track {of[0]}")
    tracks = _with_reasons(tracks, reasons)
    return Movie(
        header.fields.get("timescale", 0) if header else 0,
        _duration(duration),
        moov.find("mvex") is not None,
        tuple(tracks),
        chapters(moov),
    )


_AUXILIARY = {
    "auxl": "it has auxiliary pictures (alpha, depth)",
    "vdep": "it has the depth",
    "thmb": "it has thumbnails",
}
"""References of tracks that belong to another's pictures (ISO/IEC 14496-12, 8.3.3; 23008-12)."""


def _with_reasons(tracks: list[TrackInfo], reasons: dict[int, str]) -> list[TrackInfo]:
    """The tracks, each with why it is not presented by itself (`TrackInfo.auxiliary`)."""
    for track in tracks:
        if track.handler == "auxv":
            reasons.setdefault(track.id, "it has auxiliary pictures (handler auxv)")
        for number in track.chapter_tracks:
            reasons.setdefault(number, f"it names chapters of track {track.id}")
    played = [track for track in tracks if track.enabled and track.id not in reasons]
    for track in tracks:
        if track.enabled or track.kind not in ("video", "audio"):
            continue
        others = [one for one in played if one.kind == track.kind]
        groups = {one.alternate_group for one in others} - {0}
        if others and track.alternate_group not in groups:
            reasons.setdefault(track.id, "it is disabled")
    if not reasons:
        return tracks
    return [replace(track, auxiliary=reasons.get(track.id)) for track in tracks]


def sample_tables(moov: Box) -> dict[int, Box]:
    """track_ID → stbl of each track of a parsed moov."""
    tables: dict[int, Box] = {}
    for trak in moov.find_all("trak"):
        tkhd, stbl = trak.find("tkhd"), trak.find("mdia/minf/stbl")
        if tkhd is not None and stbl is not None and "track_ID" in tkhd.fields:
            tables.setdefault(tkhd["track_ID"], stbl)
    return tables


def decoders(moov: Box, data: bytes) -> dict[int, bytes]:
    """track_ID → what decodes its samples: the bytes of hdlr's type, timescale and stsd."""
    configurations: dict[int, bytes] = {}
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
        configurations.setdefault(tkhd["track_ID"], f"{handler} {timescale} ".encode() + entries)
    return configurations


def _duration(box: Box | None) -> int:
    if box is None:
        return 0
    return known_duration(int(box.fields.get("fragment_duration", box.fields.get("duration", 0))))


def known_duration(value: int) -> int:
    """A duration of a header; 0: unknown, as all ones mean (ISO/IEC 14496-12, 8.2.2.3)."""
    return 0 if value == 2**32 - 1 else countable(value)


def countable(duration: int) -> int:
    """No recording lasts 2^63 ticks: such a duration says nothing, and columns have no room."""
    return duration if duration < 2**63 else 0


_NO_SOUND = Sound()


class _Described(NamedTuple):
    """What a sample entry says: fields of a `TrackInfo`, and those that `facts` takes."""

    fields: Mapping[str, Any]
    facts: Mapping[str, Any]


_DESCRIBED: dict[tuple[str, str, bytes], _Described] = {}
MOST_DESCRIBED, MOST_DESCRIBED_BYTES = 128, 512
"""Sample entries that are remembered from file to file, and bytes of an stsd that is."""


def _described(stsd: Box, handler: str, data: bytes) -> _Described:
    """What the first entry says; `data`: the bytes of the stsd, empty where it is damaged."""
    entry = stsd.children[0]
    # A second mdia may have another handler, by which the entry was read.
    read_as = entry.layout.title if entry.layout is not None and not entry.opaque else ""
    known = _DESCRIBED.get((handler, read_as, data))
    if known is not None:
        return known
    code = original_format(entry)
    sound = sound_of(entry, code) if handler == "soun" else _NO_SOUND
    fields = {
        "format": code,
        "codec": codec_string(entry),
        "width": entry.get("width"),
        "height": entry.get("height"),
        "channel_count": sound.channel_count,
        "sample_rate": sound.sample_rate,
        "sample_size": sound.sample_size,
        "encryption": _encryption(stsd.children),
        "nal_length_size": nal_length_size(entry),
    }
    described = _Described(fields, entry_facts(entry))
    if 0 < len(data) <= MOST_DESCRIBED_BYTES:
        if len(_DESCRIBED) >= MOST_DESCRIBED:
            _DESCRIBED.clear()
        _DESCRIBED[handler, read_as, data] = described
    return described


_NOTHING = _Described({"format": "", "codec": None}, {})


def _read_track(
    trak: Box, track_id: int, extends: dict[int, SampleDefaults], moov: int, data: bytes | None
) -> TrackInfo:
    mdhd, hdlr = trak.find("mdia/mdhd"), trak.find("mdia/hdlr")
    stsd = trak.find("mdia/minf/stbl/stsd")
    handler = hdlr.fields.get("handler_type", "") if hdlr else ""
    described = _NOTHING
    if stsd is not None and stsd.children:
        at = stsd.offset - moov
        described = _described(stsd, handler, data[at : at + stsd.size] if data else b"")
    return TrackInfo(
        id=track_id,
        handler=handler,
        kind=KINDS_OF_HANDLERS.get(handler, OTHER),
        timescale=mdhd.fields.get("timescale", 0) if mdhd else 0,
        media_duration=_duration(mdhd),
        language=_language(mdhd.fields.get("language", 0)) if mdhd else None,
        edits=_edits(trak),
        defaults=extends.get(track_id),
        **described.fields,
        **facts(trak, described.facts),
    )


@lru_cache(maxsize=256)
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
            countable(int(row["segment_duration"])),
            int(row["media_time"]),
            int(row["media_rate_integer"]) + int(row["media_rate_fraction"]) % 65536 / 65536,
        )
        for row in elst["entries"][:MAX_EDITS]
        if abs(int(row["media_time"])) < FAR
    )


def _encryption(entries: Sequence[Box]) -> Encryption | None:
    found = encrypted_entries(entries)
    if not found:
        return None
    entry = entries[found[0] - 1]
    schm = entry.find("sinf/schm")
    tenc = entry.find("sinf/schi/tenc") or next(
        (b for b in entry.find_all("sinf/schi/uuid") if "default_KID" in b.fields), None
    )
    kid = tenc.fields.get("default_KID") if tenc is not None else None
    return Encryption(
        schm.fields.get("scheme_type", "") if schm is not None else "",
        bytes(kid).hex() if kid is not None else None,
        tenc.fields.get("default_Per_Sample_IV_Size") if tenc is not None else None,
        tuple(found) if len(found) < len(entries) else (),
    )
