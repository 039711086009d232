"""A window of frames: the samples that decode them, where these lie, which pictures are wanted.

The bytes themselves are made in `fragdex.muxing.window`, for the decoder of anyone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import InexactIndex, NoSyncSample, TrackNotFound, UndecodableMedia
from fragdex.fragments.table import Int64, SampleTable
from fragdex.record import record
from fragdex.seeking.forms import offered
from fragdex.seeking.numbering import FrameRun, Numbering, SyncStarts, reorder_depth, runs_of
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.seeking.track import Track
from fragdex.sources import SourceLike

__all__ = ["Packet", "Window", "window_at", "window_of"]


class Packet(NamedTuple):
    """One sample, as decoders take it.

    Attributes:
        dts, pts, duration: ticks, in units of 1 / `Window.timescale` seconds; `pts` is the
            presentation time in the video.
        key: whether decoding begins with it: the first one, and others that nothing is before.
        data: as it lies in the file: NAL units after their lengths, OBUs without a temporal
            delimiter.
    """

    dts: int
    pts: int
    duration: int
    key: bool
    data: bytes


@record(frozen=True, slots=True, eq=False, repr=False)
class Window:
    """The samples that a decoder needs for frames of a track, and no others.

    Attributes:
        track: the track.
        first, stop: numbers of the frames as `fragdex.Frames` counts them; stop is exclusive.
        samples: numbers of the samples in the track, in decode order, int64. They begin with a
            sync sample, and are without its leading pictures, which need what comes before.
        starts: places in `samples` at which decoding begins; 0 and, seldom, more, int64.
        wanted: for each frame, its place among the decoded pictures in output order, int64.
        ranges: of the file, rising, merged: exactly the bytes of the samples. Known before
            anything is read.
        init: ranges of the initialization segment, which `mp4`, `annexb` and `obu` read once for
            each index.
        ticks: when each frame is shown in the video, int64, in units of 1 / `timescale` seconds.
        timescale: ticks a second.
        file: what the index knows of the file.

    Of the samples between the sync sample and the last frame that is wanted, no others are left
    out: only their bytes would tell which are needed. Where groups of AVC are open, some more
    follow, without which older decoders keep the last pictures.

    >>> import fragdex
    >>> window = fragdex.index("fixtures/open-gop.mp4").window("video", 14, 18)
    >>> len(window.samples), window.wanted.tolist(), window.times.tolist()
    (8, [2, 3, 4, 5], [0.56, 0.6, 0.64, 0.68])
    """

    track: Track
    first: int
    stop: int
    samples: Int64
    starts: Int64
    wanted: Int64
    ranges: tuple[ByteRange, ...]
    init: tuple[ByteRange, ...]
    ticks: Int64
    timescale: int
    file: FileInfo = field(default=FileInfo())

    def __len__(self) -> int:
        """How many frames are wanted."""
        return self.stop - self.first

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each frame is shown in the video, in seconds of presentation time."""
        return self.ticks / self.timescale

    @property
    def size(self) -> int:
        """Bytes of all ranges."""
        return sum(part.size for part in self.ranges)

    def mp4(
        self,
        source: SourceLike | None = None,
        *,
        keep_times: bool = False,
        init: bytes | None = None,
    ) -> bytes:
        """A progressive MP4 of these samples alone, which decodes to `wanted` and few others.

        Args:
            source: the media in any form that `fragdex.open_source` takes, or an open `Source`,
                which stays open; None: the file that the index was made from.
            keep_times: frames have the presentation times of the video, after an empty edit.
                Else the first decoded picture is shown at 0.
            init: the initialization segment; None: it is read, once for each index.

        Its edit list hides nothing: every sample is shown. Only samples that decoding begins with
        are marked sync.

        Raises:
            NoSyncSample: it would begin with a sample that is wrongly marked sync: make the
                window with `verified=True`.
            UndecodableMedia: the track is encrypted.
            BuildError: sample tables cannot say what the samples need; the message says what.
            SourceChanged: it is not the file that was indexed.
            SourceError: it cannot be read.
        """
        data: bytes = self._form("mp4")(self, source, keep_times=keep_times, init=init)
        return data

    def left_out(
        self, source: SourceLike | None = None, *, init: bytes | None = None
    ) -> tuple[str, ...]:
        """What `mp4` lacks of its track, and of what stands around its samples, as sentences.

        Other tracks are not spoken of. Each sentence has a `code` (`left-out`), `what` and `why`.

        The samples are not read. Args, raises: as `mp4`.

        >>> import fragdex
        >>> window = fragdex.index("fixtures/tags.mp4").window("video", 0, 2)
        >>> [one.what for one in window.left_out()][:1]
        ['meta']
        """
        said: tuple[str, ...] = self._form("left_out")(self, source, init=init)
        return said

    def annexb(self, source: SourceLike | None = None, *, init: bytes | None = None) -> bytes:
        """An elementary stream of AVC, HEVC or VVC with start codes (Annex B of each).

        The parameter sets of the sample entry stand before each sync sample.

        Args, raises: as `mp4`; BuildError: the track is of another codec.
        """
        data: bytes = self._form("annexb")(self, source, init=init)
        return data

    def obu(self, source: SourceLike | None = None, *, init: bytes | None = None) -> bytes:
        """An elementary stream of AV1 in the low-overhead format (AV1 bitstream, 5.2).

        A temporal delimiter stands before each sample.

        Args, raises: as `mp4`; BuildError: the track is of another codec.
        """
        data: bytes = self._form("obu")(self, source, init=init)
        return data

    def packets(self, source: SourceLike | None = None) -> list[Packet]:
        """The samples with their times, in decode order.

        Args, raises: as `mp4`.
        """
        packets: list[Packet] = self._form("packets")(self, source)
        return packets

    def configuration(
        self, source: SourceLike | None = None, *, init: bytes | None = None
    ) -> bytes:
        """What sets up a decoder for `packets`: the payload of avcC, hvcC, vvcC, av1C or vpcC.

        It is WebCodecs' `description` and the extradata of FFmpeg's decoders; of other codecs the
        decoder specific information of the esds; b"" where there is none.

        Args, raises: as `mp4`.
        """
        config: bytes = self._form("configuration")(self, source, init=init)
        return config

    def _form(self, name: str) -> Callable[..., Any]:
        form: Callable[..., Any] = offered("window_form")(name)
        return form

    def __repr__(self) -> str:
        return (
            f"<Window of frames {self.first} to {self.stop} of track {self.track.id}: "
            f"{len(self.samples)} samples, {self.size:,} bytes in {len(self.ranges)} ranges>"
        )


class _Pictures(NamedTuple):
    """What is worked out once of a track.

    Attributes:
        depth: pictures that have to follow the last wanted one in an open group, so that a decoder
            gives it.
    """

    samples: SampleTable
    numbering: Numbering
    starts: SyncStarts
    depth: int


def _pictures(track: Track) -> _Pictures:
    if track.kind != "video" or not track.timescale:
        raise TrackNotFound(f"track {track.id} has no pictures with times", found=track.kind)
    if not track.has_clear_samples:
        raise UndecodableMedia(f"the pictures of track {track.id} are encrypted")
    if not track.exact:
        raise InexactIndex(
            f"the frames of track {track.id} are not known to the sample",
            advice="build the index with exact=True",
        )
    samples = track.samples
    size = None if track.home is None else track.home.file.size
    # The AVC decoder of FFmpeg 5 gives no picture at the end of a stream that it had to hold back
    # since it began at a recovery point (ISO/IEC 14496-10, D.2.8), and not at an IDR picture.
    depth = reorder_depth(samples.cts) if track.info.format.startswith(("avc", "dva")) else 0
    return _Pictures(samples, Numbering(track, samples, size=size), SyncStarts(samples), depth)


def window_of(
    track: Track, first: int, stop: int, *, verified: bool = False, source: SourceLike | None = None
) -> Window:
    """The window of frames `first` to `stop` (exclusive).

    Args, raises: as `Index.window`.
    """
    pictures = track.derived(_pictures)
    samples, numbering = pictures.samples, pictures.numbering
    if not 0 <= first < stop <= len(numbering):
        raise IndexError(
            f"a window has frames from 0 to {len(numbering)} of track {track.id}, and at least "
            f"one: not {first} to {stop}"
        )
    wanted = numbering.sample[first:stop]
    if verified:
        runs = _verified_runs(track, pictures, wanted, source)
    else:
        is_open = pictures.starts.has_leading_pictures()
        runs = _runs(pictures, pictures.starts, wanted, is_open=is_open)
    parts = []
    for run in runs:
        if track.is_encrypted(run.start, run.stop):
            raise UndecodableMedia(
                f"the pictures of track {track.id} are encrypted from frame {first} to {stop}"
            )
        part = np.arange(run.start, run.stop)
        cts = samples.cts[part]
        parts.append(part[(cts >= cts[0]) | np.isin(part, run.wanted)])
    chosen = np.concatenate(parts)
    offset, size = samples.offset[chosen], samples.size[chosen]
    # the picture before a sample without bytes stays
    held = (size > 0) & (offset >= 0)
    chosen, offset, size = chosen[held], offset[held], size[held]
    rank = np.empty(len(chosen), np.int64)
    rank[np.argsort(samples.cts[chosen], kind="stable")] = np.arange(len(chosen))
    home = track.home
    pairs = zip(offset.tolist(), size.tolist(), strict=True)
    return Window(
        track,
        first,
        stop,
        chosen,
        np.searchsorted(chosen, [run.start for run in runs]),
        rank[np.searchsorted(chosen, wanted)],
        tuple(coalesce(ByteRange.of(at, length) for at, length in pairs)),
        () if home is None else home.init,
        numbering.ticks[first:stop],
        numbering.timescale,
        FileInfo() if home is None else home.file,
    )


def _runs(
    pictures: _Pictures, starts: SyncStarts, wanted: Int64, *, is_open: bool
) -> list[FrameRun]:
    """The runs that bring frames out of any decoder; `is_open`: groups may be open."""
    samples, depth = pictures.samples, pictures.depth
    runs = runs_of(wanted.tolist(), starts)
    last = runs[-1]
    if not (depth and last.start and is_open):
        return runs
    cts = samples.cts[last.start :]
    later = np.flatnonzero(cts > cts[np.array(last.wanted) - last.start].max())[:depth]
    if len(later) == depth:
        last = replace(last, stop=max(last.stop, last.start + int(later[-1]) + 1))
    else:
        # At the end of the track it begins a group earlier: once a sync sample has come out,
        # nothing of what is decoded then is held back.
        last = replace(last, start=starts.before(last.start, 1))
    if len(runs) > 1 and last.start < runs[-2].stop:
        before = runs.pop(-2)
        last = FrameRun(before.start, last.stop, (*before.wanted, *last.wanted))
    return [*runs[:-1], last]


def _verified_runs(
    track: Track, pictures: _Pictures, wanted: Int64, source: SourceLike | None
) -> list[FrameRun]:
    """The same; each begins with a sample that a decoder can start at, by its bytes."""
    starts, good = pictures.starts.copy(), set[int]()
    while True:
        runs = _runs(pictures, starts, wanted, is_open=True)
        begins = {run.start for run in runs} - good
        if not begins:
            return runs
        for sample in begins:
            time = track.presentation(int(pictures.samples.cts[sample]))
            true_sync = track.seek(time, verified=True, source=source).sample
            if true_sync is None or true_sync > sample:
                raise NoSyncSample(
                    f"no decoder can start at any sample of track {track.id} before sample "
                    f"{sample + 1}",
                    advice="ask for later frames",
                )
            if true_sync < sample:
                starts.drop(true_sync + 1, sample + 1)
            else:
                good.add(sample)


def window_at(
    track: Track,
    start: TimeLike,
    stop: TimeLike,
    *,
    verified: bool = False,
    source: SourceLike | None = None,
) -> Window:
    """The window of the frames that are shown at some moment from `start` to `stop` (exclusive).

    Args, raises: as `Index.window_at`.
    """
    if exact_time(stop) <= exact_time(start):
        raise ValueError(f"a window has to end ({stop}) after it starts ({start})")
    numbers = track.derived(_pictures).numbering.numbers_between(start, stop)
    if not len(numbers):
        raise IndexError(f"track {track.id} shows no frame from {start} to {stop}")
    return window_of(track, int(numbers[0]), int(numbers[-1]) + 1, verified=verified, source=source)
