"""`fragdex.Frames`: frames of a file by number and by time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from fractions import Fraction
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Unpack, overload

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange, Fetched
from fragdex.decoding.audio import AudioOptions, SoundArray, audio
from fragdex.errors import UndecodableMedia
from fragdex.formats.fidx import open_index
from fragdex.fragments.table import Int64
from fragdex.frames.arrays import (
    CONVERSIONS,
    ArrayConverter,
    ArrayGathering,
    Conversion,
    IntegerConverter,
    NumpyArrays,
    OutputLibrary,
    library_of,
)
from fragdex.frames.decode_runs import (
    FramePlan,
    Give,
    LateError,
    are_apart,
    decode_run,
    reads_of,
)
from fragdex.frames.decoders import OF_DEVICES, CachePart, FrameCache
from fragdex.frames.frame_batch import Frame, FrameBatch, LazyArray, PixelArray
from fragdex.frames.frame_track import FrameTrack
from fragdex.frames.pixels import Converter, Gathering, PixelFormat, Rows, is_of_device
from fragdex.renamed import OldName
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import Order
from fragdex.seeking.sample_runs import FrameRun, runs_of
from fragdex.seeking.seek import Selection
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceLike, SourceOptions, check_options, open_source

if TYPE_CHECKING:
    from typing import Self


READ_AT_ONCE: Final = 32 << 20
"""Bytes of samples that are read before they are decoded."""
REMOTE_READS: Final = 8
"""Reads of a remote file at once, while what came before is decoded."""
LONG: Final = 8
"""Samples of a run that several threads of one decoder share."""
NEAR: Final = 64
"""Samples between two calls that continue in a video."""

Parts = Sequence[bytes | None]


class _Ready(NamedTuple):
    run: FrameRun
    parts: Parts
    trusted: bool
    kept: int | None


class FrameReader:
    """Pictures of samples of a track.

    Args:
        track: that is open.
        threads: that decode.
        cache: pictures and samples that are held for the next call; several may share one.

    Attributes:
        decoded: pictures that were decoded so far.
    """

    def __init__(self, track: FrameTrack, *, threads: int, cache: FrameCache) -> None:
        self._track, self._threads = track, threads
        self._cache = CachePart(cache)
        self._count = Lock()
        self.decoded = 0
        self._last = -1  # the last wanted sample of the last call
        self._ahead: dict[int, Parts] = {}
        self._picture_bytes = 0

    def plan(self, samples: Iterable[int]) -> FramePlan:
        """What reading these samples costs, as far as nothing of them is held."""
        wanted = set(samples)
        runs = runs_of(wanted, self._track.starts)
        decoded = sum(run.stop - run.start for run in runs)
        return FramePlan(len(wanted), decoded, self._reads(runs), len(runs))

    def read(self, samples: Iterable[int], give: Give) -> dict[int, str]:
        """Decode samples.

        Args:
            samples: in any order.
            give: called once for each with its picture, by any thread.

        Returns: those without a picture, and why.

        Raises: what reading the source raises.
        """
        try:
            return self._read(samples, give)
        finally:
            self._ahead.clear()

    def read_ahead(self, samples: Iterable[int]) -> None:
        """Read the bytes that `read` of the same samples needs, and hold them for it.

        Nothing, if that is more than is read at once.
        """
        wanted = {sample for sample in samples if self._cache.get(sample) is None}
        runs = runs_of(wanted, self._track.starts)
        portions = list(self._portions([(run, None) for run in runs]))
        if len(portions) == 1:
            starts = (run.start for run in runs)
            self._ahead = dict(zip(starts, self._bytes(runs), strict=True))

    def _read(self, samples: Iterable[int], give: Give) -> dict[int, str]:
        left = set()
        for sample in sorted(set(samples)):
            cached = self._cache.get(sample)
            if cached is None:
                left.add(sample)
            else:
                give(sample, cached)
        missing: dict[int, str] = {}
        steps = 0
        while left:
            runs = runs_of(left, self._track.starts)
            if steps:
                back = self._track.starts.before
                runs = [FrameRun(back(r.start, steps), r.stop, r.wanted) for r in runs]
            failures, left = self._pass(runs, give)
            missing |= failures
            steps = 2 * steps + 1
        return missing

    def forget(self) -> None:
        """Give back what is held; the next call continues nowhere."""
        self._cache.clear()
        self._ahead.clear()
        self._last = -1

    def _pass(self, runs: list[FrameRun], give: Give) -> tuple[dict[int, str], set[int]]:
        """Decode runs; those that begin where no decoder can are left."""
        missing: dict[int, str] = {}
        left: set[int] = set()
        if len(runs) == 1 or self._threads == 1:
            for ready in self._ready(runs, left):
                missing |= self._decode(ready, give, self._threads)
            return missing, left
        under_way: set[Future[dict[int, str]]] = set()
        with ThreadPoolExecutor(self._threads, "fragdex-frames") as pool:
            try:
                for ready in self._ready(runs, left):
                    under_way.add(pool.submit(self._decode, ready, give, 1))
                    if len(under_way) > 2 * self._threads:
                        done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                        for one in done:
                            missing |= one.result()
                for one in under_way:
                    missing |= one.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return missing, left

    def _decode(self, ready: _Ready, give: Give, threads: int) -> dict[int, str]:
        run, wanted = ready.run, set(ready.run.wanted)
        watched = run
        if ready.kept is not None:
            # What is held for the next call has to be known as undamaged, too.
            watched = replace(run, wanted=tuple(sorted({*wanted, *range(ready.kept, run.stop)})))
        decoded = 0
        cached: dict[int, Any] = {}
        track = self._track

        def take(sample: int, picture: Any) -> None:
            nonlocal decoded
            decoded += 1
            if track.decoders.device is not None and not is_of_device(picture):
                coding = track.coding
                entry = 1 if coding.entries is None else int(coding.entries[sample])
                track.decoders.leave_device(entry, "it has no decoder for this coding")
            if sample in wanted:
                give(sample, picture)
            if ready.kept is not None and sample >= ready.kept:
                cached[sample] = picture

        # One decoder of a device keeps it busy: threads of its own would each open another one.
        alone = run.stop - run.start < LONG or track.decoders.device is not None
        threads = 1 if alone else threads
        for own in (threads, 1):
            try:
                with track.decoders.turn():
                    missing = decode_run(
                        watched, ready.parts, track.decoders, track.coding, take, threads=own,
                        trusted=ready.trusted, skip=ready.kept is None,
                    )  # fmt: skip
            except LateError:
                cached.clear()
                continue
            finally:
                with self._count:
                    self.decoded += decoded
                decoded = 0
            for sample, picture in cached.items():
                if sample not in missing:
                    size = sum(plane.buffer_size for plane in picture.planes)
                    self._picture_bytes = max(self._picture_bytes, size)
                    self._cache.put(sample, picture, size)
            return {sample: reason for sample, reason in missing.items() if sample in wanted}
        raise AssertionError("one thread knows whose damage it is")

    # -- reading

    def _ready(self, runs: Sequence[FrameRun], left: set[int]) -> Iterator[_Ready]:
        """Runs with their bytes, in order; what has to begin earlier goes to `left`."""
        goes_on = self._last >= 0 and abs(runs[0].wanted[0] - self._last) <= NEAR
        self._last = runs[-1].wanted[-1]
        requests: list[tuple[FrameRun, int | None]] = [(run, None) for run in runs]
        # A decoder has few places on a device for its pictures: none can be held there.
        if goes_on and self._cache.limit and not self._track.decoders.stays:
            requests[-1] = self._further(runs[-1])
        for some in self._portions(requests):
            for (run, kept), parts in zip(some, self._bytes([r for r, _ in some]), strict=True):
                placed = self._placed(run, parts)
                if placed is None:
                    left.update(run.wanted)
                else:
                    yield _Ready(*placed, kept)

    def _further(self, run: FrameRun) -> tuple[FrameRun, int]:
        """The last run of a call that continues, made longer, and where the held part begins.

        The next call will want what follows.
        """
        room = self._cache.limit // 2 // self._picture_bytes if self._picture_bytes else 0
        end = self._track.starts.end(run.start, len(self._track.samples))
        stop = max(min(run.stop + room, end), run.stop)
        return FrameRun(run.start, stop, run.wanted), max(run.wanted[0] - room // 4, 0)

    def _portions(
        self, runs: Sequence[tuple[FrameRun, int | None]]
    ) -> Iterator[list[tuple[FrameRun, int | None]]]:
        source, samples = self._track.source, self._track.samples
        # A budget of requests wants to know all reads, to put some together.
        few = source.remote and self._threads > 1 and source.max_requests is None
        size = reads = 0
        some: list[tuple[FrameRun, int | None]] = []
        for run, kept in runs:
            more = int(samples.size[run.start : run.stop].sum())
            apart = few and bool(some) and are_apart(some[-1][0], run, samples)
            reads += apart
            if some and (size + more > READ_AT_ONCE or (apart and reads >= REMOTE_READS)):
                yield some
                size, reads, some = 0, 0, []
            some.append((run, kept))
            size += more
        if some:
            yield some

    def _reads(self, runs: Sequence[FrameRun]) -> tuple[ByteRange, ...]:
        source = self._track.source
        most = None if source.max_requests is None else source.max_requests - source.requests
        return reads_of(runs, self._track.samples, remote=source.remote, max_requests=most)

    def _bytes(self, runs: Sequence[FrameRun]) -> list[Parts]:
        """The bytes of the samples of each run; of a remote file they are held."""
        source, samples = self._track.source, self._track.samples
        cached = [self._cached_bytes(run) for run in runs]
        rests = [
            FrameRun(run.start + len(parts), max(run.stop, run.start + len(parts)), ())
            for run, parts in zip(runs, cached, strict=True)
        ]
        reads = self._reads([rest for rest in rests if rest.stop > rest.start])
        data = source.read_many(reads)
        fetched = Fetched({read.start: got for read, got in zip(reads, data, strict=True)})
        gathered: list[Parts] = []
        for run, before, rest in zip(runs, cached, rests, strict=True):
            extents = zip(
                samples.offset[rest.start : rest.stop].tolist(),
                samples.size[rest.start : rest.stop].tolist(),
                strict=True,
            )
            new = fetched.parts((max(offset, 0), max(size, 0)) for offset, size in extents)
            parts = [*before, *new]
            if source.remote and new:
                size = sum(len(part) for part in parts if part)
                self._cache.put(("bytes", run.start), parts, size)
            gathered.append(parts[: run.stop - run.start])
        return gathered

    def _cached_bytes(self, run: FrameRun) -> Parts:
        return self._ahead.get(run.start) or self._cache.get(("bytes", run.start)) or ()

    def _placed(self, run: FrameRun, parts: Parts) -> tuple[FrameRun, Parts, bool] | None:
        """A run from the last place on where a decoder can begin; None: there is none in it."""
        track, first = self._track, run.wanted[0]
        cts = min(int(track.samples.cts[sample]) for sample in run.wanted[:16])
        for sample in range(min(first, run.stop - 1), run.start - 1, -1):
            if not track.samples.sync[sample] or (
                track.samples.cts[sample] > cts and sample != run.start
            ):
                continue
            if track.is_access(parts[sample - run.start]):
                return FrameRun(sample, run.stop, run.wanted), parts[sample - run.start :], True
            track.starts.drop(sample)
        return (run, parts, False) if run.start == 0 else None


__all__ = ["Frames"]

CACHE = 128 << 20
DEVICES = ("cuda", "vaapi", "videotoolbox")
MOST_FRAMES = 1 << 20
"""Frames of one answer of `between`."""
MOST_THREADS = 8
THREADS_OF_DEVICE = 4
"""Decoders side by side on a device where pictures are fetched from it: more cost more than they
bring."""
PIXELS_AT_ONCE = 64 << 20
"""Bytes of pixels that iteration decodes ahead."""


class Frames(LazyArray):
    """The frames of one track, exact, by number and by time.

    Every frame has the pixels that decoding the whole track in order gives. A call reads the bytes
    that its frames need in few requests, decodes each group of pictures once, several in parallel,
    and returns the frames in the requested order.

    Args:
        what: the file: path, bytes, seekable file, URL, or an open `Source`, which stays open.
        index: of the file, or the path of a saved one (`.fidx`); None: one is built.
        track: track_ID, or a track of the index; None: the first with pictures.
        format: `rgb` and `gray` are uint8, `rgb16` and `gray16` uint16 over the full range, each
            of shape (frames, height, width, channels); `yuv` are the decoded planes, a tuple of
            arrays (frames, height, width), uint16 where they have more than 8 bits.
        size: (width, height) that frames are scaled to; None: as coded, with non-square pixels.
        rotate: rotate frames as the track header says (ISO/IEC 14496-12, 8.3.2).
        period: number of the period, in a file of several moovs; None: there is only one.
        order: of the numbers: `presentation`, or `decode`.
        hidden: whether frames that the edit list hides are numbered as well.
        damaged: `raise` UndecodableMedia, or `blank`: pixels of 0, named by `batch.missing`.
        threads: that decode; None: one a processor, 8 at most; on a device 4, or two an engine
            where pictures stay on it (16 at most).
        cache: bytes of pictures and samples that are held for the next call, or a `FrameCache`
            (`fragdex.frames`) that several share, and decoders with it.
        device: hardware that decodes, `cuda`, `vaapi` or `videotoolbox`; None: the processor.
            If that fails, a RuntimeWarning says why, and the processor decodes.
        output: whose arrays the pixels are: `numpy`; or `torch`, `cupy`: with `device="cuda"` they
            stay on it, ordered before what the current stream of that library does next.
        conversion: of colours and sizes: `swscale`, as FFmpeg's library on the processor (bicubic);
            `integer`: the same on every device (bilinear; gray is the luma).
        init: the initialization segment of a segment without moov.
        max_bytes, max_requests, options: as of `open_source`.

    A context manager. Several threads may use it, one after the other. It can be pickled and works
    after a fork if `what` is a path, a URL or bytes: the other process opens the file again.

    Raises:
        TrackNotFound: there is no such track of pictures, or there are pictures in several periods.
        UndecodableMedia: it is encrypted, or there is no decoder for it.
        SourceChanged: the index is of another file.
        MissingExtra: PyAV is not installed (`pip install 'fragdex[media]'`).
        ValueError: an invalid option; and what indexing and reading the source raise.

    >>> import fragdex
    >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
    >>> len(frames), frames[3].data.shape, frames[3].time.seconds
    (50, (48, 64, 3), 0.12)
    >>> batch = frames.at([1.5, 0.25, 1.5])
    >>> batch.data.shape, batch.numbers.tolist(), batch.times.tolist()
    ((3, 48, 64, 3), [37, 6, 37], [1.48, 0.24, 1.48])
    """

    if not TYPE_CHECKING:
        sync = OldName()
        closest_sync = OldName()

    def __init__(
        self,
        what: SourceLike,
        index: Index | str | os.PathLike[str] | None = None,
        track: int | Track | None = None,
        *,
        format: PixelFormat = "rgb",
        size: tuple[int, int] | None = None,
        rotate: bool = True,
        period: int | None = None,
        order: Order = "presentation",
        hidden: bool = False,
        damaged: Literal["raise", "blank"] = "raise",
        threads: int | None = None,
        cache: int | FrameCache = CACHE,
        device: str | None = None,
        output: OutputLibrary = "numpy",
        conversion: Conversion = "swscale",
        init: bytes | None = None,
        max_bytes: int | None = None,
        max_requests: int | None = None,
        **options: Unpack[SourceOptions],
    ) -> None:
        check_options("fragdex.Frames", options, _OWN)
        Converter(format, size)
        for name, value, known in (
            ("order", order, ("presentation", "decode")),
            ("damaged", damaged, ("raise", "blank")),
            ("device", (device or DEVICES[0]).partition(":")[0], DEVICES),
            ("conversion", conversion, CONVERSIONS),
        ):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")
        frame_cache = cache if isinstance(cache, FrameCache) else FrameCache(cache)
        if (threads is not None and threads < 1) or frame_cache.limit < 0:
            raise ValueError("at least one thread, and a cache of 0 bytes or more")
        self._what, self._track_wanted, self._init = what, track, init
        self._period = period
        self._index = index if isinstance(index, Index | None) else open_index(index)
        self._format, self._size, self._rotate = format, size, rotate
        self._order: Order = order
        self._hidden, self._blank = hidden, damaged == "blank"
        self._lib = library_of(output, device)
        self._output, self._conversion = output, conversion
        if conversion == "integer":
            IntegerConverter(NumpyArrays(), format, size)
        self._threads = threads
        self._cache, self._device = frame_cache, device
        self._is_cache_shared = frame_cache is cache
        self._budget = {"max_bytes": max_bytes, "max_requests": max_requests}
        self._options = options
        self._open()

    def _open(self) -> None:
        source = self._source()
        self._pid, self._lock = os.getpid(), RLock()
        try:
            self._opened = FrameTrack(
                source, self._index, self._track_wanted, period=self._period, init=self._init,
                order=self._order, hidden=self._hidden,
                pool=self._cache.decoders if self._device is None else OF_DEVICES,
                device=self._device, stays=self._lib is not None and self._device is not None,
            )  # fmt: skip
        except BaseException:
            if source is not self._what:
                source.close()
            raise
        self._index = self._opened.index
        threads = self._threads or self._usual_threads()
        self._reader = FrameReader(self._opened, threads=threads, cache=self._cache)
        self._converters: list[Any] = []
        self._rests = False

    def _usual_threads(self) -> int:
        decoders = self._opened.decoders
        if decoders.device is None:
            return min(_processors(), MOST_THREADS)
        return decoders.side_by_side() if decoders.stays else THREADS_OF_DEVICE

    def _source(self) -> Source:
        return open_source(self._what, **self._budget, **self._options)

    def _ready(self) -> FrameTrack:
        """What is known of the track: made again in another process than the last."""
        if self._pid != os.getpid():
            if self._is_foreign():
                self._pid = os.getpid()
            else:
                self._open()
        return self._opened

    def _awake(self) -> FrameTrack:
        """The track with its file open."""
        self._ready()
        if self._rests:
            source = self._source()
            try:
                self._opened.go_on(source)
            except BaseException:
                source.close()
                raise
            self._rests = False
        return self._opened

    def _is_foreign(self) -> bool:
        return isinstance(self._what, Source) or hasattr(self._what, "read")

    # -- what there is

    @property
    def index(self) -> Index:
        """Index of the file, with every sample of the track."""
        return self._ready().index

    @property
    def source(self) -> Source:
        """The open file; its counts say what was read."""
        return self._awake().source

    @property
    def device(self) -> str | None:
        """The hardware that decodes, or None: the processor."""
        return self._ready().decoders.device

    @property
    def decoded(self) -> int:
        """Pictures that were decoded so far, wanted or not."""
        self._ready()
        return self._reader.decoded

    # -- frames

    @overload
    def __getitem__(self, key: int) -> Frame: ...
    @overload
    def __getitem__(self, key: tuple[object, ...]) -> PixelArray: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Selection) -> FrameBatch: ...
    def __getitem__(
        self, key: int | tuple[object, ...] | Selection
    ) -> Frame | FrameBatch | PixelArray:
        """A frame by its number, or many by a slice or a list of numbers; negative from the end.

        Args:
            key: a number, a slice, an array of numbers or of bool; or a tuple as numpy takes it
                (no None), of which the first is that of frames: then an array is returned.

        Raises:
            IndexError: there is no such frame.
            UndecodableMedia: a frame is damaged, or frames have several sizes and `size` is None.
            And what reading the source raises.
        """
        if isinstance(key, tuple):
            return self._array(key)
        numbers, one = self._numbers(key)
        batch = self._batch(numbers)
        return batch[0] if one else batch

    @overload
    def at(self, times: npt.NDArray[np.generic]) -> FrameBatch: ...  # type: ignore[overload-overlap]
    @overload
    def at(self, times: TimeLike) -> Frame: ...  # type: ignore[overload-overlap]
    @overload
    def at(self, times: Iterable[TimeLike]) -> FrameBatch: ...
    def at(self, times: TimeLike | Iterable[TimeLike] | npt.ArrayLike) -> Frame | FrameBatch:
        """The frame that is shown at a time, or those of many times, in their order.

        Args:
            times: one time as `Track.seek` takes it, or a list or array of them. Before the
                first frame that one is given, after the end the last.

        Raises: as `numbers_at` and `[]`.
        """
        given: Any = times  # types say too little of what numpy takes
        if isinstance(given, str) or (not hasattr(given, "__len__") and np.ndim(given) == 0):
            return self._batch(self.numbers_at([given]))[0]
        return self._batch(self.numbers_at(given))

    def between(
        self, start: TimeLike, stop: TimeLike, *, fps: float | Fraction | None = None
    ) -> FrameBatch:
        """The frames that are shown from `start` to `stop` (exclusive).

        Args:
            fps: None: each frame once; else the frames at `start`, `start + 1 / fps` and so on.

        Raises:
            ValueError: stop lies before start, fps is not positive, or too many frames are asked
                for.
            And as `[]`.
        """
        first, last = exact_time(start), exact_time(stop)
        if last < first:
            raise ValueError(f"the span ends ({stop}) before it starts ({start})")
        if fps is None:
            return self._batch(self._ready().numbering.numbers_between(first, last))
        rate = exact_time(fps)
        if isinstance(first, float) or isinstance(last, float) or isinstance(rate, float):
            raise ValueError("times and rates are finite")
        if rate <= 0 or (last - first) * rate > MOST_FRAMES:
            raise ValueError(f"fps is above 0, for {MOST_FRAMES:,} frames at most")
        count = -(-(last - first) * rate // 1)
        return self._batch(self.numbers_at([first + n / rate for n in range(int(count))]))

    def plan(self, numbers: int | Selection) -> FramePlan:
        """What `frames[numbers]` costs, without reading anything.

        >>> import fragdex
        >>> plan = fragdex.Frames("fixtures/open-gop.mp4").plan([40, 41])
        >>> plan.frames, plan.decoded, plan.runs
        (2, 6, 1)
        """
        chosen, _ = self._numbers(numbers)
        return self._reader.plan(self._awake().numbering.sample[chosen].tolist())

    def fill(self, rows: Rows, places: Sequence[int], numbers: int | Selection) -> FrameBatch:
        """Decode frames into rows of arrays that several calls or videos fill.

        Args:
            rows: the arrays (`fragdex.frames.Rows`), of numpy's.
            places: the row of each frame.
            numbers: of the frames, as `[]` takes them.

        Returns: the batch; its `data` are all rows.

        Raises:
            ValueError: frames are arrays of another library (`output=`).
            UndecodableMedia: frames have another size than the rows.
            And as `[]`.

        >>> import fragdex
        >>> rows = fragdex.frames.Rows(3)
        >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
        >>> batch = frames.fill(rows, [2, 0], [7, 9])
        >>> batch.numbers.tolist(), rows.arrays[0].shape
        ([7, 9], (3, 48, 64, 3))
        """
        if self._lib is not None:
            raise ValueError(f"rows are arrays of numpy, and frames are of {self._output}")
        return self._batch(self._numbers(numbers)[0], rows, places)

    def hand_over(self) -> None:
        """Let the caller's stream of a device wait for what other threads decoded there."""
        if self._lib is not None:
            self._lib.hand_over()

    def read_ahead(self, numbers: int | Selection) -> None:
        """Read the bytes of frames, for the next call, which decodes them.

        Raises: what reading raises.

        >>> import fragdex
        >>> frames = fragdex.Frames("fixtures/open-gop.mp4")
        >>> frames.read_ahead([40, 41])
        >>> before = frames.source.requests
        >>> frames[[40, 41]].numbers.tolist(), frames.source.requests - before
        ([40, 41], 0)
        """
        with self._lock:
            opened = self._awake()
            self._reader.read_ahead(opened.numbering.sample[self._numbers(numbers)[0]].tolist())

    def __iter__(self) -> Iterator[Frame]:
        """Every frame in order, decoded ahead by some."""
        info = self.track.info
        width, height = self._size or (info.width or 640, info.height or 360)
        step = max(16, PIXELS_AT_ONCE // (width * height * 3))
        for first in range(0, len(self), step):
            yield from self._batch(np.arange(first, min(first + step, len(self))))

    def audio(self, start: TimeLike, stop: TimeLike, **options: Unpack[AudioOptions]) -> SoundArray:
        """The sound of a span, as `fragdex.decoding.audio` gives it, with its options."""
        with self._lock:
            return audio(self.index, self.source, start, stop, **options)

    # -- how

    def _batch(
        self, numbers: Int64, rows: Rows | None = None, places: Sequence[int] | None = None
    ) -> FrameBatch:
        with self._lock:
            opened = self._awake()
            numbering, info = opened.numbering, opened.track.info
            wanted = numbering.sample[numbers].tolist()
            gathering = self._gathering(wanted, rows, places)
            missing = self._reader.read(wanted, gathering.give)
            reasons = {n: missing[sample] for n, sample in enumerate(wanted) if sample in missing}
            if reasons and not self._blank:
                raise self._undecodable(numbers, reasons)
            data = gathering.arrays(reasons, self._size or (info.width or 0, info.height or 0))
        return FrameBatch(
            data[0] if len(data) == 1 else data,
            numbers,
            numbering.ticks[numbers],
            numbering.durations[numbers],
            numbering.timescale,
            reasons,
        )

    def _gathering(
        self, samples: list[int], rows: Rows | None, places: Sequence[int] | None
    ) -> Gathering:
        format, size, rotate, lib = self._format, self._size, self._rotate, self._lib

        def made() -> Any:
            if self._conversion == "integer":
                return IntegerConverter(lib or NumpyArrays(), format, size, rotate=rotate)
            if lib is None:
                return Converter(format, size, rotate=rotate)
            return ArrayConverter(lib, format, size, rotate=rotate)

        if lib is None:
            return Gathering(samples, self._converters, made, rows, places)
        return ArrayGathering(lib, samples, self._converters, made)

    def _undecodable(self, numbers: Int64, reasons: dict[int, str]) -> UndecodableMedia:
        bad = sorted({int(numbers[n]) for n in reasons})
        shown = ", ".join(map(str, bad[:10])) + (f" and {len(bad) - 10} more" if bad[10:] else "")
        times = self.times[bad]
        ends = times + self.durations[bad]
        return UndecodableMedia(
            f"frames {shown} of track {self.track.id} cannot be decoded: {reasons[min(reasons)]}",
            start=float(times.min()),
            stop=float(ends.max()),
            advice='choose others, or pass damaged="blank"',
        )

    # -- processes

    def __getstate__(self) -> dict[str, Any]:
        if self._is_foreign():
            raise TypeError(
                "frames of an open source cannot go to another process: give its path or URL"
            )
        own = ("_lock", "_opened", "_reader", "_converters", "_pid", "_lib")
        track = self._opened.track
        wanted = {"_index": self._opened.index, "_track_wanted": track.id}
        if len(self._opened.index.periods) > 1:
            wanted["_track_wanted"] = track
        return {k: v for k, v in self.__dict__.items() if k not in own} | wanted

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lib = library_of(self._output, self._device)
        self._open()

    def rest(self) -> None:
        """Let go of pictures, of decoders that no other shares, and of the open file.

        The most of what it holds; the next call opens the file again.
        """
        self._let_go()
        if not self._is_foreign():
            self._opened.source.close()
            self._rests = True

    def close(self) -> None:
        """Close the source, if it was opened here, and give back what is held."""
        self._let_go()
        if self._opened.source is not self._what:
            self._opened.source.close()

    def _let_go(self) -> None:
        self._reader.forget()
        self._converters.clear()
        if not self._is_cache_shared:
            self._cache.decoders.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self._opened.source.name
        return f"<Frames of {name!r}, track {self.track.id}: {len(self)} frames>"


_OWN = (
    "format", "size", "rotate", "period", "order", "hidden", "damaged", "threads", "cache",
    "device", "output", "conversion", "init",
)  # fmt: skip


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
