"""Records of transcriptions. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from fragdex.client.api.shared_records import Problem

__all__ = [
    "BegunTranscription",
    "Copy",
    "FileTranscription",
    "FragmentWords",
    "Gap",
    "HeardTrack",
    "MissingSpan",
    "Segment",
    "TranscriptionList",
    "TranscriptionRecord",
    "WholeTranscription",
    "WordSegment",
]


class BegunTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """The transcription of a file that is being made."""

    file_id: str
    id: str
    track_id: int


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A span that could not be heard."""

    end_ms: int
    """Exclusive."""
    reason: str
    start_ms: int


class HeardTrack(msgspec.Struct, frozen=True, kw_only=True):
    """The track that is heard."""

    duration_ms: int
    """Where it ends on the presentation's time line."""


class MissingSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span that could not be heard, in seconds."""

    end: float
    reason: str
    start: float


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Words that belong together."""

    end: float
    start: float
    """Seconds of the presentation."""
    text: str


class WordSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A word."""

    confidence: float | None
    """0 to 1; null where the engine gives none."""
    end: float
    start: float
    """Seconds of the presentation."""
    text: str


class FileTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """The transcription of a file: the newest complete one, or else the newest that is made."""

    id: str
    isobmff_track: HeardTrack
    work_slice_ms: int


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the file with the captions in it, as a WebVTT track."""

    isobmff_file_id: str | None
    """The copy is an ISOBMFF file of its own, with an index; null until it is made."""
    problem: Problem | None
    status: Literal["created", "pending", "transcribing", "complete", "failed"]


class FragmentWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a work slice."""

    segments: tuple[Segment, ...]
    word_segments: tuple[WordSegment, ...]


class WholeTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """A complete transcription as one document."""

    language: str | None
    missing: tuple[MissingSpan, ...]
    segments: tuple[Segment, ...]
    text: str
    word_segments: tuple[WordSegment, ...]


class TranscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is, or was, heard in a track."""

    completed_at: datetime | None
    copy_with_captions: Copy | None
    """Null until one is asked for."""
    created_at: datetime
    engine: str
    engine_version: str | None
    """Null until a worker has opened it."""
    failed_at: datetime | None
    file_id: str
    id: str
    isobmff_track: HeardTrack
    language: str | None
    """As asked for, then as heard; null: nobody knows."""
    missing: tuple[Gap, ...]
    """What could not be heard, once it is complete."""
    model: str | None
    """Of the engine; null until a worker has opened it."""
    problem: Problem | None
    seconds: Mapping[str, float]
    """Wait (for a worker) and whole; plan and slices as they passed; hear: what all slices cost
    together.
    """
    slices: int | None
    """Null until the track is parted."""
    slices_done: int
    started_at: datetime | None
    status: Literal["created", "pending", "transcribing", "complete", "failed"]
    track_id: int
    words: int | None
    """Null until it is complete."""
    work_slice_ms: int


class TranscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    """Transcriptions, newest first."""

    next_cursor: str | None
    """Asks for the next page; null on the last."""
    transcriptions: tuple[TranscriptionRecord, ...]
