"""Reading the index at the end of a file: mfra, its tfra boxes, and the mfro that finds them.

A tfra names places and presentation times of a track's sync samples, and no sizes; it need not
list every fragment (ISO/IEC 14496-12, 8.8.9 to 8.8.11). So a row reaches to the next place that
the same track lists: fragments in between belong to it, those of other tracks too.

In the field: one muxer lists every fragment, also where it starts with no sync sample. A moof at
hand shows that; see `RandomAccess.doubts`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentFlags, Int64, SyncTable
from fragdex.fragments.track_info import Movie, SampleDefaults, TrackInfo
from fragdex.indexing.sidx_reading import FAR, Tables, approximate, rescaled
from fragdex.record import record

NON_SYNC = 0x10000
"""sample_is_non_sync_sample in sample flags (8.8.3.1)."""
FIRST_SAMPLE_FLAGS, SAMPLE_FLAGS = 0x4, 0x400
"""Bits of trun's flags (8.8.8)."""


def mfra_range(tail: bytes, size: int) -> ByteRange | None:
    """Where the mfra lies, from the last 16 bytes of a file; None where there is none."""
    mfro = tail[-16:]
    if len(mfro) < 16 or mfro[:8] != b"\0\0\0\x10mfro":
        return None
    length = int.from_bytes(mfro[12:], "big")
    # An mfra holds at least its own header and the mfro.
    return ByteRange(size - length, size) if 24 <= length <= size else None


@record(frozen=True, slots=True, eq=False)
class Entries:
    """The tfra of one track: columns of equal length, in file order.

    Attributes:
        moof_offset: int64 bytes of the file.
        time: int64 presentation time in ticks of the track's timescale.
        traf_number, trun_number, sample_number: int64, counted from 1.
    """

    moof_offset: Int64
    time: Int64
    traf_number: Int64
    trun_number: Int64
    sample_number: Int64

    def __len__(self) -> int:
        return len(self.moof_offset)


@record(frozen=True, slots=True)
class RandomAccess:
    """What an mfra says.

    Attributes:
        start: byte where the mfra begins: the media ends here.
        tracks: track_ID → its entries; without entries it is left out.
    """

    start: int
    tracks: Mapping[int, Entries]
    findings: tuple[Finding, ...]

    @property
    def last_moof(self) -> int:
        """Offset of the last moof listed: walking on from it tells its size and what follows."""
        return max((int(e.moof_offset.max()) for e in self.tracks.values()), default=0)

    def doubts(
        self,
        *,
        heads: Mapping[int, bytes] | None = None,
        moofs: Mapping[int, Box] | None = None,
        movie: Movie | None = None,
    ) -> tuple[Finding, ...]:
        """Reasons not to believe it; empty where there is none.

        Args:
            heads: file position → at least 8 bytes from there, as far as they are at hand.
            moofs: file position → parsed moof, as far as they are at hand; a listed sample of them
                must be a sync sample.
            movie: for the default flags of samples.
        """
        findings = Findings()
        if not self.tracks:
            findings.add("mfra-empty", "the mfra names no sync sample", path="mfra")
        defaults = {t.id: t.defaults for t in movie.tracks} if movie else {}
        for track, entries in self.tracks.items():
            place, time = entries.moof_offset, entries.time
            if (place >= self.start).any():
                findings.add("mfra-past-end", "it puts a moof after the media", path="mfra/tfra")
            if (np.diff(place) < 0).any() or (np.diff(time) < 0).any():
                findings.add(
                    "mfra-order",
                    "positions or times do not increase",
                    path="mfra/tfra",
                    track=track,
                )
            for at in (heads or {}).keys() & set(place.tolist()):
                if bytes((heads or {})[at][4:8]) != b"moof":
                    findings.add(
                        "mfra-lie",
                        "there is no moof where the mfra says",
                        offset=at,
                        path="mfra/tfra",
                    )
            for row in np.flatnonzero(np.isin(place, list(moofs or {}))).tolist():
                at = int(place[row])
                if not _is_sync((moofs or {})[at], entries, row, track, defaults.get(track)):
                    findings.add(
                        "mfra-lie",
                        "there is no sync sample where the mfra says",
                        offset=at,
                        path="mfra/tfra",
                        track=track,
                    )
        return findings.all()


def _is_sync(
    moof: Box, entries: Entries, row: int, track: int, defaults: SampleDefaults | None
) -> bool:
    """Whether the sample of an entry is there and a sync sample (8.8.3.1, 8.8.7, 8.8.8)."""
    # One muxer writes traf_number 1 in every tfra: the track_ID tells which traf is meant.
    for traf in moof.find_all("traf"):
        tfhd, truns = traf.find("tfhd"), traf.find_all("trun")
        if tfhd is not None and tfhd["track_ID"] == track:
            break
    else:
        return False
    run, sample = int(entries.trun_number[row]) - 1, int(entries.sample_number[row]) - 1
    if not 0 <= run < len(truns):
        return False
    trun = truns[run]
    if not 0 <= sample < trun["sample_count"]:
        return False
    flags = tfhd.get("default_sample_flags", defaults.flags if defaults else 0)
    if sample == 0 and trun["flags"] & FIRST_SAMPLE_FLAGS:
        flags = trun["first_sample_flags"]
    elif trun["flags"] & SAMPLE_FLAGS:
        flags = int(trun["samples"]["sample_flags"][sample])
    return not flags & NON_SYNC


def read(mfra: Box) -> RandomAccess:
    """The entries of a parsed mfra that knows its place."""
    findings = Findings()
    tracks: dict[int, Entries] = {}
    for tfra in mfra.find_all("tfra"):
        if "entries" not in tfra or not len(tfra["entries"]):
            continue
        rows, track = tfra["entries"], tfra["track_ID"]
        if track in tracks:
            findings.add("mfra-twice", "a second tfra of a track", path="mfra/tfra", track=track)
            continue
        if max(int(rows["moof_offset"].max()), 0) >= FAR:
            findings.add("mfra-damaged", "an impossible place", path="mfra/tfra", track=track)
            continue
        # Read as signed, as decode times are.
        time = rows["time"].astype(np.int64)
        tracks[track] = Entries(
            rows["moof_offset"].astype(np.int64),
            time,
            rows["traf_number"].astype(np.int64),
            rows["trun_number"].astype(np.int64),
            rows["sample_number"].astype(np.int64),
        )
    return RandomAccess(mfra.offset, tracks, findings.all())


def tables(
    access: RandomAccess, movie: Movie, findings: Findings | None = None
) -> dict[int, Tables]:
    """track_ID → fragment and sync table, as the mfra tells them.

    A track without a tfra gets the rows of another one, flagged TIMES_GUESSED. The last row of a
    track reaches to the mfra and ends when the track does, as far as the moov tells.

    Args:
        access: must be without doubts.
        movie: its tracks; without any, each tfra becomes a track.
    """
    findings = findings if findings is not None else Findings()
    if not access.tracks:
        return {}
    infos = movie.tracks or tuple(TrackInfo.unknown(track) for track in access.tracks)
    known = {info.id: info for info in infos}
    named = [info for info in infos if info.id in access.tracks]
    lead = next((i for i in named if i.kind == "video"), named[0] if named else None)
    tables_read = {}
    for info in infos:
        source, flags = info, FragmentFlags.APPROXIMATE
        if info.id not in access.tracks:
            if lead is None or not lead.timescale:
                continue
            source, flags = lead, flags | FragmentFlags.TIMES_GUESSED
            findings.add(
                "mfra-one-track",
                "the mfra does not list this track; times of another track are used",
                path="mfra",
                track=info.id,
            )
        tables_read[info.id] = _table(access, known[source.id], info, movie, flags)
    return tables_read


def _table(
    access: RandomAccess, source: TrackInfo, info: TrackInfo, movie: Movie, flags: FragmentFlags
) -> Tables:
    entries = access.tracks[source.id]
    shift = info.shift(movie.timescale)
    if source.timescale and info.timescale:
        multiply, divide = info.timescale * shift.denominator, source.timescale * shift.denominator
        cts = rescaled(entries.time, multiply, divide, -shift.numerator * source.timescale)
    else:
        cts = entries.time
    # Several entries may lie in one fragment.
    first = np.flatnonzero(np.append(True, np.diff(entries.moof_offset) != 0))
    place, start = entries.moof_offset[first], cts[first]
    stop = np.append(start[1:], _end(info, movie, int(start[-1])))
    fragments, sync = approximate(
        offset=place,
        size=np.append(place[1:], access.start) - place,
        moof=place,
        start=start,
        stop=stop,
        access=start,
        flags=flags,
    )
    if len(first) < len(cts):
        known = np.flatnonzero(cts != NULL)
        row = np.searchsorted(first, known, side="right") - 1
        nothing, zeros = np.full(len(row), NULL), np.zeros(len(row), np.int64)
        sync = SyncTable(cts[known], nothing, zeros, zeros + 1, nothing, zeros, row)
    return fragments, sync


def _end(info: TrackInfo, movie: Movie, after: int) -> int:
    """Composition time at which a track ends, or NULL where the moov does not say."""
    end = info.media_duration
    if not end and movie.duration and movie.timescale:
        shown = movie.duration * info.timescale // movie.timescale
        end = int(shown - info.shift(movie.timescale))
    return end if end > after else NULL
