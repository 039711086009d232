"""Runs of samples: the reads for them, and their pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange, coalesce, plan_reads
from fragdex.decoding.codec import is_short_of_memory, packet_of
from fragdex.decoding.video_track import ParameterSets, sets_of
from fragdex.fragments.table import Int64, SampleTable
from fragdex.frames.decoders import Decoders
from fragdex.frames.references import References
from fragdex.record import record
from fragdex.seeking.numbering import FrameRun

REMOTE_GAP: Final = 32 << 10
"""Bytes between samples of a remote file that are read for nothing rather than requested twice."""
LOCAL_GAP: Final = 4 << 10
LONGEST_READ: Final = 8 << 20


@record(frozen=True, slots=True)
class FramePlan:
    """What answering costs, before anything is read.

    Attributes:
        frames: wanted frames, each counted once.
        decoded: samples that are decoded for them at most; those that no other picture refers to
            are skipped.
        reads: of the file, in order.
        runs: how many times decoding begins at a sync sample.
    """

    frames: int
    decoded: int
    reads: tuple[ByteRange, ...]
    runs: int

    @property
    def bytes(self) -> int:
        """Bytes of all reads."""
        return sum(read.size for read in self.reads)


def are_apart(before: FrameRun, after: FrameRun, samples: SampleTable) -> bool:
    """Whether one read of a remote file would not do for both."""
    stop = int(samples.offset[before.stop - 1] + samples.size[before.stop - 1])
    return abs(int(samples.offset[after.start]) - stop) > REMOTE_GAP


def reads_of(
    runs: Sequence[FrameRun], samples: SampleTable, *, remote: bool, max_requests: int | None = None
) -> tuple[ByteRange, ...]:
    """The reads that bring the bytes of runs."""
    gap = REMOTE_GAP if remote else LOCAL_GAP
    ranges: list[ByteRange] = []
    for run in runs:
        offset = samples.offset[run.start : run.stop]
        stop = offset + samples.size[run.start : run.stop]
        located = (stop > offset) & (offset >= 0)
        offset, stop = offset[located], stop[located]
        if not len(offset):
            continue
        between = offset[1:] - stop[:-1]
        # Sound lies between pictures: many ranges, which would be put together one by one.
        if ((between >= 0) & (between <= gap)).all() and stop[-1] - offset[0] <= LONGEST_READ:
            ranges.append(ByteRange(int(offset[0]), int(stop[-1])))
            continue
        first = np.append(True, between != 0)
        last = np.append(first[1:], True)
        pairs = zip(offset[first].tolist(), stop[last].tolist(), strict=True)
        ranges += [ByteRange(low, high) for low, high in pairs]
    return plan_reads(
        coalesce(ranges),
        max_gap=gap,
        max_size=LONGEST_READ,
        max_requests=max_requests,
    )


Give = Callable[[int, Any], None]
"""Called with a sample and its picture, in the order of decoding."""
_WHOLE: Final = 1 << 62


class Coding(NamedTuple):
    """How the samples of a track are coded.

    Attributes:
        format: four-letter code of its first sample entry.
        length_size: bytes of the length in front of each NAL unit, or None.
    """

    format: str
    length_size: int | None
    cts: Int64
    sync: npt.NDArray[np.bool_]
    entries: Int64 | None


def decode_run(
    run: FrameRun,
    data: Sequence[bytes | None],
    decoders: Decoders,
    coding: Coding,
    give: Give,
    *,
    threads: int = 1,
    trusted: bool = True,
) -> dict[int, str]:
    """Decode a run; pictures that are not wanted and that nothing refers to are left out.

    Args:
        data: the bytes of its samples; None where they are not there.
        give: gets every picture, once; also those that turn out to be damaged.
        trusted: whether the run begins where a decoder can. Else a decoder's own doubts say
            nothing.

    Returns: wanted samples without a picture that can be trusted, and why.
    """
    work = _RunDecoding(run, data, decoders, coding, give, threads, trusted)
    try:
        work.go()
    finally:
        work.close()
    return work.damaged()


class _RunDecoding:
    def __init__(
        self,
        run: FrameRun,
        data: Sequence[bytes | None],
        decoders: Decoders,
        coding: Coding,
        give: Give,
        threads: int,
        trusted: bool,
    ) -> None:
        self._run, self._data, self._decoders, self._coding = run, data, decoders, coding
        self._give, self._threads, self._trusted = give, threads, trusted
        self._references = References(data, coding.format, coding.length_size)
        self._entry, self._context = 0, None
        # Parameter sets that the context has met; None: several, one after the other.
        self._met: ParameterSets | None = ()
        self._given: set[int] = set()
        self._bad: dict[int, str] = {}

    def go(self) -> None:
        run, coding = self._run, self._coding
        wanted = set(run.wanted)
        for place, data in enumerate(self._data):
            sample = run.start + place
            if data is None:
                self._note(sample, "its bytes are not in the file")
                continue
            if not data:
                continue  # a sample of no bytes: what is shown before it stays
            if sample not in wanted and self._references.may_be_skipped(place):
                continue
            entry = 1 if coding.entries is None else int(coding.entries[sample])
            sets = sets_of(data, coding.format, coding.length_size)
            if entry != self._entry and (
                coding.sync[sample] or not self._decoders.decode_alike(entry, self._entry)
            ):
                self._change(entry, sets)
            if sets and sets != self._met:
                self._met = None if self._met else sets
            packet = packet_of(data)
            # The number of the sample: unlike its time, no other has it.
            packet.pts = packet.dts = sample
            packet.is_keyframe = bool(coding.sync[sample])
            self._decode(packet, sample)
        self._drain()

    def damaged(self) -> dict[int, str]:
        """By what was noted: a damaged sample spoils what follows, up to the next sync sample."""
        missing = {}
        for sample in self._run.wanted:
            reason = self._reason(sample)
            if reason is None and sample not in self._given:
                reason = "the decoder gives no picture for it"
            if reason is not None:
                missing[sample] = reason
        return missing

    def close(self) -> None:
        if self._context is not None:
            context, self._context = self._context, None
            # Those sets would stay in force where the next run has none of its own.
            if self._met is not None:
                self._decoders.give_back(self._entry, self._threads, context, self._met)

    def _reason(self, sample: int) -> str | None:
        if not self._bad:
            return None
        if sample in self._bad:
            return self._bad[sample]
        coding = self._coding
        for bad, reason in self._bad.items():
            if bad > sample or self._references.may_be_skipped(bad - self._run.start):
                continue
            between = slice(bad + 1, sample + 1)
            syncs = coding.cts[between][coding.sync[between]]
            if not (syncs <= coding.cts[sample]).any():
                return reason
        return None

    def _note(self, sample: int, reason: str) -> None:
        self._bad.setdefault(sample, reason)

    def _change(self, entry: int, sets: ParameterSets) -> None:
        self._drain()
        self.close()
        self._context, self._met = self._decoders.take(entry, self._threads, sets)
        self._entry = entry

    def _drain(self) -> None:
        if self._context is not None:
            self._decode(None, self._run.stop - 1)

    def _decode(self, packet: Any, sample: int) -> None:
        import av.error

        assert self._context is not None
        try:
            frames = self._context.decode(packet)
        except av.error.EOFError:
            return
        except av.FFmpegError as error:
            if isinstance(error, MemoryError) and is_short_of_memory():
                raise
            if self._threads > 1:
                raise LateError from error
            self._note(sample, f"it is damaged ({error.strerror})")
            return
        for frame in frames:
            number = frame.pts
            if number is None or number in self._given:
                continue
            self._given.add(number)
            if frame.is_corrupt and self._trusted:
                self._note(number, "it is damaged")
            self._give(number, frame)


class LateError(Exception):
    """A decoder of several threads met damage; a single thread finds out whose. Stays in here."""
