"""The codec `fragdex.film` of zarr v3: chunks of a video to frames, or to sound.

`fragdex.bridges.references` writes its settings. zarr finds it by the entry point
`zarr.codecs`, and imports it with the first array that names it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.bridges.references import CODEC, LONGEST_SOUND, digest, samples_within, sound_reader
from fragdex.byterange import ByteRange
from fragdex.decoding.audio import AudioReader
from fragdex.decoding.open_track import stretches
from fragdex.errors import BuildError, DamagedIndex, SourceChanged, UndecodableMedia
from fragdex.formats.fidx import read
from fragdex.frames import Frames
from fragdex.indexing.access import can_start, family_of
from fragdex.muxing.elementary_stream import annexb, obu
from fragdex.sources import Source

LARGEST = 256 << 20
"""Bytes of an index or initialization segment, unpacked."""
_ALWAYS = {"index": str, "init": str, "track": int, "offsets": list, "lengths": list,
           "digests": list}  # fmt: skip
SETTINGS = {**_ALWAYS, "frames": int, "format": str}
SOUND_SETTINGS = {
    **_ALWAYS, "samples": int, "length": int, "rate": int, "channels": int, "dtype": str,
}  # fmt: skip


class _Stretch(Source):
    """The bytes of one chunk, at their place in the video."""

    def __init__(self, size: int | None) -> None:
        super().__init__("a chunk of a video", size=size)
        self.start, self.data = 0, b""

    def read_up_to(self, range: ByteRange) -> bytes:
        cut = self._spend(range)
        if not self.start <= cut.start <= cut.stop <= self.start + len(self.data):
            raise SourceChanged("the bytes of a chunk do not do to decode its frames")
        return self.data[cut.start - self.start : cut.stop - self.start]


class _Chunks:
    """Chunks of one track by their bytes; each is known by its length.

    Args:
        configuration: of the codec.
        settings: the names and types that it has.
        each: the setting that says how long a chunk is.
    """

    def __init__(self, configuration: dict[str, Any], settings: dict[str, type], each: str) -> None:
        if {name: type(value) for name, value in configuration.items()} != settings:
            raise DamagedIndex(
                f"a codec {CODEC} has other settings, or of other types, than "
                + ", ".join(settings)
            )
        self._init = _unpacked(configuration["init"])
        self._index = read(_unpacked(configuration["index"]))
        self._track = self._index.track(configuration["track"])
        self._stretch = _Stretch(self._index.file.size)
        self._count = configuration[each]
        self._offsets, lengths = configuration["offsets"], configuration["lengths"]
        if not all(type(one) is int and one >= 0 for one in (*self._offsets, *lengths)):
            raise DamagedIndex(f"the chunks of a codec {CODEC} have no places")
        self._numbers = {length: number for number, length in enumerate(lengths) if length}
        self._digests = configuration["digests"]
        counts = {len(self._numbers) + lengths.count(0), len(lengths), len(self._offsets)}
        counts |= {len(self._digests)} if self._digests else set()
        if len(counts) != 1 or self._count < 1:
            raise DamagedIndex(f"the chunks of a codec {CODEC} contradict each other")
        self._lock = Lock()

    def _number(self, data: bytes) -> int:
        number = self._numbers.get(len(data))
        if number is None:
            raise SourceChanged(f"no chunk of the video has {len(data)} bytes")
        return number

    def _refuse_other(self, number: int, data: bytes) -> None:
        if self._digests and digest(data) != self._digests[number]:
            raise SourceChanged(f"the bytes of chunk {number} are not those that were indexed")


class FilmChunks(_Chunks):
    """Chunks of a video by their bytes.

    Args:
        configuration: as `references` makes it.

    Raises:
        DamagedIndex: it is not.
    """

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration, SETTINGS, "frames")
        self._film = Frames(
            self._stretch, self._index, self._track, format=configuration["format"], cache=0,
            init=self._init,
        )  # fmt: skip

    def decoded(self, data: bytes) -> npt.NDArray[np.uint8]:
        """The frames of a chunk.

        Raises:
            SourceChanged: these are not bytes of the video that was indexed.
            UndecodableMedia: they cannot be decoded.
        """
        number = self._number(data)
        first = number * self._count
        if first >= len(self._film):
            raise SourceChanged(f"the video has no frame {first}")
        self._refuse_other(number, data)
        stop = min(first + self._count, len(self._film))
        with self._lock:
            self._stretch.start, self._stretch.data = self._offsets[number], data
            self._check(first, stop)
            batch = self._film[first:stop]
            self._stretch.data = b""
        assert not isinstance(batch.data, tuple)
        return batch.data

    def _check(self, first: int, stop: int) -> None:
        """Refuse what cannot be the samples of these frames."""
        window = self._index.window(self._track, first, stop)
        info = self._track.info
        family, size = family_of(info.format), info.nal_length_size
        try:
            for place, packet in enumerate(window.packets(self._stretch)):
                if place in window.starts and not can_start(self._track.info, packet.data):
                    raise BuildError("no decoder can start at it")
                if family is not None:
                    annexb([(packet.data, ())], family, 4 if size is None else size)
                elif info.format == "av01":
                    obu([(packet.data, ())])
        except (BuildError, LookupError) as error:
            raise SourceChanged(
                f"the bytes of frames {first} to {stop} are not samples of the video that was "
                f"indexed ({error})",
                advice="make the references again",
            ) from error


class SoundChunks(_Chunks):
    """Chunks of sound by their bytes.

    Args:
        configuration: as `sound_references` makes it.

    Raises:
        DamagedIndex: it is not.
    """

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration, SOUND_SETTINGS, "samples")
        self._configuration = configuration
        self._rate, self._length = configuration["rate"], configuration["length"]
        too_long = self._count > LONGEST_SOUND * self._rate
        if len(self._digests) != len(self._offsets) or self._rate < 1 or too_long:
            raise DamagedIndex(f"the chunks of a codec {CODEC} contradict each other")
        self._reader().close()

    def _reader(self) -> AudioReader:
        return sound_reader(self._configuration, self._index, self._stretch, self._init)

    def decoded(self, data: bytes) -> npt.NDArray[Any]:
        """The sound of a chunk: shape (samples, channels).

        Raises:
            SourceChanged: these are not bytes of the video that was indexed.
            UndecodableMedia: nothing of them can be decoded.
        """
        number = self._number(data)
        place = ByteRange.of(self._offsets[number], len(data))
        parts = stretches(samples_within(self._track, place))
        begin = place.start
        self._refuse_other(number, b"".join(data[p.start - begin : p.stop - begin] for p in parts))
        first = number * self._count
        last = min(first + self._count, self._length)
        span = Fraction(first, self._rate), Fraction(last, self._rate)
        with self._lock, self._reader() as reader:
            self._stretch.start, self._stretch.data = begin, data
            sound = reader.read(*span)
            self._stretch.data = b""
            gaps = reader.gaps(*span)
        if gaps and not sound.any():
            raise UndecodableMedia(
                f"the sound of track {self._track.id} cannot be decoded: {gaps[0].reason}"
            )
        return sound.reshape(len(sound), -1)


def _unpacked(text: str) -> bytes:
    try:
        packed = base64.b64decode(text, validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, LARGEST)
        if not unpacking.eof:
            raise DamagedIndex(f"a codec {CODEC} has more than {LARGEST:,} bytes, or too few")
    except (ValueError, TypeError, zlib.error) as error:
        raise DamagedIndex(f"the settings of a codec {CODEC} are damaged") from error
    return data


@lru_cache(4)
def _chunks(configuration: str) -> FilmChunks | SoundChunks:
    settings = json.loads(configuration)
    return SoundChunks(settings) if "rate" in settings else FilmChunks(settings)


def _codec() -> Any:
    """The class: zarr is imported here, and by nobody else."""
    base: Any = import_module("zarr.abc.codec").ArrayBytesCodec

    class FilmCodec(base):  # type: ignore[misc]
        """Chunks of a video as zarr v3 reads them; nothing is written."""

        is_fixed_size = False

        def __init__(self, configuration: dict[str, Any]) -> None:
            self._configuration = json.dumps(configuration, sort_keys=True)

        @classmethod
        def from_dict(cls, data: dict[str, Any]) -> Any:
            return cls(data.get("configuration", {}))

        def to_dict(self) -> dict[str, Any]:
            return {"name": CODEC, "configuration": json.loads(self._configuration)}

        def __eq__(self, other: object) -> bool:
            same = isinstance(other, FilmCodec)
            return same and self._configuration == other._configuration  # type: ignore[attr-defined]

        def __hash__(self) -> int:
            return hash(self._configuration)

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
            raise NotImplementedError("chunks of a video have a size each")

        def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            chunk = _chunks(self._configuration).decoded(chunk_bytes.to_bytes())
            if chunk.shape[1:] != chunk_spec.shape[1:] or len(chunk) > chunk_spec.shape[0]:
                raise UndecodableMedia(
                    f"a chunk has the shape {chunk.shape}, and the array {chunk_spec.shape}"
                )
            whole = np.zeros(chunk_spec.shape, chunk.dtype)
            whole[: len(chunk)] = chunk
            return chunk_spec.prototype.nd_buffer.from_numpy_array(whole)

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

        async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
            raise NotImplementedError("videos are read, and not written, as zarr arrays")

    return FilmCodec


def __getattr__(name: str) -> Any:
    if name != "FilmCodec":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _codec()
    return globals()[name]
