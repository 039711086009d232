"""A slow, plain reader of samples, to hold the fast one against.

It follows ISO/IEC 14496-12 clause by clause, one sample at a time, with `struct` and nothing of
the library, so that the two can only agree by being right. Where files in the field leave the
standard, it does what docs/findings.md says: PIFF's tfxd gives the time that no tfdt gives,
composition offsets are signed in every version, and with `repair` a moof whose samples would lie
outside of the media data counts from its own start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

TFXD = bytes.fromhex("6d1d9b0542d544e680e2141daff757b2")
MOST_SAMPLES = 1 << 19
"""Of a run: a count of four bytes can claim more than memory holds."""
Defaults = tuple[int, int, int]  # duration, size, flags
Spans = list[tuple[int, int]]


class Sample(NamedTuple):
    """Bytes from the start of the file, ticks of the media timeline."""

    offset: int
    size: int
    dts: int
    cts: int
    duration: int
    sync: bool


class Box(NamedTuple):
    """Its type (the user type of a uuid box); where it, its body and what is next begin."""

    type: bytes
    start: int
    body: int
    stop: int


@dataclass
class Period:
    """One moov and what it governs: defaults of the trex, samples of each track."""

    defaults: dict[int, Defaults] = field(default_factory=dict)
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    next_dts: dict[int, int] = field(default_factory=dict)


class Header(NamedTuple):
    """A tfhd over its trex."""

    track: int
    base: int | None
    from_moof: bool
    empty: bool
    defaults: Defaults


@dataclass
class Run:
    """A trun over its tfhd; samples are duration, size, flags, composition offset."""

    traf: int
    data_offset: int | None
    samples: list[tuple[int, ...]]
    start: int = 0

    def stop(self) -> int:
        return self.start + sum(sample[1] for sample in self.samples)

    def within(self, spans: Spans) -> bool:
        """Whether it lies in one mdat's payload; a run of no bytes lies anywhere."""
        stop = self.stop()
        return stop == self.start or any(a <= self.start and stop <= b for a, b in spans)


def read(data: bytes, init: bytes = b"", *, repair: bool = False) -> list[dict[int, list[Sample]]]:
    """The samples of each track of each period, in decode order, whether their bytes are there.

    What stands before the first moov is governed by `init`, or else by that moov.
    """
    top = [box for box in boxes(data, 0, len(data)) if box.stop <= len(data) or box.type == b"mdat"]
    mdats = [(box.body, min(box.stop, len(data))) for box in top if box.type == b"mdat"]
    moofs = [-1, *(box.start for box in top if box.type == b"moof"), len(data)]
    periods = [movie(data, box) for box in top if box.type == b"moov"]
    heads = [movie(init, box) for box in boxes(init, 0, len(init)) if box.type == b"moov"]
    if heads or not periods:
        periods.insert(0, (heads or [Period()])[0])
    number = len(periods) - sum(box.type == b"moov" for box in top) - 1
    for box in top:
        number += box.type == b"moov"
        if box.type == b"moof":
            at = moofs.index(box.start)
            own = [span for span in mdats if moofs[at - 1] < span[0] < moofs[at + 1]]
            fragment(data, box, periods[max(number, 0)], mdats, own if repair else None)
    return [period.samples for period in periods]


def boxes(data: bytes, start: int, stop: int) -> Iterator[Box]:
    """4.2: the boxes between two places; the last one may claim more than there is."""
    while stop - start >= 8:
        size, kind = struct.unpack_from(">I4s", data, start)
        body = start + 8
        if size == 1 and stop - start >= 16:
            (size,) = struct.unpack_from(">Q", data, body)
            body += 8
        elif size == 0:
            size = stop - start
        if size < body - start:
            return
        if kind == b"uuid":
            kind, body = data[body : body + 16], body + 16
        yield Box(kind, start, body, start + size)
        start += size


def inside(data: bytes, box: Box, path: str) -> list[Box]:
    """The boxes at a path below another."""
    matches = [box]
    for kind in path.split("/"):
        children = [child for parent in matches for child in boxes(data, parent.body, parent.stop)]
        matches = [child for child in children if child.type == kind.encode()]
    return matches


def full(data: bytes, box: Box) -> tuple[int, int, int]:
    """4.2: version, flags, and where the fields begin."""
    (word,) = numbers(data, box.body, 1)
    return word >> 24, word & 0xFFFFFF, box.body + 4


def numbers(data: bytes, at: int, count: int, code: str = "I") -> tuple[int, ...]:
    return struct.unpack_from(f">{count}{code}", data, at)


def movie(data: bytes, moov: Box) -> Period:
    """8.3.2, 8.8.3: a moov's own samples, and the defaults for fragments."""
    period = Period()
    for trak in inside(data, moov, "trak"):
        version, _, at = full(data, inside(data, trak, "tkhd")[0])
        (track,) = numbers(data, at + (16 if version else 8), 1)
        mine = [s for stbl in inside(data, trak, "mdia/minf/stbl") for s in table(data, stbl)]
        period.samples[track] = mine
        period.next_dts[track] = mine[-1].dts + mine[-1].duration if mine else 0
    for trex in inside(data, moov, "mvex/trex"):
        track, _, duration, size, flags = numbers(data, full(data, trex)[2], 5)
        period.defaults[track] = (duration, size, flags)
    return period


def table(data: bytes, stbl: Box) -> list[Sample]:
    """8.6 and 8.7: the samples that an stbl names."""
    bodies = {box.type: full(data, box)[2] for box in boxes(data, stbl.body, stbl.stop)}

    def rows(kind: bytes, width: int, code: str = "I") -> list[tuple[int, ...]]:
        (count,) = numbers(data, bodies[kind], 1)
        flat = iter(numbers(data, bodies[kind] + 4, count * width, code))
        return list(zip(*[flat] * width, strict=True))

    sizes = sample_sizes(data, bodies)
    if not sizes:
        return []
    chunks = rows(b"co64", 1, "Q") if b"co64" in bodies else rows(b"stco", 1)
    counts = [0] * len(chunks)
    for first, per_chunk, _ in rows(b"stsc", 3):  # 8.7.4: until the first_chunk of the next row
        counts[first - 1 :] = [per_chunk] * len(counts[first - 1 :])
    durations = [backwards(delta) for count, delta in rows(b"stts", 2) for _ in range(count)]
    durations[-1:] = [max(duration, 0) for duration in durations[-1:]]
    offsets = [0] * len(sizes)
    if b"ctts" in bodies:  # 8.6.1.3: unsigned in version 0, where nobody means 2^31 and more
        offsets = [offset for count, offset in rows(b"ctts", 2, "i") for _ in range(count)]
    sync = {number for (number,) in rows(b"stss", 1)} if b"stss" in bodies else None
    samples: list[Sample] = []
    time = 0
    for (at,), count in zip(chunks, counts, strict=True):
        for n in range(len(samples), min(len(samples) + count, len(sizes))):
            key = sync is None or n + 1 in sync  # 8.6.2: without stss all are sync
            samples.append(Sample(at, sizes[n], time, time + offsets[n], durations[n], key))
            at += sizes[n]
            time += durations[n]
    return samples


def backwards(duration: int) -> int:
    """docs/findings.md, negative-duration."""
    return duration - 2**32 if duration >= 2**31 else duration


def sample_sizes(data: bytes, bodies: dict[bytes, int]) -> list[int]:
    """8.7.3: stsz, with one size for all or one each; stz2, with 4, 8 or 16 bits each."""
    if b"stsz" in bodies:
        constant, count = numbers(data, bodies[b"stsz"], 2)
        return [constant] * count if constant else [*numbers(data, bodies[b"stsz"] + 8, count)]
    bits, count = numbers(data, bodies[b"stz2"], 2)
    if bits == 4:
        pairs = numbers(data, bodies[b"stz2"] + 8, (count + 1) // 2, "B")
        return [nibble for byte in pairs for nibble in (byte >> 4, byte & 15)][:count]
    return [*numbers(data, bodies[b"stz2"] + 8, count, {8: "B", 16: "H"}[bits])]


def fragment(data: bytes, moof: Box, period: Period, mdats: Spans, own: Spans | None) -> None:
    """8.8.4 to 8.8.12: the samples of a moof, put to those of its tracks; repaired given `own`."""
    trafs = inside(data, moof, "traf")
    headers = [track_header(data, inside(data, traf, "tfhd")[0], period) for traf in trafs]
    runs = [
        track_run(data, trun, number, headers[number].defaults)
        for number, traf in enumerate(trafs)
        for trun in inside(data, traf, "trun")
    ]
    place(runs, headers, moof.start)
    named = [headers[run.traf].base is not None for run in runs]
    if own is not None and not all(
        run.within(mdats if n else own) for run, n in zip(runs, named, strict=True)
    ):
        place(runs, [header._replace(base=moof.start) for header in headers], moof.start)
        if not all(run.within(own) for run in runs):
            place(runs, headers, moof.start)
    for number, (traf, header) in enumerate(zip(trafs, headers, strict=True)):
        time = period.next_dts.get(header.track, 0)
        # 8.8.12, as a signed number in version 1; where it is missing, PIFF's tfxd
        for box in sorted(boxes(data, traf.body, traf.stop), key=lambda box: box.type == b"tfdt"):
            if box.type in (TFXD, b"tfdt"):
                version, _, at = full(data, box)
                (ticks,) = numbers(data, at, 1, "q" if version else "I")
                # docs/findings.md, far-tfdt
                time = ticks if abs(ticks) <= 2**61 else period.next_dts.get(header.track, 0)
        mine = period.samples.setdefault(header.track, [])
        for run in (run for run in runs if run.traf == number):
            at = run.start
            for duration, size, flags, offset in run.samples:
                duration = backwards(duration)
                # 8.8.3.1: sample_is_non_sync_sample
                mine.append(Sample(at, size, time, time + offset, duration, not flags & 0x10000))
                at += size
                time += duration
        period.next_dts[header.track] = time + header.empty * header.defaults[0]


def track_header(data: bytes, tfhd: Box, period: Period) -> Header:
    """8.8.7: fields that are there, in the order of their flags; the trex gives the others."""
    _, flags, at = full(data, tfhd)
    (track,) = numbers(data, at, 1)
    # docs/findings.md, data-outside
    base = min(numbers(data, at + 4, 1, "Q")[0], 2**61) if flags & 1 else None
    at += 4 + 8 * bool(flags & 1) + 4 * bool(flags & 2)  # 2: sample_description_index
    defaults = list(period.defaults.get(track, (0, 0, 0)))
    for column, flag in enumerate((0x8, 0x10, 0x20)):
        if flags & flag:
            (defaults[column],) = numbers(data, at, 1)
            at += 4
    duration, size, sample_flags = defaults
    empty, from_moof = bool(flags & 0x10000), bool(flags & 0x20000)
    return Header(track, base, from_moof, empty, (duration, size, sample_flags))


class TooManySamples(ValueError):
    """A run claims more than anyone writes out."""


def track_run(data: bytes, trun: Box, traf: int, defaults: Defaults) -> Run:
    """8.8.8: what the flags name; first_sample_flags in place of the first sample's own."""
    _, flags, at = full(data, trun)
    (count,) = numbers(data, at, 1)
    if count > MOST_SAMPLES:
        raise TooManySamples(f"{count:,} in a run")
    data_offset = numbers(data, at + 4, 1, "i")[0] if flags & 1 else None
    at += 4 + 4 * bool(flags & 1)
    first = numbers(data, at, 1) if flags & 4 else ()
    at += 4 * len(first)
    samples = []
    for n in range(count):
        row = [*defaults, 0]
        for column, (flag, code) in enumerate(
            zip((0x100, 0x200, 0x400, 0x800), "IIIi", strict=True)
        ):
            if flags & flag:
                (row[column],) = numbers(data, at, 1, code)
                at += 4
        if first and not n:
            row[2] = first[0]
        samples.append(tuple(row))
    return Run(traf, data_offset, samples)


def place(runs: list[Run], headers: list[Header], moof: int) -> None:
    """8.8.7.1, 8.8.8.1: where the data of each run begins."""
    end = moof
    for number, header in enumerate(headers):
        base = header.base
        if base is None:
            base = moof if header.from_moof or number == 0 else end
        end = base
        for run in (run for run in runs if run.traf == number):
            run.start = end if run.data_offset is None else base + run.data_offset
            end = run.stop()
