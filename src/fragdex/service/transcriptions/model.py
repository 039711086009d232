"""What requests and answers about transcriptions say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AliasChoices, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator
from typing_extensions import TypeAliasType

from fragdex.service.isobmff.operations import MAX_TRACK_ID
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    NUMBER_OR_TEXT,
    ApiModel,
    Listed,
    RequestBody,
    Seconds,
    written_as,
)
from fragdex.speech.plan import LEAST_SLICE_MS, MOST_SLICE_MS
from fragdex.speech.vocabulary import ENTRY, MOST_ENTRIES, MOST_LETTERS

DEFAULT_SLICE_MS: Final = 30_000


class TranscriptionStatus(StrEnum):
    """How far a transcription is."""

    CREATED = "created"
    PENDING = "pending"
    TRANSCRIBING = "transcribing"
    COMPLETE = "complete"
    FAILED = "failed"


SpeechEngine = TypeAliasType(
    "SpeechEngine", Literal["moonshine", "pocketsphinx", "faster-whisper", "sherpa-onnx"]
)
TrackIdField = Annotated[int, Field(ge=0, le=MAX_TRACK_ID), NUMBER_OR_TEXT]


_LANGUAGE = written_as("[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*", "a language tag, such as en,")
LanguageField = Annotated[str, Field(max_length=35), _LANGUAGE]
SpeakersField = Annotated[
    bool, Field(description="whether words and captions say who speaks (S1, S2 …)")
]
_ENTRY = written_as(ENTRY, "a text of at most four words, with a letter,")
VocabularyField = Annotated[
    list[Annotated[str, Field(max_length=MOST_LETTERS), _ENTRY]],
    Field(
        max_length=MOST_ENTRIES,
        description="names and terms that are preferred where they are said, each of up to four "
        "words",
        examples=[["Ada Lovelace"]],
    ),
]


class _Hearing(RequestBody):
    """How a track is heard."""

    language: LanguageField | None = Field(
        None,
        description="ISO 639-1, or a BCP 47 tag with it; default: what the engine says",
        examples=["en"],
    )
    engine: SpeechEngine | None = Field(None, description="default: the setting `speech_engine`")
    speakers: SpeakersField = False
    vocabulary: VocabularyField = Field(default_factory=list)


class TrackChoice(_Hearing):
    """Which track is heard, and how."""

    track_id: TrackIdField | None = Field(
        None,
        validation_alias=AliasChoices("track_id", "trackId"),
        description="track_ID, as number or text; default: the first audio track. `trackId` is "
        "tolerated",
    )
    _track_member: str = PrivateAttr("track_id")

    @model_validator(mode="wrap")
    @classmethod
    def _note_the_name(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        choice = validate(value)
        if isinstance(value, dict) and "trackId" in value:
            choice._track_member = "trackId"
        return choice

    @property
    def track_member(self) -> str:
        """What the request calls the track: a refusal points there."""
        return self._track_member


class NewTranscription(_Hearing):
    """A transcription to be made."""

    file_id: Annotated[str, Field(min_length=1, max_length=36), NO_NUL] = Field(
        description="of an ISOBMFF file"
    )
    track_id: TrackIdField | None = Field(
        None, description="track_ID, as number or text; default: the first audio track"
    )
    work_slice_ms: Annotated[int, Field(ge=LEAST_SLICE_MS, le=MOST_SLICE_MS), JSON_NUMBER] = (
        DEFAULT_SLICE_MS
    )


class SpeakerNames(RequestBody):
    """What speakers are called."""

    names: dict[str, str] = Field(
        description="by S1, S2 …; those that are left out have no name",
        examples=[{"S1": "Ada"}],
        max_length=1_000,
    )


class Speaker(ApiModel):
    """Somebody who speaks."""

    id: str = Field(description="S1, S2 …, in the order in which they first speak")
    name: str | None


class Gap(ApiModel):
    """A span that could not be heard."""

    start_ms: int
    end_ms: int = Field(description="exclusive")
    reason: str


class HeardTrack(ApiModel):
    """The track that is heard."""

    duration_ms: int = Field(description="where it ends on the presentation's time line")


class Copy(ApiModel):
    """A copy of the file with the captions in it, as a WebVTT track."""

    status: TranscriptionStatus
    isobmff_file_id: str | None = Field(
        description="the copy is an ISOBMFF file of its own, with an index; null until it is made"
    )
    problem: Problem | None


class FileTranscription(ApiModel):
    """The transcription of a file: the newest complete one, else the running, else the failed."""

    id: str
    track_id: int
    status: TranscriptionStatus
    engine: str
    language: str | None = Field(
        description="as requested, else what the engine says of most of the speech; null if unknown"
    )
    work_slice_ms: int
    isobmff_track: HeardTrack
    problem: Problem | None = Field(description="why it failed")
    created_at: str
    started_at: str | None
    completed_at: str | None
    failed_at: str | None


class TranscriptionRecord(FileTranscription):
    """What is, or was, heard in a track."""

    file_id: str
    engine_version: str | None = Field(description="null until a worker has opened it")
    model: str | None = Field(description="of the engine; null until a worker has opened it")
    languages: list[str] = Field(
        description="all that the engine finds, in the order in which they are first spoken; empty "
        "if unknown"
    )
    slices: int | None = Field(description="null until the track is parted")
    slices_done: int
    words: int | None = Field(description="null until it is complete")
    vocabulary: list[str] = Field(description="as requested")
    missing: list[Gap] = Field(description="what could not be heard, once it is complete")
    speakers: list[Speaker] | None = Field(
        description="null if not requested; empty until it is complete"
    )
    seconds: Seconds = Field(
        description="wait (for a worker) and whole; plan and slices as they passed; hear: what all "
        "slices cost together"
    )
    copy_with_captions: Copy | None = Field(description="null until one is requested")


class TranscriptionList(Listed):
    """Transcriptions, newest first."""

    transcriptions: list[TranscriptionRecord]


class BegunTranscription(ApiModel):
    """The transcription of a file that is made, or being made."""

    id: str
    file_id: str
    track_id: int


class Segment(ApiModel):
    """Words that belong together."""

    start: float = Field(description="seconds of the presentation")
    end: float
    text: str
    speaker: str | None = Field(None, description="who says all of it; null where nobody tells")


class WordSegment(ApiModel):
    """A word."""

    text: str
    start: float = Field(description="seconds of the presentation")
    end: float
    confidence: float | None = Field(
        description="that it is this word, 0 to 1; null where the engine gives none"
    )
    time_confidence: float | None = Field(
        description="that its time is right, 0 to 1; null where the engine gives none"
    )
    speaker: str | None = Field(None, description="who says it; null where nobody tells")


class FragmentWords(ApiModel):
    """The words of a work slice."""

    segments: list[Segment]
    word_segments: list[WordSegment]


class MissingSpan(ApiModel):
    """A span that could not be heard, in seconds."""

    start: float
    end: float
    reason: str


class DoubtedSpan(MissingSpan):
    """A span whose words the sound does not bear out, in seconds."""


class UnattributedSpan(MissingSpan):
    """A span whose words have no speaker, in seconds."""


class LanguageSpan(ApiModel):
    """A span whose words are in one language, in seconds."""

    start: float
    end: float
    language: str


class WholeTranscription(FragmentWords):
    """A complete transcription as one document."""

    language: str | None = Field(description="of most of the speech")
    languages: list[LanguageSpan] = Field(
        description="where which language is spoken; none where all is in one"
    )
    text: str
    speakers: list[Speaker] = Field(description="none if not requested")
    missing: list[MissingSpan]
    doubted: list[DoubtedSpan] = Field(description="spans whose words were probably not said")
    unattributed: list[UnattributedSpan] = Field(
        description="spans whose words have no speaker; none if speakers were not requested"
    )
