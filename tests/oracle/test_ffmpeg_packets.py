"""FFmpeg, asked through PyAV, gives the same packets as the index has samples.

What FFmpeg does to every file alike is undone by oracle/packet_agreement.py. What is left is listed
here by file and track, with the reason and the clause that settles it, and held to be exactly that:
an exception that FFmpeg no longer needs fails as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import fragdex

pytest.importorskip("av", exc_type=ImportError)

import av

from oracle.ffmpeg_packets import PRESENTATION, packets
from oracle.media_files import fixture_files, init_of
from oracle.packet_agreement import disagreements, samples_by_track

FILES = fixture_files()


@dataclass(frozen=True)
class Otherwise:
    """What FFmpeg says differently of one track, and why it is not right."""

    what: frozenset[str]
    clause: str
    why: str


def otherwise(what: str, clause: str, why: str) -> Otherwise:
    return Otherwise(frozenset(what.split()), clause, why)


TFXD = otherwise(
    "dts pts",
    "PIFF 1.1, 5.2.22 (tfxd, fragment_absolute_time); ISO/IEC 14496-12, 8.8.12",
    "FFmpeg does not read tfxd and counts from 0; the track begins at another time",
)
RUN_AFTER_RUN = otherwise(
    "position",
    "ISO/IEC 14496-12, 8.8.8.1: without data_offset a run starts right behind the run before it",
    "FFmpeg starts each run without data_offset at the base again",
)
EXCEPTIONS: dict[tuple[str, int], Otherwise] = {
    ("piff.ismv", 2): TFXD,
    ("piff-encrypted.ismv", 2): TFXD,
    ("piff-lookahead.ismv", 2): TFXD,
    ("smooth-fragment.m4s", 1): TFXD,
    ("chapters.mp4", 3): otherwise(
        "packets",
        "ISO/IEC 14496-12, 8.3.3 (tref); QuickTime File Format, chapter lists ('chap')",
        "FFmpeg turns a chapter track into chapters; its samples lie in the file all the same",
    ),
    ("mpeg2.mov", 1): otherwise(
        "key",
        "ISO/IEC 14496-12, 8.6.2 (stss); QuickTime File Format, partial sync sample atom (stps)",
        "FFmpeg counts partial sync samples, at which decoding is not clean, as key",
    ),
    ("sequence.avif", 1): otherwise(
        "packets",
        "ISO/IEC 14496-12, 8.11 (meta, pitm, iloc)",
        "FFmpeg gives the still picture, an item and no sample, as a packet of the first track",
    ),
    ("made/base-at-data.mp4", 1): RUN_AFTER_RUN,
    ("made/two-runs.mp4", 1): RUN_AFTER_RUN,
    ("made/piff-live.ismv", 1): TFXD,
    ("made/empty-duration.mp4", 1): otherwise(
        "dts pts",
        "ISO/IEC 14496-12, 8.8.7.1 (duration-is-empty) and 8.8.12 (tfdt)",
        "FFmpeg lets a traf without runs move nothing, neither its tfdt nor its empty duration",
    ),
    ("frag-all-sync.mp4", 1): otherwise(
        "key",
        "ISO/IEC 14496-12, 8.8.3.1 (sample_is_non_sync_sample)",
        "FFmpeg takes the key flag from samples that depend on others, too",
    ),
    ("made/first-flags.mp4", 1): otherwise(
        "key",
        "ISO/IEC 14496-12, 8.8.8.1 (first-sample-flags-present, sample-flags-present)",
        "both are there, which is not allowed; FFmpeg takes the sample's own, we the first one's",
    ),
    ("made/moof-64.mp4", 1): otherwise(
        "position size",
        "ISO/IEC 14496-12, 4.2 (largesize) and 8.8.7.1 (default-base-is-moof)",
        "FFmpeg takes a moof to begin 8 bytes before its contents, also behind a 64-bit size",
    ),
    ("made/stss-empty.mp4", 1): otherwise(
        "key",
        "ISO/IEC 14496-12, 8.6.2.1: an stss without entries means no sync samples",
        "FFmpeg makes the first packet a key packet",
    ),
}
# What FFmpeg does not open, and why.
NOT_OPENED = {
    "made/moov-behind.mp4": "it asks for the moov before the fragments (8.2.1 leaves that open)",
    "made/sidx-hierarchical.mp4": "a sidx of sidx (8.16.3) is not implemented",
}

# Files that FFmpeg opens only without what it takes for too damaged. Nothing is lost: what we index
# of the file ends there as well.
UP_TO_THE_DAMAGE = {"cut-in-moof.mp4"}

REFUSED_BY_BOTH = {"cut-in-moov.mp4"}
# Media data without a moov: there is nothing to hold against anything.
NOTHING_TO_COMPARE = {"cut-moov-last.mp4"}
COMPARED = sorted(FILES.keys() - REFUSED_BY_BOTH - NOTHING_TO_COMPARE - NOT_OPENED.keys())


def index_of(name: str) -> fragdex.Index:
    """What the standard's rule says, without repairs, of all that is there."""
    return fragdex.index(
        FILES[name], exact=True, strict=True, partial=True, init=init_of(name) or None
    )


def readable(name: str, tmp_path: Path) -> Path:
    path = FILES[name]
    if name not in UP_TO_THE_DAMAGE:
        return path
    shorter = tmp_path / path.name
    resume = fragdex.index(path, exact=True).resume_offset
    shorter.write_bytes(path.read_bytes()[:resume])
    return shorter


@pytest.mark.parametrize("name", COMPARED)
def test_packets_and_samples_agree(name: str, tmp_path: Path) -> None:
    path = readable(name, tmp_path)
    index = index_of(name)
    theirs = packets(path, init=init_of(name))
    ours = samples_by_track(index)
    for track_id, samples in ours.items():
        differences = disagreements(
            samples,
            theirs.get(track_id, []),
            size=path.stat().st_size,
            fragmented="boxes" in index.how.method,
        )
        expected = EXCEPTIONS.get((name, track_id))
        assert differences == (expected.what if expected else set()), f"track {track_id}"
    items = {track_id for track_id in theirs if track_id not in ours}
    # An AVIF's still picture is a stream for FFmpeg; no file has a track that we overlook.
    assert not items or name == "still.avif"


@pytest.mark.parametrize("name", sorted(REFUSED_BY_BOTH))
def test_what_ffmpeg_finds_nothing_in_is_refused(name: str) -> None:
    with pytest.raises(fragdex.FragdexError):
        index_of(name)
    assert not any(packets(FILES[name]).values())


@pytest.mark.parametrize("name", sorted(NOT_OPENED))
def test_what_ffmpeg_does_not_open_is_indexed_all_the_same(name: str) -> None:
    assert index_of(name).track(1).sample_count
    with pytest.raises(av.FFmpegError):
        packets(FILES[name])


@pytest.mark.parametrize("name", COMPARED)
def test_the_edit_list_moves_presentation_times_alike(name: str, tmp_path: Path) -> None:
    path, init = readable(name, tmp_path), init_of(name)
    media, shown = packets(path, init=init), packets(path, PRESENTATION, init=init)
    for track in index_of(name).tracks:
        # With the edit list applied FFmpeg may leave out what no edit shows, at the end.
        for before, after in zip(media.get(track.id, []), shown.get(track.id, []), strict=False):
            assert before.pts is not None
            assert after.pts is not None
            assert after.pts - before.pts == track.shift


def test_exceptions_are_few_and_name_real_tracks() -> None:
    tracks = {(name, track.id) for name in COMPARED for track in index_of(name).tracks}
    assert tracks >= EXCEPTIONS.keys()
    assert len(EXCEPTIONS) <= 0.05 * len(tracks)
    assert all(one.clause and one.why for one in EXCEPTIONS.values())
