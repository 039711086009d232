"""What the boxes of a moov's tracks say against each other (ISO/IEC 14496-12, 8.3 to 8.7)."""

from __future__ import annotations

from collections.abc import Sequence

from fragdex.boxes import Box
from fragdex.fragments.findings import Findings

__all__ = ["audit_tracks"]

SELF_CONTAINED = 1
"""Flag of a data reference: the media data is in this file (8.7.2.2)."""
REFERENCES = ("url ", "urn ", "alis")
"""Data references that may name another file; imdt and snim name boxes of this one."""
MOST_NAMED = 80
"""Characters of a file's name that a message tells."""


def audit_tracks(
    moov: Box, findings: Findings, lost: frozenset[int] = frozenset()
) -> frozenset[int]:
    """Note what tracks contradict themselves in, and which say that their samples are elsewhere.

    Args:
        moov: parsed.
        findings: odd things are noted here.
        lost: track_IDs whose tables are damaged, which is told already.

    Returns: track_IDs whose samples lie in other files.
    """
    known: set[int] = set()
    elsewhere: set[int] = set()
    for trak in moov.find_all("trak"):
        tkhd = trak.find("tkhd")
        track = tkhd.get("track_ID") if tkhd is not None else None
        if tkhd is None or track is None:
            continue
        if track in known:
            findings.add(
                "same-track-id",
                "two tracks have this track_ID, which must be unique (8.3.2); only the first is "
                "indexed",
                offset=tkhd.offset,
                path="moov/trak/tkhd",
                track=track,
            )
            continue
        known.add(track)
        if not track:
            findings.add(
                "track-id-zero",
                "the track_ID is 0, which stands for no track (8.3.2)",
                offset=tkhd.offset,
                path="moov/trak/tkhd",
                track=track,
            )
        if track not in lost and _audit(trak, track, findings):
            elsewhere.add(track)
    _audit_defaults(moov, findings)
    return frozenset(elsewhere)


def _audit_defaults(moov: Box, findings: Findings) -> None:
    described: dict[int, int] = {}
    for trak in moov.find_all("trak"):
        tkhd, entries = trak.find("tkhd"), trak.find_all("mdia/minf/stbl/stsd/*")
        if tkhd is not None and "track_ID" in tkhd.fields:
            described.setdefault(tkhd["track_ID"], len(entries))
    for trex in moov.find_all("mvex/trex"):
        track, entry = trex.get("track_ID"), trex.get("default_sample_description_index")
        count = described.get(track) if track is not None else None
        if entry is not None and count and not 1 <= entry <= count:
            findings.add(
                "no-description",
                f"trex names sample entry {entry} of {count}",
                offset=trex.offset,
                path="moov/mvex/trex",
                track=track,
            )


def _audit(trak: Box, track: int, findings: Findings) -> bool:
    """Whether all samples of the track lie in other files."""
    stsd, dref = trak.find("mdia/minf/stbl/stsd"), trak.find("mdia/minf/dinf/dref")
    entries = stsd.children if stsd is not None else ()
    if not entries:
        findings.add(
            "no-sample-entry",
            "stsd has no entry, so nothing says how the samples are coded",
            offset=(stsd or trak).offset,
            path="moov/trak/mdia/minf/stbl/stsd",
            track=track,
        )
        return False
    if stsd is not None and stsd.get("entry_count") not in (None, len(entries)):
        findings.add(
            "stsd-count",
            f"stsd says that it has {stsd['entry_count']} entries, and has {len(entries)}",
            offset=stsd.offset,
            path="moov/trak/mdia/minf/stbl/stsd",
            track=track,
        )
    if dref is None or not dref.children:
        return False
    return _audit_references(dref, entries, track, findings)


def _audit_references(dref: Box, entries: Sequence[Box], track: int, findings: Findings) -> bool:
    path = "moov/trak/mdia/minf/dinf/dref"
    if dref.get("entry_count") not in (None, len(dref.children)):
        findings.add(
            "dref-count",
            f"dref says that it has {dref['entry_count']} entries, and has {len(dref.children)}",
            offset=dref.offset,
            path=path,
            track=track,
        )
    away = 0
    for entry in entries:
        number = entry.get("data_reference_index")
        if number is None:
            continue
        if not 1 <= number <= len(dref.children):
            findings.add(
                "no-data-reference",
                f"a sample entry names data reference {number} of {len(dref.children)}; the "
                "samples are taken for those of this file",
                offset=entry.offset,
                path="moov/trak/mdia/minf/stbl/stsd",
                track=track,
            )
            continue
        reference = dref.children[number - 1]
        if reference.type not in REFERENCES or reference.get("flags", 0) & SELF_CONTAINED:
            continue
        name = _name(reference)
        if name:
            away += 1
            findings.add(
                "media-elsewhere",
                f"the samples are in another file, {name}; they are left out",
                offset=reference.offset,
                path=path,
                track=track,
            )
        else:
            findings.add(
                "media-unnamed",
                "dref does not say that the samples are in this file, and names no other; they "
                "are taken for those of this file",
                offset=reference.offset,
                path=path,
                track=track,
            )
    return away == len(entries)


def _name(reference: Box) -> str:
    """The file that a data reference names, for a message; "" where it names none."""
    if reference.type == "alis":
        return "of an alias record" if reference.get("alias") else ""
    name = str(reference.get("location") or reference.get("name") or "")
    return repr(name[:MOST_NAMED]) if name else ""
