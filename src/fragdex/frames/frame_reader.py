"""Pictures of samples of a track: read in few requests, runs decoded in parallel, some held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Lock
from typing import Any, Final, NamedTuple

from fragdex.byterange import ByteRange, Fetched
from fragdex.frames.decode_runs import (
    FramePlan,
    Give,
    LateError,
    are_apart,
    decode_run,
    reads_of,
)
from fragdex.frames.decoders import CachePart, FrameCache
from fragdex.frames.frame_track import FrameTrack
from fragdex.frames.pixels import is_of_device
from fragdex.seeking.numbering import FrameRun, runs_of

READ_AT_ONCE: Final = 32 << 20
"""Bytes of samples that are read before they are decoded."""
REMOTE_READS: Final = 8
"""Reads of a remote file at once, while what came before is decoded."""
LONG: Final = 8
"""Samples of a run that several threads of one decoder share."""
NEAR: Final = 64
"""Samples between two calls that continue in a video."""

Parts = Sequence[bytes | None]


class _Request(NamedTuple):
    """A run, and which of its pictures are held for later calls."""

    run: FrameRun
    held: frozenset[int] = frozenset()


class _Ready(NamedTuple):
    """A run with its bytes.

    Attributes:
        trusted: whether it begins where a decoder can.
    """

    run: FrameRun
    parts: Parts
    trusted: bool
    held: frozenset[int]


class FrameReader:
    """Pictures of samples of a track.

    Args:
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

    def read(
        self, samples: Iterable[int], give: Give, soon: Sequence[int] | None = None
    ) -> dict[int, str]:
        """Decode samples.

        Args:
            give: called once for each with its picture, by any thread.
            soon: what later calls will want, the next ones first: samples that are decoded from
                the same sync samples are decoded now, and held. None: not known; a call near the
                one before is followed by another.

        Returns: those without a picture, and why.
        """
        try:
            return self._read(samples, give, soon)
        finally:
            self._ahead.clear()

    def read_ahead(self, samples: Iterable[int], soon: Sequence[int] | None = None) -> None:
        """Read the bytes that `read` of the same samples needs, and hold them for it.

        Nothing, if that is more than is read at once.
        """
        wanted = {sample for sample in samples if self._cache.get(sample) is None}
        requests = self._requests(wanted, soon or ())
        portions = list(self._portions(requests))
        if len(portions) == 1:
            runs = [request.run for request in requests]
            starts = (run.start for run in runs)
            self._ahead = dict(zip(starts, self._bytes(runs), strict=True))

    def _read(
        self, samples: Iterable[int], give: Give, soon: Sequence[int] | None
    ) -> dict[int, str]:
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
            requests = self._requests(left, () if steps else soon or ())
            if steps:
                back = self._track.starts.before
                requests = [
                    _Request(FrameRun(back(run.start, steps), run.stop, run.wanted))
                    for run, _ in requests
                ]
            elif soon is None:
                self._go_further(requests)
            self._last = requests[-1].run.wanted[-1]
            failures, left = self._pass(requests, give)
            missing |= failures
            steps = 2 * steps + 1
        return missing

    def forget(self, *, pictures: bool = True) -> None:
        """Give back what is held; the next call continues nowhere."""
        if pictures:
            self._cache.clear()
        self._ahead.clear()
        self._last = -1

    def _pass(self, requests: Sequence[_Request], give: Give) -> tuple[dict[int, str], set[int]]:
        """Decode runs; those that begin where no decoder can are left."""
        missing: dict[int, str] = {}
        left: set[int] = set()
        if len(requests) == 1 or self._threads == 1:
            for ready in self._ready(requests, left):
                missing |= self._decode(ready, give, self._threads)
            return missing, left
        under_way: set[Future[dict[int, str]]] = set()
        with ThreadPoolExecutor(self._threads, "fragdex-frames") as pool:
            try:
                for ready in self._ready(requests, left):
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
        # What is held for later calls has to be known as undamaged, too.
        watched = replace(run, wanted=tuple(sorted(wanted | ready.held))) if ready.held else run
        decoded = 0
        cached: dict[int, Any] = {}
        track = self._track

        def take(sample: int, picture: Any) -> None:
            nonlocal decoded
            decoded += 1
            decoders = track.decoders
            if decoders.device is not None and not is_of_device(picture, stays=decoders.stays):
                coding = track.coding
                entry = 1 if coding.entries is None else int(coding.entries[sample])
                decoders.leave_device(entry, "it has no decoder for this coding")
            if sample in wanted:
                give(sample, picture)
            if sample in ready.held:
                cached[sample] = picture

        # One decoder of a device keeps it busy: threads of its own would each open another one.
        alone = run.stop - run.start < LONG or track.decoders.device is not None
        threads = 1 if alone else threads
        for own in (threads, 1):
            try:
                with track.decoders.turn():
                    missing = decode_run(
                        watched, ready.parts, track.decoders, track.coding, take, threads=own,
                        trusted=ready.trusted,
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

    def _ready(self, requests: Sequence[_Request], left: set[int]) -> Iterator[_Ready]:
        """Runs with their bytes, in order; what has to begin earlier goes to `left`."""
        for some in self._portions(requests):
            for (run, held), parts in zip(some, self._bytes([r for r, _ in some]), strict=True):
                placed = self._placed(run, parts)
                if placed is None:
                    left.update(run.wanted)
                else:
                    yield _Ready(*placed, held)

    def _requests(self, wanted: set[int], soon: Sequence[int]) -> list[_Request]:
        """The runs of wanted samples, with those of the same groups that are wanted soon."""
        starts = self._track.starts
        if soon and self._can_hold():
            room = self._cache.limit // 2 // self._size_of_picture()
            near = {starts.of(sample) for sample in wanted}
            later = frozenset(
                sample
                for sample in soon[:room]
                if starts.of(sample) in near and self._cache.get(sample) is None
            )
            requests = []
            for run in runs_of(wanted | later, starts):
                here = tuple(sample for sample in run.wanted if sample in wanted)
                if here:
                    run_of_both = FrameRun(run.start, run.stop, here)
                    requests.append(_Request(run_of_both, later.intersection(run.wanted)))
            return requests
        return [_Request(run) for run in runs_of(wanted, starts)]

    def _size_of_picture(self) -> int:
        """Bytes of a picture as it is decoded; before there was any, those of 4:2:0."""
        info = self._track.track.info
        return self._picture_bytes or max((info.width or 0) * (info.height or 0) * 3 // 2, 1)

    def _can_hold(self) -> bool:
        # A decoder has few places on a device for its pictures: none can be held there.
        return self._cache.limit > 0 and not self._track.decoders.stays

    def _go_further(self, requests: list[_Request]) -> None:
        """Make the last run of a call that continues longer: the next call will want it."""
        first = requests[0].run.wanted[0]
        if self._last < 0 or abs(first - self._last) > NEAR or not self._can_hold():
            return
        run = requests[-1].run
        room = self._cache.limit // 2 // self._picture_bytes if self._picture_bytes else 0
        end = self._track.starts.end(run.start, len(self._track.samples))
        stop = max(min(run.stop + room, end), run.stop)
        kept = max(run.wanted[0] - room // 4, run.start)
        requests[-1] = _Request(FrameRun(run.start, stop, run.wanted), frozenset(range(kept, stop)))

    def _portions(self, requests: Sequence[_Request]) -> Iterator[list[_Request]]:
        source, samples = self._track.source, self._track.samples
        # A budget of requests wants to know all reads, to put some together.
        few = source.remote and self._threads > 1 and source.max_requests is None
        size = reads = 0
        some: list[_Request] = []
        for request in requests:
            run = request.run
            more = int(samples.size[run.start : run.stop].sum())
            apart = few and bool(some) and are_apart(some[-1].run, run, samples)
            reads += apart
            if some and (size + more > READ_AT_ONCE or (apart and reads >= REMOTE_READS)):
                yield some
                size, reads, some = 0, 0, []
            some.append(request)
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
