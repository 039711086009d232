"""The JSON form of an index, read and held against its rules while it arrives.

Large objects and lists are walked, small values are decoded whole: the memory it takes is bounded
by `MAX_VALUE_SIZE`, whatever the length of the text.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, LimitExceeded
from fragdex.formats.fidx_head import no_constant
from fragdex.formats.records import integer
from fragdex.fragments.table import FAR, NULL, FragmentFlags, FragmentTable, SyncTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track

MAX_VALUE_SIZE = 1 << 20
"""Characters of one value that is decoded whole, such as one segment: real ones take 100."""

SPACE = " \t\n\r"


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any number of 64 bits")
    return number


_CUT_NUMBER = re.compile(r"[.eE][+-]?")
"""What stands after the digits of a number whose other digits have not come yet."""

_DECODER = json.JSONDecoder(parse_constant=no_constant, parse_float=_finite)


class JsonStream:
    """A JSON text (RFC 8259, in UTF-8) of which pieces come one after the other."""

    def __init__(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._scan = _DECODER.raw_decode
        self._text, self._place, self._ended = "", 0, False
        self._before = 0
        self.pointer: list[str | int | None] = []
        """Steps to the value that is being read; None: the key is still to come."""

    def names(self) -> Iterator[str]:
        """The keys of the object that stands next; take or walk its value before the next key.

        Raises:
            DamagedIndex: it is not an object, or a key stands in it twice.
        """
        self._expect("{", "an object")
        seen: set[str] = set()
        self.pointer.append(None)
        while True:
            if self._peek() == "}" and not seen:
                break
            key = self.value()
            if not isinstance(key, str):
                self.fail("a key in quotes", key)
            self.pointer[-1] = key
            if key in seen:
                self.fail("each key once", "the same key again")
            seen.add(key)
            self._expect(":", "a colon")
            yield key
            if self._next_of(",}") == "}":
                self.pointer.pop()
                return
        self._place += 1
        self.pointer.pop()

    def elements(self) -> Iterator[Any]:
        """The values of the list that stands next, each decoded whole."""
        self._expect("[", "a list")
        self.pointer.append(0)
        number = 0
        if self._peek() == "]":
            self._place += 1
        else:
            while True:
                self.pointer[-1] = number
                yield self.value()
                number += 1
                if self._next_of(",]") == "]":
                    break
        self.pointer.pop()

    def value(self) -> Any:
        """The value that stands next, decoded whole.

        Raises:
            DamagedIndex: it is not JSON.
            LimitExceeded: it takes more than MAX_VALUE_SIZE characters.
        """
        self._peek()
        wanted = 256
        while True:
            try:
                value, stop = self._scan(self._text, self._place)
            except RecursionError:
                self.fail("values nested a few times", "hundreds of levels")
            except ValueError as error:
                if self._ended:
                    self.fail("JSON", f"something else ({error})")
            else:
                rest = self._text[stop : stop + 3]
                # A number at the end of the text may continue, also with what is not an end of one.
                if self._ended or (rest and not _CUT_NUMBER.fullmatch(rest)):
                    self._place = stop
                    return value
            if len(self._text) - self._place > MAX_VALUE_SIZE:
                raise LimitExceeded(
                    "one value is too long",
                    path=self.where(),
                    offset=self.position(),
                    expected=f"at most {MAX_VALUE_SIZE} characters",
                    found="more",
                )
            # Doubled each time, so that decoding again and again stays linear.
            wanted *= 2
            self._fill(wanted)

    def end(self) -> None:
        """Nothing but space may follow."""
        if self._peek():
            self.fail("the end", self._text[self._place : self._place + 20])

    def where(self) -> str:
        """JSON pointer (RFC 6901) of the value that is being read."""
        return "".join(
            "/" + str(part).replace("~", "~0").replace("/", "~1")
            for part in self.pointer
            if part is not None
        )

    def position(self) -> int:
        """Characters before the place that is being read; bytes where the text is ASCII."""
        return self._before + self._place

    def fail(self, expected: object, found: object) -> NoReturn:
        """Raise the error for what stands at this place."""
        shown = found if isinstance(found, str) else repr(found)
        raise DamagedIndex(
            "the index cannot be read",
            path=self.where(),
            offset=self.position(),
            expected=expected,
            found=shown if len(shown) <= 60 else shown[:57] + "...",
        )

    def _fill(self, wanted: int) -> None:
        """Have at least so many characters in front, or all that are left."""
        parts = [self._text[self._place :]]
        length = len(parts[0])
        try:
            while length < wanted and not self._ended:
                piece = next(self._pieces, None)
                self._ended = piece is None
                text = self._decode(b"" if piece is None else piece, self._ended)
                parts.append(text)
                length += len(text)
        except UnicodeDecodeError as error:
            self.fail("UTF-8", f"the byte {error.object[error.start]:#04x}")
        self._before += self._place
        self._text, self._place = "".join(parts), 0

    def _peek(self) -> str:
        """The next character that is not a space, or "" at the end."""
        while True:
            text, place = self._text, self._place
            while place < len(text) and text[place] in SPACE:
                place += 1
            self._place = place
            if place < len(text):
                return text[place]
            if self._ended:
                return ""
            self._fill(1)

    def _expect(self, character: str, name: str) -> None:
        if self._peek() != character:
            self.fail(name, self._text[self._place : self._place + 20] or "the end")
        self._place += 1

    def _next_of(self, characters: str) -> str:
        token = self._peek()
        if not token or token not in characters:
            self.fail(
                f"one of {characters}", self._text[self._place : self._place + 20] or "the end"
            )
        self._place += 1
        return token


MAX_TRACKS = 1000
"""Tracks of one index; real files have a handful, a cinema master some dozens."""

MAX_KEPT_SIZE = 1 << 20
"""Characters of unknown keys and values that are kept of one index."""

PIECE_SIZE = 1 << 16
"""Bytes decoded at a time where the whole text is at hand."""

WORD = 2**32 - 1
"""The greatest number in a field of 32 bits, as are those of a moov."""

HANDLERS = {"video": "vide", "audio": "soun"}
COLUMNS = ("cts", "dts", "duration", "offset", "size")
NUMBERS = {
    "width": WORD,
    "height": WORD,
    "channel_count": WORD,
    "sample_rate": WORD,
    "sample_size": WORD,
    "timescale": WORD,
    "sample_count": FAR - 1,
    "duration": FAR - 1,
}
"""Keys of a track → the greatest number that each may have."""
SHAPE = tuple(NUMBERS)[:5]

Sizes = int | Mapping[int, int] | None

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_SURROGATES = re.compile("[\ud800-\udfff]")


class WireIndex(Index):
    """An index read from JSON: fragments only, inexact; it remembers the keys it did not know.

    Attributes:
        kept: track id as text → keys of that track that the index has no place for; the key
            `segments` holds those of single segments by their number.
        unknown: keys of the outermost object that name no track.
    """

    __slots__ = ("kept", "unknown")

    kept: dict[str, dict[str, Any]]
    unknown: dict[str, Any]


def read(data: bytes | bytearray | memoryview, *, size: Sizes = None) -> WireIndex:
    """The index in this JSON text.

    Args:
        size: bytes of the file that it describes, or track id → bytes where each track has its
            own; None where they are not known (yet).

    Raises:
        DamagedIndex: it is not JSON, a value is missing or of the wrong type, times or offsets are
            out of order, or lie outside the file; `path` is the JSON pointer of the place.
        LimitExceeded: more tracks or unknown keys than a named limit allows.
    """
    view = memoryview(data).cast("B")
    pieces = (view[start : start + PIECE_SIZE] for start in range(0, len(view), PIECE_SIZE))
    return read_pieces(pieces, size=size)


def read_pieces(
    pieces: Iterable[bytes | bytearray | memoryview], *, size: Sizes = None
) -> WireIndex:
    """`read` of a text that arrives in pieces of any size; memory grows with the segments alone.

    Args and Raises: as `read`.
    """
    return _Reading(JsonStream(pieces), size).index()


class _Reading:
    def __init__(self, stream: JsonStream, size: Sizes) -> None:
        self.stream, self.size = stream, size
        self.kept: dict[str, dict[str, Any]] = {}
        self.unknown: dict[str, Any] = {}
        self._kept_size = 0

    def index(self) -> WireIndex:
        tracks: list[tuple[ByteRange, Track]] = []
        for key in self.stream.names():
            if not _NUMBER.fullmatch(key):
                self.unknown[key] = self._keep(key)
                continue
            track_id = int(key)  # -1 is a track made for scrubbing
            if not -1 <= track_id <= WORD:
                self.stream.fail(f"a track id from -1 to {WORD}", key)
            if len(tracks) == MAX_TRACKS:
                raise LimitExceeded(
                    "too many tracks",
                    path=self.stream.where(),
                    expected=f"at most {MAX_TRACKS}",
                    found="more",
                )
            tracks.append(self._track(key, track_id))
        self.stream.end()
        index = WireIndex(
            FileInfo(size=self.size if isinstance(self.size, int) else None),
            How("index", False, "read from JSON, which has segments but no samples"),
            _periods(tracks),
            resume_offset=max(
                (
                    int(rows.offset[-1] + rows.size[-1])
                    for rows in (track.fragments for _, track in tracks)
                    if len(rows)
                ),
                default=0,
            ),
        )
        index.kept, index.unknown = self.kept, self.unknown
        return index

    def _track(self, key: str, track_id: int) -> tuple[ByteRange, Track]:
        stream = self.stream
        kept = self.kept[key] = {}
        fields: dict[str, Any] = {}
        init = columns = None
        size = self.size.get(track_id) if isinstance(self.size, Mapping) else self.size
        for name in stream.names():
            if name == "segments":
                columns = self._segments(size, kept)
            elif name == "initSegment":
                init = self._init(size, kept)
            elif name == "track":
                if integer(stream.value(), stream.where()) != track_id:
                    stream.fail(f"the key of the object, {track_id}", "another number")
            elif name == "type":
                fields[name] = stream.value()
                if fields[name] not in tuple(HANDLERS):
                    stream.fail("video or audio", fields[name])
            elif name == "codec":
                codec = fields[name] = stream.value()
                # lone surrogates can be written nowhere
                is_text = isinstance(codec, str) and not _SURROGATES.search(codec)
                if codec is not None and not is_text:
                    stream.fail("a string of Unicode", fields[name])
            elif name in NUMBERS:
                value = stream.value()
                if value is not None:
                    fields[name] = integer(value, stream.where(), 0, NUMBERS[name])
                    if name == "sample_count":
                        kept[name] = fields[name]
            elif name == "startTimeOffsetMs":
                if type(offset := stream.value()) not in (int, float):
                    stream.fail("a number", offset)
            else:
                kept[name] = self._keep(name)
        for name in ("type", "timescale"):
            if not fields.get(name):
                stream.fail(f"a key {name}", "none")
        if init is None or columns is None:
            stream.fail(f"a key {'initSegment' if init is None else 'segments'}", "none")
        return init, _track_index(track_id, fields, columns)

    def _init(self, size: int | None, kept: dict[str, Any]) -> ByteRange:
        stream = self.stream
        fields: dict[str, int] = {}
        more = {}
        for name in stream.names():
            if name in ("offset", "size"):
                fields[name] = integer(stream.value(), stream.where(), 0, FAR // 2)
            else:
                more[name] = self._keep(name)
        if len(fields) < 2:
            stream.fail("offset and size", f"only {', '.join(fields) or 'none'}")
        init = ByteRange.of(fields["offset"], fields["size"])
        if size is not None and init.stop > size:
            stream.fail(f"bytes before {size}", init)
        if more:
            kept["initSegment"] = more
        return init

    def _segments(self, size: int | None, kept: dict[str, Any]) -> dict[str, array[int]]:
        stream = self.stream
        # Half of what a column may hold: a time and a duration, a place and a size are added.
        far = FAR // 2
        columns = {name: array("q") for name in COLUMNS}
        last = (-far, -far, 0)  # cts, dts and end of the one before
        for number, segment in enumerate(stream.elements()):
            if not isinstance(segment, dict):
                stream.fail("an object", segment)
            place = stream.where()
            for name, column in columns.items():
                if name not in segment:
                    stream.fail(f"a key {name}", "none")
                least = -far if name in ("cts", "dts") else 0
                column.append(integer(segment[name], f"{place}/{name}", least, far - 1))
            cts, dts, _, offset, length = (column[-1] for column in columns.values())
            if cts < last[0]:
                self._refuse("cts", f"a time from {last[0]} on", cts)
            if dts < last[1]:
                self._refuse("dts", f"a time from {last[1]} on", dts)
            if offset < last[2]:
                self._refuse("offset", f"a byte from {last[2]} on", offset)
            if size is not None and offset + length > size:
                self._refuse("size", f"bytes before {size}", ByteRange.of(offset, length))
            last = (cts, dts, offset + length)
            if len(segment) > len(COLUMNS):
                more = {key: segment[key] for key in segment if key not in COLUMNS}
                self._count(str(more))
                kept.setdefault("segments", {})[number] = more
        return columns

    def _refuse(self, name: str, expected: object, found: object) -> None:
        self.stream.pointer.append(name)
        self.stream.fail(expected, found)

    def _keep(self, key: str) -> Any:
        """The value of a key that nobody here knows, as long as there are few of them."""
        before = self.stream.position()
        value = self.stream.value()
        self._count(key, self.stream.position() - before)
        return value

    def _count(self, text: str, more: int = 0) -> None:
        self._kept_size += len(text) + more
        if self._kept_size > MAX_KEPT_SIZE:
            raise LimitExceeded(
                "too many unknown keys",
                path=self.stream.where(),
                expected=f"at most {MAX_KEPT_SIZE} characters",
                found="more",
            )


def _track_index(
    track_id: int, fields: Mapping[str, Any], columns: Mapping[str, array[int]]
) -> Track:
    codec = fields.get("codec")
    shape: dict[str, Any] = {name: fields.get(name) for name in SHAPE}
    info = TrackInfo(
        track_id,
        HANDLERS[fields["type"]],
        fields["type"],
        fields["timescale"],
        (codec or "").partition(".")[0],
        codec,
        fields.get("duration", 0),
        **shape,
    )
    values = {name: np.frombuffer(column, np.int64) for name, column in columns.items()}
    rows = len(values["cts"])
    unknown = np.full(rows, NULL)
    fragments = FragmentTable.of(
        {column.name: unknown for column in FragmentTable.schema()}
        | {name: values[name] for name in ("offset", "size", "dts", "duration")}
        | {"cts_min": values["cts"], "cts_end": values["cts"] + values["duration"]}
        | {"first_sync": np.zeros(rows), "flags": np.full(rows, FragmentFlags.APPROXIMATE)}
    )
    none, one = np.zeros(rows, np.int64), np.ones(rows, np.int64)
    sync = SyncTable(values["cts"], values["dts"], none, one, unknown, none, np.arange(rows))
    return Track(info, fragments, sync, exact=False)


def _periods(tracks: list[tuple[ByteRange, Track]]) -> Iterator[Period]:
    """Tracks with the same initialization segment stand in one period: each plays with its own."""
    by_init: dict[ByteRange, list[Track]] = {}
    for init, track in tracks:
        by_init.setdefault(init, []).append(track)
    for number, (init, members) in enumerate(by_init.items()):
        for track in members:
            track.period = number
        movie = Movie(0, 0, True, tuple(track.info for track in members))
        yield Period(number, (init,) if init.size else (), movie, tuple(members))
