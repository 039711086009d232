"""Operations on transcriptions. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from fragdex.byterange import ByteRange
from fragdex.client.api.records import Event, Problem
from fragdex.client.exchange import Request, operation

# fmt: off
__all__ = [
    "BegunTranscription", "Copy", "DoubtedSpan", "FileTranscription", "FragmentWords", "Gap",
    "HeardTrack", "LanguageSpan", "MissingSpan", "Segment", "Speaker", "TranscriptionList",
    "TranscriptionRecord", "UnattributedSpan", "WholeTranscription", "WordSegment",
    "cancel_transcription", "copy_transcription", "create_transcription", "delete_transcription",
    "download_transcription_json", "download_transcription_mp4", "download_transcription_srt",
    "download_transcription_vtt", "get_file_transcription", "get_isobmff_file_transcription",
    "get_transcription", "get_transcription_fragment", "get_transcription_progress",
    "head_transcription_json", "head_transcription_mp4", "head_transcription_srt",
    "head_transcription_vtt", "list_transcriptions", "transcribe_file", "transcribe_isobmff_file",
    "update_transcription_speakers",
]
# fmt: on


class BegunTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """The transcription of a file that is made, or being made."""

    file_id: str
    id: str
    track_id: int


class DoubtedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span whose words the sound does not bear out, in seconds."""

    end: float
    reason: str
    start: float


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


class LanguageSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span whose words are in one language, in seconds."""

    end: float
    language: str
    start: float


class MissingSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span that could not be heard, in seconds."""

    end: float
    reason: str
    start: float


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Words that belong together."""

    end: float
    speaker: str | None = None
    """Who says all of it; null where nobody tells."""
    start: float
    """Seconds of the presentation."""
    text: str


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who speaks."""

    id: str
    """S1, S2 …, in the order in which they first speak."""
    name: str | None


class UnattributedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A span whose words have no speaker, in seconds."""

    end: float
    reason: str
    start: float


class WordSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A word."""

    confidence: float | None
    """That it is this word, 0 to 1; null where the engine gives none."""
    end: float
    speaker: str | None = None
    """Who says it; null where nobody tells."""
    start: float
    """Seconds of the presentation."""
    text: str
    time_confidence: float | None
    """That its time is right, 0 to 1; null where the engine gives none."""


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


class FileTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """The transcription of a file: the newest complete one, else the running, else the failed."""

    completed_at: datetime | None
    created_at: datetime
    engine: str
    failed_at: datetime | None
    id: str
    isobmff_track: HeardTrack
    language: str | None
    """As requested, else what the engine says of most of the speech; null if unknown."""
    problem: Problem | None
    """Why it failed."""
    started_at: datetime | None
    status: Literal["created", "pending", "transcribing", "complete", "failed"]
    track_id: int
    work_slice_ms: int


class TranscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is, or was, heard in a track."""

    completed_at: datetime | None
    copy_with_captions: Copy | None
    """Null until one is requested."""
    created_at: datetime
    engine: str
    engine_version: str | None
    """Null until a worker has opened it."""
    failed_at: datetime | None
    file_id: str
    id: str
    isobmff_track: HeardTrack
    language: str | None
    """As requested, else what the engine says of most of the speech; null if unknown."""
    languages: tuple[str, ...]
    """All that the engine finds, in the order in which they are first spoken; empty if unknown.
    """
    missing: tuple[Gap, ...]
    """What could not be heard, once it is complete."""
    model: str | None
    """Of the engine; null until a worker has opened it."""
    problem: Problem | None
    """Why it failed."""
    seconds: Mapping[str, float]
    """Wait (for a worker) and whole; plan and slices as they passed; hear: what all slices cost
    together.
    """
    slices: int | None
    """Null until the track is parted."""
    slices_done: int
    speakers: tuple[Speaker, ...] | None
    """Null if not requested; empty until it is complete."""
    started_at: datetime | None
    status: Literal["created", "pending", "transcribing", "complete", "failed"]
    track_id: int
    vocabulary: tuple[str, ...]
    """As requested."""
    words: int | None
    """Null until it is complete."""
    work_slice_ms: int


class TranscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    """Transcriptions, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    transcriptions: tuple[TranscriptionRecord, ...]


class WholeTranscription(msgspec.Struct, frozen=True, kw_only=True):
    """A complete transcription as one document."""

    doubted: tuple[DoubtedSpan, ...]
    """Spans whose words were probably not said."""
    language: str | None
    """Of most of the speech."""
    languages: tuple[LanguageSpan, ...]
    """Where which language is spoken; none where all is in one."""
    missing: tuple[MissingSpan, ...]
    segments: tuple[Segment, ...]
    speakers: tuple[Speaker, ...]
    """None if not requested."""
    text: str
    unattributed: tuple[UnattributedSpan, ...]
    """Spans whose words have no speaker; none if speakers were not requested."""
    word_segments: tuple[WordSegment, ...]


@operation("POST", "/api/v1/files/{id}/transcribe", BegunTranscription)
def transcribe_file(
    id: str,
    *,
    idempotency_key: str | None = None,
    engine: Literal["moonshine", "pocketsphinx", "faster-whisper", "sherpa-onnx"] | None = None,
    language: str | None = None,
    speakers: bool | None = None,
    track_id: int | str | None = None,
    vocabulary: tuple[str, ...] | None = None,
) -> Request[BegunTranscription]:
    """Transcribe the speech of a video; 200 if one with this track, engine, language, vocabulary and
    speakers is running or complete.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        engine: default: the setting `speech_engine`.
        language: ISO 639-1, or a BCP 47 tag with it; default: what the engine says.
        speakers: whether words and captions say who speaks (S1, S2 …).
        track_id: track_ID, as number or text; default: the first audio track. `trackId` is
            tolerated.
        vocabulary: names and terms that are preferred where they are said, each of up to four
            words.
    """


@operation("GET", "/api/v1/files/{id}/transcription", FileTranscription)
def get_file_transcription(id: str) -> Request[FileTranscription]:
    """The newest complete transcription of a video; else the running one, or the last that failed."""


@operation("POST", "/api/v1/isobmff_files/{id}/transcribe", BegunTranscription)
def transcribe_isobmff_file(
    id: str,
    *,
    idempotency_key: str | None = None,
    engine: Literal["moonshine", "pocketsphinx", "faster-whisper", "sherpa-onnx"] | None = None,
    language: str | None = None,
    speakers: bool | None = None,
    track_id: int | str | None = None,
    vocabulary: tuple[str, ...] | None = None,
) -> Request[BegunTranscription]:
    """Transcribe the speech of an ISOBMFF file; 200 if one with this track, engine, language,
    vocabulary and speakers is running or complete.

    Args: as of `transcribe_file`.
    """


@operation("GET", "/api/v1/isobmff_files/{id}/transcription", FileTranscription)
def get_isobmff_file_transcription(id: str) -> Request[FileTranscription]:
    """The newest complete transcription of an ISOBMFF file; else the running one, or the last that
    failed.
    """


@operation("GET", "/api/v1/transcriptions", TranscriptionList)
def list_transcriptions(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["created", "pending", "transcribing", "complete", "failed"] | None = None,
) -> Request[TranscriptionList]:
    """Transcriptions, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """


@operation("POST", "/api/v1/transcriptions", TranscriptionRecord)
def create_transcription(
    *,
    file_id: str,
    idempotency_key: str | None = None,
    engine: Literal["moonshine", "pocketsphinx", "faster-whisper", "sherpa-onnx"] | None = None,
    language: str | None = None,
    speakers: bool | None = None,
    track_id: int | str | None = None,
    vocabulary: tuple[str, ...] | None = None,
    work_slice_ms: int | None = None,
) -> Request[TranscriptionRecord]:
    """Transcribe the speech of a track. Always creates a new transcription; earlier ones stay.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        engine: default: the setting `speech_engine`.
        file_id: of an ISOBMFF file.
        language: ISO 639-1, or a BCP 47 tag with it; default: what the engine says.
        speakers: whether words and captions say who speaks (S1, S2 …).
        track_id: track_ID, as number or text; default: the first audio track.
        vocabulary: names and terms that are preferred where they are said, each of up to four
            words.
    """


@operation("GET", "/api/v1/transcriptions/{id}", TranscriptionRecord)
def get_transcription(id: str) -> Request[TranscriptionRecord]:
    """The record of a transcription."""


@operation("DELETE", "/api/v1/transcriptions/{id}")
def delete_transcription(id: str) -> Request[None]:
    """Delete a transcription and its words; stop it if it runs. A copy stays."""


@operation("GET", "/api/v1/transcriptions/{id}.json", WholeTranscription)
def download_transcription_json(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[WholeTranscription]:
    """A complete transcription as json.

    Args:
        line_length: characters of a line.
        max_lines: lines of a caption.
        reading_speed: characters a second.
        min_duration_ms: a caption stays at least.
        max_duration_ms: a caption stays at most.
        leave_out_doubted: without words that the sound does not bear out.
    """


@operation("HEAD", "/api/v1/transcriptions/{id}.json")
def head_transcription_json(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[None]:
    """A complete transcription as json.

    Args: as of `download_transcription_json`.
    """


@operation("GET", "/api/v1/transcriptions/{id}.mp4", bytes)
def download_transcription_mp4(id: str, *, range: ByteRange | None = None) -> Request[bytes]:
    """The copy of the file with the captions in it; 404 if none was requested."""


@operation("HEAD", "/api/v1/transcriptions/{id}.mp4")
def head_transcription_mp4(id: str) -> Request[None]:
    """The copy of the file with the captions in it; 404 if none was requested."""


@operation("GET", "/api/v1/transcriptions/{id}.srt", bytes)
def download_transcription_srt(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[bytes]:
    """A complete transcription as srt.

    Args: as of `download_transcription_json`.
    """


@operation("HEAD", "/api/v1/transcriptions/{id}.srt")
def head_transcription_srt(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[None]:
    """A complete transcription as srt.

    Args: as of `download_transcription_json`.
    """


@operation("GET", "/api/v1/transcriptions/{id}.vtt", bytes)
def download_transcription_vtt(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[bytes]:
    """A complete transcription as vtt.

    Args: as of `download_transcription_json`.
    """


@operation("HEAD", "/api/v1/transcriptions/{id}.vtt")
def head_transcription_vtt(
    id: str,
    *,
    line_length: int | None = None,
    max_lines: int | None = None,
    reading_speed: float | None = None,
    min_duration_ms: int | None = None,
    max_duration_ms: int | None = None,
    leave_out_doubted: bool | None = None,
) -> Request[None]:
    """A complete transcription as vtt.

    Args: as of `download_transcription_json`.
    """


@operation("POST", "/api/v1/transcriptions/{id}/cancel", TranscriptionRecord)
def cancel_transcription(id: str) -> Request[TranscriptionRecord]:
    """Cancel a transcription: it becomes `failed`. 409 if it is complete."""


@operation("POST", "/api/v1/transcriptions/{id}/copy", TranscriptionRecord)
def copy_transcription(id: str) -> Request[TranscriptionRecord]:
    """Make a copy of the file with the captions as a WebVTT track.

    The copy is an ISOBMFF file of its own, indexed like any other (`copy_with_captions`); its
    bytes are those of `/transcriptions/ID.mp4`.
    """


@operation("GET", "/api/v1/transcriptions/{id}/fragments/{n}", FragmentWords)
def get_transcription_fragment(id: str, n: str) -> Request[FragmentWords]:
    """The words of a slice, times in seconds; 404 until it and its neighbours are transcribed."""


@operation("GET", "/api/v1/transcriptions/{id}/progress", Event)
def get_transcription_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """The progress of a transcription as events; without `Last-Event-ID` from the beginning.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """


@operation("PUT", "/api/v1/transcriptions/{id}/speakers", TranscriptionRecord)
def update_transcription_speakers(
    id: str, *, names: Mapping[str, str]
) -> Request[TranscriptionRecord]:
    """Name the speakers of a complete transcription, in place of earlier names.

    Args:
        names: by S1, S2 …; those that are left out have no name.
    """
