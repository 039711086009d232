"""Wanted samples to pictures: reads ahead, several runs decoded side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Lock
from typing import Any, Final, NamedTuple

from fragdex.byterange import ByteRange
from fragdex.decoding.open_track import Fetched
from fragdex.frames.decode_runs import (
    FramePlan,
    Give,
    LateError,
    Run,
    are_apart,
    decode_run,
    reads_of,
    runs_of,
)
from fragdex.frames.decoders import CachePart, FrameCache
from fragdex.frames.frame_track import FrameTrack

AT_ONCE: Final = 32 << 20
"""Bytes of samples that are read before they are decoded."""
REMOTE_READS: Final = 8
"""Reads of a remote file at once, while what came before is decoded."""
LONG: Final = 8
"""Samples of a run that several threads of one decoder share."""
NEAR: Final = 64
"""Samples between two calls that go on in a film."""

Parts = Sequence[bytes | None]


class _Ready(NamedTuple):
    run: Run
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
        left = set()
        for sample in sorted(set(samples)):
            held = self._cache.get(sample)
            if held is None:
                left.add(sample)
            else:
                give(sample, held)
        missing: dict[int, str] = {}
        steps = 0
        while left:
            runs = runs_of(left, self._track.starts)
            if steps:
                back = self._track.starts.before
                runs = [Run(back(r.start, steps), r.stop, r.wanted) for r in runs]
            failures, left = self._pass(runs, give)
            missing |= failures
            steps = 2 * steps + 1
        return missing

    def forget(self) -> None:
        """Give back what is held; the next call goes on nowhere."""
        self._cache.clear()
        self._last = -1

    def _pass(self, runs: list[Run], give: Give) -> tuple[dict[int, str], set[int]]:
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
        held: dict[int, Any] = {}

        def take(sample: int, picture: Any) -> None:
            nonlocal decoded
            decoded += 1
            if sample in wanted:
                give(sample, picture)
            if ready.kept is not None and sample >= ready.kept:
                held[sample] = picture

        track = self._track
        # One decoder of a device keeps it busy: threads of its own would each open another one.
        alone = run.stop - run.start < LONG or track.decoders.device is not None
        threads = 1 if alone else threads
        for own in (threads, 1):
            try:
                missing = decode_run(
                    watched, ready.parts, track.decoders, track.coding, take, threads=own,
                    trusted=ready.trusted, skip=ready.kept is None,
                )  # fmt: skip
            except LateError:
                held.clear()
                continue
            finally:
                with self._count:
                    self.decoded += decoded
                decoded = 0
            for sample, picture in held.items():
                if sample not in missing:
                    size = sum(plane.buffer_size for plane in picture.planes)
                    self._picture_bytes = max(self._picture_bytes, size)
                    self._cache.put(sample, picture, size)
            return {sample: reason for sample, reason in missing.items() if sample in wanted}
        raise AssertionError("one thread knows whose damage it is")

    # -- reading

    def _ready(self, runs: Sequence[Run], left: set[int]) -> Iterator[_Ready]:
        """Runs with their bytes, in order; what has to begin earlier goes to `left`."""
        goes_on = self._last >= 0 and abs(runs[0].wanted[0] - self._last) <= NEAR
        self._last = runs[-1].wanted[-1]
        asked: list[tuple[Run, int | None]] = [(run, None) for run in runs]
        # A decoder has few places on a device for its pictures: none can be held there.
        if goes_on and self._cache.limit and not self._track.decoders.stays:
            asked[-1] = self._further(runs[-1])
        for some in self._portions(asked):
            for (run, kept), parts in zip(some, self._bytes([r for r, _ in some]), strict=True):
                placed = self._placed(run, parts)
                if placed is None:
                    left.update(run.wanted)
                else:
                    yield _Ready(*placed, kept)

    def _further(self, run: Run) -> tuple[Run, int]:
        """The last run of a call that goes on in the film, made longer; what is held begins where.

        The next call will want what follows.
        """
        room = self._cache.limit // 2 // self._picture_bytes if self._picture_bytes else 0
        end = self._track.starts.end(run.start, len(self._track.samples))
        stop = max(min(run.stop + room, end), run.stop)
        return Run(run.start, stop, run.wanted), max(run.wanted[0] - room // 4, 0)

    def _portions(
        self, runs: Sequence[tuple[Run, int | None]]
    ) -> Iterator[list[tuple[Run, int | None]]]:
        source, samples = self._track.source, self._track.samples
        # A budget of requests wants to know all reads, to put some together.
        few = source.remote and self._threads > 1 and source.max_requests is None
        size = reads = 0
        some: list[tuple[Run, int | None]] = []
        for run, kept in runs:
            more = int(samples.size[run.start : run.stop].sum())
            apart = few and bool(some) and are_apart(some[-1][0], run, samples)
            reads += apart
            if some and (size + more > AT_ONCE or (apart and reads >= REMOTE_READS)):
                yield some
                size, reads, some = 0, 0, []
            some.append((run, kept))
            size += more
        if some:
            yield some

    def _reads(self, runs: Sequence[Run]) -> tuple[ByteRange, ...]:
        source = self._track.source
        most = None if source.max_requests is None else source.max_requests - source.requests
        return reads_of(runs, self._track.samples, remote=source.remote, max_requests=most)

    def _bytes(self, runs: Sequence[Run]) -> list[Parts]:
        """The bytes of the samples of each run; of a remote file they are held."""
        source, samples = self._track.source, self._track.samples
        held = [self._held(run) for run in runs]
        rests = [
            Run(run.start + len(parts), max(run.stop, run.start + len(parts)), ())
            for run, parts in zip(runs, held, strict=True)
        ]
        reads = self._reads([rest for rest in rests if rest.stop > rest.start])
        data = source.read_many(reads)
        fetched = Fetched({read.start: got for read, got in zip(reads, data, strict=True)})
        found: list[Parts] = []
        for run, before, rest in zip(runs, held, rests, strict=True):
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
            found.append(parts[: run.stop - run.start])
        return found

    def _held(self, run: Run) -> Parts:
        return self._cache.get(("bytes", run.start)) or ()

    def _placed(self, run: Run, parts: Parts) -> tuple[Run, Parts, bool] | None:
        """A run from the last place on where a decoder can begin; None: there is none in it."""
        track, first = self._track, run.wanted[0]
        cts = min(int(track.samples.cts[sample]) for sample in run.wanted[:16])
        for sample in range(min(first, run.stop - 1), run.start - 1, -1):
            if not track.samples.sync[sample] or (
                track.samples.cts[sample] > cts and sample != run.start
            ):
                continue
            if track.is_access(parts[sample - run.start]):
                return Run(sample, run.stop, run.wanted), parts[sample - run.start :], True
            track.starts.drop(sample)
        return (run, parts, False) if run.start == 0 else None
