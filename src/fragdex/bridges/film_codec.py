"""The codec `fragdex.film` of zarr v3: chunks of a video to frames (`fragdex.bridges.references`).

zarr finds it by the entry point `zarr.codecs`, and imports it with the first array that names it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.bridges.references import CODEC, digest
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, DamagedIndex, SourceChanged, UndecodableMedia
from fragdex.formats.elementary_stream import annexb, obu
from fragdex.formats.fidx import read
from fragdex.formats.window import can_start
from fragdex.frames import Frames
from fragdex.indexing.access import family_of
from fragdex.sources import Source

LARGEST = 256 << 20
"""Bytes of an index or initialization segment, unpacked."""
SETTINGS = {
    "index": str, "init": str, "track": int, "frames": int, "format": str, "offsets": list,
    "lengths": list, "digests": list,
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


class FilmChunks:
    """Chunks of a video by their bytes.

    Args:
        configuration: as `references` makes it.

    Raises:
        DamagedIndex: it is not.

    >>> from fragdex.bridges.references import references
    >>> from pathlib import Path
    >>> film = Path("fixtures/open-gop.mp4").read_bytes()
    >>> refs = references(film, "s3://films/open-gop.mp4")["refs"]
    >>> chunks = FilmChunks(json.loads(refs["frames/zarr.json"])["codecs"][0]["configuration"])
    >>> _, offset, length = refs["frames/c/4/0/0/0"]
    >>> chunks.decoded(film[offset : offset + length]).shape
    (2, 48, 64, 3)
    """

    def __init__(self, configuration: dict[str, Any]) -> None:
        if {name: type(value) for name, value in configuration.items()} != SETTINGS:
            raise DamagedIndex(
                f"a codec {CODEC} has other settings, or of other types, than "
                + ", ".join(SETTINGS)
            )
        index = read(_unpacked(configuration["index"]))
        track = index.track(configuration["track"])
        self._stretch = _Stretch(index.file.size)
        self._index, self._track, self._count = index, track, configuration["frames"]
        self._offsets, lengths = configuration["offsets"], configuration["lengths"]
        if not all(type(one) is int and one >= 0 for one in (*self._offsets, *lengths)):
            raise DamagedIndex(f"the chunks of a codec {CODEC} have no places")
        self._numbers = {length: number for number, length in enumerate(lengths)}
        self._digests = configuration["digests"]
        counts = {len(self._numbers), len(lengths), len(self._offsets)}
        counts |= {len(self._digests)} if self._digests else set()
        if len(counts) != 1 or self._count < 1:
            raise DamagedIndex(f"the chunks of a codec {CODEC} contradict each other")
        self._film = Frames(
            self._stretch, index, track, format=configuration["format"], cache=0,
            init=_unpacked(configuration["init"]),
        )  # fmt: skip
        self._lock = Lock()

    def decoded(self, data: bytes) -> npt.NDArray[np.uint8]:
        """The frames of a chunk.

        Raises:
            SourceChanged: these are no bytes of the video that was indexed.
            UndecodableMedia: they cannot be decoded.
        """
        number = self._numbers.get(len(data))
        first = 0 if number is None else number * self._count
        if number is None or first >= len(self._film):
            raise SourceChanged(f"no chunk of the video has {len(data)} bytes")
        if self._digests and digest(data) != self._digests[number]:
            raise SourceChanged(f"the bytes of chunk {number} are not those that were indexed")
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
                if place in window.starts and not can_start(self._track, packet.data):
                    raise BuildError("no decoder can start at it")
                if family is not None:
                    annexb([(packet.data, ())], family, 4 if size is None else size)
                elif info.format == "av01":
                    obu([(packet.data, ())])
        except (BuildError, LookupError) as error:
            raise SourceChanged(
                f"the bytes of frames {first} to {stop} are no samples of the video that was "
                f"indexed ({error})",
                advice="make the references again",
            ) from error


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
def _chunks(configuration: str) -> FilmChunks:
    return FilmChunks(json.loads(configuration))


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
            frames = _chunks(self._configuration).decoded(chunk_bytes.to_bytes())
            if frames.shape[1:] != chunk_spec.shape[1:] or len(frames) > chunk_spec.shape[0]:
                raise UndecodableMedia(
                    f"frames have the shape {frames.shape}, and the array {chunk_spec.shape}"
                )
            whole = np.zeros(chunk_spec.shape, np.uint8)
            whole[: len(frames)] = frames
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
