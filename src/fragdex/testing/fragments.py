"""Movie fragments described as data, and written with what is true of them.

A description says what each box holds; positions and offsets are worked out here, by plain Python
and with nothing of the library's reader, so that a reader can be held against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, build, make_box
from fragdex.boxes.fragments import (
    BASE_DATA_OFFSET,
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DURATION_IS_EMPTY,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.boxes.fragments import DEFAULT_SAMPLE_DURATION as TFHD_DURATION
from fragdex.boxes.fragments import DEFAULT_SAMPLE_FLAGS as TFHD_FLAGS
from fragdex.boxes.fragments import DEFAULT_SAMPLE_SIZE as TFHD_SIZE
from fragdex.record import record
from fragdex.testing.tracks import Run, Sample, Traf, TrueSample, default_of, effective

TFXD = "6d1d9b0542d544e680e2141daff757b2"


@record(frozen=True, slots=True)
class Laid:
    """A fragment at its place.

    Attributes:
        data: its bytes.
        start, moof, stop: of the fragment's first introducing box, its moof, and after its last
            mdat; bytes from the start of the file.
        samples: track_ID → what is true of its samples, in decode order.
        next_dts: track_ID → where the decode time continues.
    """

    data: bytes
    start: int
    moof: int
    stop: int
    samples: Mapping[int, Sequence[TrueSample]]
    next_dts: Mapping[int, int]


@record(frozen=True, slots=True)
class Fragment:
    """A moof and its mdats, in the order of a file.

    Attributes:
        trafs: in file order.
        before: boxes that introduce it: styp, sidx, emsg, prft.
        between: boxes between the moof and the first mdat after it.
        mdats: how many there are; 0: none.
        mdat_first: the first mdat stands before the moof (and before what introduces it).
        order: in which order the runs' data lies in the mdats, as numbers of runs counted over
            all trafs; a run without data_offset must follow the one before it. None: as declared.
        moof_form, mdat_form: size forms; "to_end" is for the last mdat of a file.
        trailing: unused bytes at the end of the last mdat.
        number: sequence_number; None: counted by the file's writer.
    """

    trafs: tuple[Traf, ...]
    before: tuple[Box, ...] = ()
    between: tuple[Box, ...] = ()
    mdats: int = 1
    mdat_first: bool = False
    order: tuple[int, ...] | None = None
    moof_form: SizeForm = "compact"
    mdat_form: SizeForm = "compact"
    trailing: int = 0
    number: int | None = None

    def size(self, defaults: Mapping[int, tuple[int, int, int]]) -> int:
        """Bytes that it takes, whatever its place."""
        return len(self.lay(0, defaults, {}).data)

    def lay(
        self,
        at: int,
        defaults: Mapping[int, tuple[int, int, int]],
        next_dts: Mapping[int, int],
        number: int = 1,
    ) -> Laid:
        """The fragment's bytes and truth at a place in a file.

        Args:
            at: where it begins.
            defaults: track_ID → duration, size and flags of the trex.
            next_dts: track_ID → decode time where no tfdt says it.
            number: sequence_number, where the fragment has none of its own.
        """
        number = number if self.number is None else self.number
        true = [[effective(run, traf, defaults) for run in traf.runs] for traf in self.trafs]
        flat = [(t, r) for t, traf in enumerate(self.trafs) for r in range(len(traf.runs))]
        places = dict.fromkeys(flat, 0)
        moof_size = len(self._moof(0, places, true, number))
        mdats, inside = self._fill(flat, true)
        head = b"".join(map(build, self.before))
        between = b"".join(map(build, self.between))
        first = build(mdats[0]) if self.mdat_first and mdats else b""
        rest = mdats[1:] if self.mdat_first else mdats
        behind = [build(mdat) for mdat in rest]
        start = at + len(first)
        moof = start + len(head)
        position = moof + moof_size + len(between)
        header = 16 if self.mdat_form == "large" else 8
        payload = [at + header] if first else []
        for mdat in behind:
            payload.append(position + header)
            position += len(mdat)
        places = {pair: payload[mdat] + offset for pair, (mdat, offset) in inside.items()}
        data = first + head + self._moof(moof, places, true, number) + between + b"".join(behind)
        stop = position if behind else moof + moof_size
        samples, after = self._truth(places, true, defaults, next_dts)
        return Laid(data, start, moof, stop, samples, after)

    def _fill(
        self, flat: list[tuple[int, int]], true: list[list[list[Sample]]]
    ) -> tuple[list[Box], dict[tuple[int, int], tuple[int, int]]]:
        """The mdats with the samples in them, and mdat and offset of each run."""
        payloads = [bytearray() for _ in range(self.mdats)]
        inside = {}
        done: dict[int, int] = {}
        for number in self.order if self.order is not None else range(len(flat)):
            t, r = flat[number]
            run = self.trafs[t].runs[r]
            payload = payloads[run.mdat] if payloads else bytearray()
            payload += b"\xee" * run.gap
            inside[t, r] = (run.mdat if payloads else 0, len(payload))
            for sample in true[t][r]:
                count = done.get(t, 0)
                payload += _content(self.trafs[t].track, count, sample.size)
                done[t] = count + 1
        if payloads:
            payloads[-1] += b"\xee" * self.trailing
        last = len(payloads) - 1
        boxes = [
            make_box("mdat", data=bytes(payload), size_form=self._form(n == last))
            for n, payload in enumerate(payloads)
        ]
        return boxes, inside if payloads else {}

    def _form(self, last: bool) -> SizeForm:
        return "compact" if self.mdat_form == "to_end" and not last else self.mdat_form

    def _moof(
        self,
        moof: int,
        places: Mapping[tuple[int, int], int],
        true: list[list[list[Sample]]],
        number: int,
    ) -> bytes:
        children = [make_box("mfhd", sequence_number=number)]
        end = moof  # of the data of the traf before
        for t, traf in enumerate(self.trafs):
            base = end = self._base(t, moof, end, places)
            boxes = [_tfhd(traf, base)]
            if traf.tfdt is not None:
                bits, version = 64 if traf.tfdt_version else 32, traf.tfdt_version
                time = traf.tfdt % 2**bits
                boxes.append(make_box("tfdt", version=version, baseMediaDecodeTime=time))
            for r, run in enumerate(traf.runs):
                place = places.get((t, r), base)
                boxes.append(_trun(run, place - base))
                end = place + sum(sample.size for sample in true[t][r])
            if traf.tfxd is not None:
                time = traf.tfxd % 2**64
                boxes.append(make_box(TFXD, version=1, fragment_absolute_time=time))
            children.append(make_box("traf", children=(*boxes, *traf.extra)))
        return build(make_box("moof", children=children, size_form=self.moof_form))

    def _base(self, t: int, moof: int, end: int, places: Mapping[tuple[int, int], int]) -> int:
        """From where the traf's data_offsets count (8.8.7.1)."""
        traf = self.trafs[t]
        if traf.flags & BASE_DATA_OFFSET:
            return places.get((t, 0), moof) if traf.base == "data" else moof
        if t == 0 or traf.flags & DEFAULT_BASE_IS_MOOF or traf.undeclared:
            return moof
        return end

    def _truth(
        self,
        places: Mapping[tuple[int, int], int],
        true: list[list[list[Sample]]],
        defaults: Mapping[int, tuple[int, int, int]],
        next_dts: Mapping[int, int],
    ) -> tuple[dict[int, list[TrueSample]], dict[int, int]]:
        samples: dict[int, list[TrueSample]] = {}
        after = dict(next_dts)
        for t, traf in enumerate(self.trafs):
            time = traf.tfdt
            if time is not None and traf.tfdt_version == 1:
                time = (time + 2**63) % 2**64 - 2**63
            if time is None:
                time = traf.tfxd if traf.tfxd is not None else after.get(traf.track, 0)
            mine = samples.setdefault(traf.track, [])
            for r, run in enumerate(true[t]):
                place = places.get((t, r), 0)
                for sample in run:
                    mine.append(
                        TrueSample(
                            place,
                            sample.size,
                            time,
                            time + (sample.offset + 2**31) % 2**32 - 2**31,
                            sample.duration,
                            not sample.flags & 0x10000,
                        )
                    )
                    place += sample.size
                    time += sample.duration
            if traf.flags & DURATION_IS_EMPTY:
                time += default_of(traf, defaults)[0]
            after[traf.track] = time
        return samples, after


def _tfhd(traf: Traf, base: int) -> Box:
    fields: dict[str, Any] = {"track_ID": traf.track}
    if traf.flags & BASE_DATA_OFFSET:
        fields["base_data_offset"] = (base + traf.stale) % 2**64
    for flag, name in (
        (TFHD_DURATION, "default_sample_duration"),
        (TFHD_SIZE, "default_sample_size"),
        (TFHD_FLAGS, "default_sample_flags"),
    ):
        if traf.flags & flag:
            fields[name] = getattr(traf, name)
    return make_box("tfhd", flags=traf.flags, **fields)


def _trun(run: Run, offset: int) -> Box:
    fields: dict[str, Any] = {"sample_count": len(run.samples)}
    if run.flags & DATA_OFFSET:
        fields["data_offset"] = offset
    if run.flags & FIRST_SAMPLE_FLAGS:
        fields["first_sample_flags"] = run.first_sample_flags
    columns = [
        name
        for flag, name in (
            (SAMPLE_DURATION, "duration"),
            (SAMPLE_SIZE, "size"),
            (SAMPLE_FLAGS, "flags"),
            (SAMPLE_COMPOSITION_TIME_OFFSET, "offset"),
        )
        if run.flags & flag
    ]
    if columns:
        wrap = 2**31 if run.version else 0
        fields["samples"] = [
            tuple(
                (getattr(sample, name) + wrap) % 2**32 - wrap
                if name == "offset"
                else getattr(sample, name)
                for name in columns
            )
            for sample in run.samples
        ]
    return make_box("trun", version=run.version, flags=run.flags, **fields)


def _content(track: int, number: int, size: int) -> bytes:
    """Bytes that tell which sample they are of, so that a wrong offset cannot go unseen."""
    word = b"%d:%d;" % (track, number)
    return (word * (size // len(word) + 1))[:size]
