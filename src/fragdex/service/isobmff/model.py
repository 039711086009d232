"""What requests and answers about ISOBMFF files say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from typing_extensions import TypeAliasType

from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    NUMBER_OR_TEXT,
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
)

# Named types have a name in the OpenAPI document, and in the clients that are written after it.
IsobmffFileStatus = TypeAliasType("IsobmffFileStatus", Literal["created", "ready"])
TrackType = TypeAliasType("TrackType", Literal["video", "audio", "text", "metadata", "other"])
ProbeInfo = TypeAliasType("ProbeInfo", dict[str, Any])

MAX_TRACK_ID = 2**31 - 1
"""Of a signed 32-bit column; ids over it are allowed by the standard and not seen."""


class NewFile(ApiModel):
    """A file to register; its index and its tracks follow, or are made from its bytes."""

    md5: Md5Text
    filename: FileName


class FileRecord(ApiModel):
    """A registered file."""

    id: str
    md5: str = Field(description="dashed")
    filename: str
    byte_size: int | None = Field(
        description="of the file itself; null where only tracks or an index are known"
    )
    status: IsobmffFileStatus = Field(description="ready: it has an index")
    fragment_index_complete: bool
    created_at: str
    index_completed_at: str | None
    expires_at: str | None


class FileList(Listed):
    """ISOBMFF files, newest first."""

    isobmff_files: list[FileRecord]


class TrackFacts(ApiModel):
    """The announcement of a track that is a separate file."""

    track_id: Annotated[int, Field(ge=-1, le=MAX_TRACK_ID), NUMBER_OR_TEXT] = Field(
        description="track_ID, as number or text; -1: the scrub track"
    )
    type: TrackType
    byte_size: ByteSize
    duration_ms: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False), JSON_NUMBER] | None = (
        None
    )
    codec_name: Annotated[str, Field(max_length=40), NO_NUL] | None = None
    probe_info: ProbeInfo | None = Field(
        default=None, description="what the sender knows of the track; given back as it is"
    )

    @field_validator("probe_info")
    @classmethod
    def _without_nul(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        """One database takes no NUL; so none does."""
        # a backslash of the text itself is written twice, and none of NUL's
        if "\\u0000" in json.dumps(value).replace(r"\\", ""):
            raise ValueError("U+0000 cannot be kept")
        return value


class NewTrack(TrackFacts):
    """A track to come, and of which file."""

    file_id: Annotated[str, Field(min_length=1, max_length=36), NO_NUL]


class TrackRecord(ApiModel):
    """A track of a file."""

    file_id: str
    track_id: int
    type: str
    codec_name: str | None
    duration_ms: int | None
    byte_size: int | None = Field(description="null for a track that only the index has")
    next_byte: int = Field(description="bytes before this one are here to stay")
    complete: bool
    md5: str | None = Field(description="of the track's own bytes, dashed; null until all are here")
    probe_info: ProbeInfo | None
    created_at: str | None
    completed_at: str | None


class TrackList(ApiModel):
    """The tracks of a file, by their ids."""

    isobmff_tracks: list[TrackRecord]


class FileWithTracks(FileRecord):
    """A registered file and its tracks."""

    tracks: list[TrackRecord]


class Place(ApiModel):
    """Bytes of the track's file, or of the file itself where its tracks are not apart."""

    offset: int
    size: int


class SeekAnswer(ApiModel):
    """Where decoding starts for a moment: the last sync sample at or before it."""

    track: int
    fragment: int = Field(description="row of the track's fragment table, from 0")
    cts: int = Field(
        description="presentation time of the sync sample, edit list applied, in ticks"
    )
    dts: int | None = Field(description="its decode time on the same timeline; null: unknown")
    duration: int | None = Field(description="ticks of the fragment; null: unknown")
    timescale: int = Field(description="ticks a second")
    time_ms: float = Field(description="presentation time of the sync sample")
    offset: int
    size: int
    init: Place = Field(description="the initialization segment, to be fetched once")
    ranges: list[Place] | None = Field(
        default=None,
        description="with end_ms: merged ranges that hold all from here until before it",
    )


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """Which objects of the store are the index of a file; no object ever changes.

    Attributes:
        file: a `.fidx` of the whole file, or None.
        json: the JSON it was sent as, or None.
        tracks: (track id, `.fidx` of the track's own file) of tracks indexed by themselves, which
            stand above what `file` says of the same id.
    """

    file: str | None
    json: str | None
    tracks: tuple[tuple[int, str], ...]
