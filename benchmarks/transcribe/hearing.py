"""Slices are heard by processes, and what comes of it is counted."""

from __future__ import annotations

import os
import queue
import random
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fragdex
from fragdex.speech.engines import EngineChoice, make_engine
from fragdex.speech.process import SpeechProcess
from fragdex.speech.slices import Listener
from fragdex.speech.words import SliceTranscript, Word, merged

WHOLE = 6_000_000
"""A slice longer than the tracks."""


@dataclass(slots=True)
class Hearing:
    """What was heard, and what it cost.

    Attributes:
        seconds: from the first slice to the last word; models were loaded before.
        memory: bytes of each process at its highest.
        processor: seconds of the processor that all processes spent, which others on the same
            machine hardly change.
        bytes_read: of the file by all processes, for the plan and all slices.
    """

    words: tuple[Word, ...]
    seconds: float
    memory: list[int]
    bytes_read: int
    audio_seconds: float
    track_bytes: int
    processor: float
    heard: list[SliceTranscript] = field(default_factory=list)


MACHINERY = EngineChoice("pocketsphinx")
"""The engine of the rows that measure what is around engines: it hears each utterance alone."""


def hear(
    path: Path,
    work_slice_ms: int,
    workers: int = 1,
    *,
    shuffled: bool = False,
    choice: EngineChoice = MACHINERY,
) -> Hearing:
    """A whole track; shuffled: slices in disorder, and one of them twice."""
    index = fragdex.index(path, exact=True)
    track = next(t for t in index.tracks if t.kind == "audio")
    assert track.start is not None
    assert track.stop is not None
    with fragdex.open_source(path) as source:
        children = [SpeechProcess(choice) for _ in range(workers)]
        try:
            for child in children:
                child.open()
                child.take(index, source)
            plan = children[0].plan(work_slice_ms)
            numbers = list(plan.slices)
            if shuffled:
                random.Random(4).shuffle(numbers)
                numbers.append(numbers[0])
            todo: queue.SimpleQueue[int] = queue.SimpleQueue()
            for number in numbers:
                todo.put(number)
            heard: list[tuple[int, SliceTranscript]] = []

            def work(place: int) -> None:
                while True:
                    try:
                        number = todo.get_nowait()
                    except queue.Empty:
                        return
                    heard.append((place, children[place].transcribe_slice(plan, number)))

            before = sum(processor_seconds(child.pid) for child in children)
            began = time.monotonic()
            threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - began
            memory = [peak(child.pid) for child in children]
            spent = sum(processor_seconds(child.pid) for child in children) - before
        finally:
            for child in children:
                child.end()
    if len(heard) != len(numbers):
        raise SystemExit(f"{len(numbers) - len(heard)} slices of {path.name} were not heard")
    read = sum(
        max((one.bytes_read for place, one in heard if place == n), default=0)
        for n in range(workers)
    )
    slices = [one for _, one in heard]
    return Hearing(
        merged(slices).words,
        seconds,
        memory,
        read,
        track.stop.seconds - track.start.seconds,
        int(track.samples.size.sum()),
        spent,
        slices,
    )


class _Nothing:
    """An engine that hears nothing: what is left is our own doing."""

    name, version, model_id = "nothing", "0", "none"
    window_ms = 0
    languages: frozenset[str] | None = None
    deterministic = True
    own_vocabulary = False

    def open(self) -> None: ...

    def close(self) -> None: ...

    def detect(self, sounds: Sequence[Any]) -> str | None:
        return None

    def transcribe(
        self, utterances: Sequence[Any], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        return [[] for _ in utterances]


def without_engine(path: Path, work_slice_ms: int, *, apart: bool) -> tuple[float, float]:
    """Bytes read of all bytes of the track, and seconds of the processor for each of sound.

    Args:
        apart: every slice by a reader that has read nothing before.
    """
    index = fragdex.index(path, exact=True)
    track = next(t for t in index.tracks if t.kind == "audio")
    assert track.stop is not None
    began, read = time.process_time(), 0
    with fragdex.open_source(path) as source:
        listener = Listener(index, source)
        plan = listener.plan(work_slice_ms, _Nothing())
        for number in plan.slices:
            if apart:
                with fragdex.open_source(path) as other:
                    Listener(index, other).transcribe_slice(plan, number, _Nothing())
                    read += other.bytes_read
            else:
                listener.transcribe_slice(plan, number, _Nothing())
        read += source.bytes_read
    spent = (time.process_time() - began) / track.stop.seconds
    return read / int(track.samples.size.sum()), spent


def at_once(path: Path) -> list[Word]:
    """What the engine hears in a whole track as one utterance."""
    index = fragdex.index(path, exact=True)
    end = index.tracks[0].stop
    assert end is not None
    engine = make_engine(MACHINERY)
    engine.open()
    return engine.transcribe([fragdex.decoding.audio(index, path, 0, end.seconds)], "en")[0]


def memory_of_children() -> dict[int, int]:
    """Bytes of memory that each process this one has started had at its highest."""
    pids = [
        pid
        for file in Path("/proc/self/task").glob("*/children")
        for pid in file.read_text().split()
    ]
    return {int(pid): peak(int(pid)) for pid in pids}


def peak(pid: int) -> int:
    """Bytes of memory that a process had at its highest."""
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(match[1]) * 1024 if match else 0


def processor_seconds(pid: int) -> float:
    """Seconds of the processor that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of memory that a process has now."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) * 1024 if match else 0


def aligned(reference: Sequence[str], heard: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
    """Least insertions, deletions and changes between two texts, and the words they share."""
    rows, columns = len(reference) + 1, len(heard) + 1
    cost = np.zeros((rows, columns), int)
    cost[:, 0], cost[0] = np.arange(rows), np.arange(columns)
    for i in range(1, rows):
        for j in range(1, columns):
            same = reference[i - 1] == heard[j - 1]
            cost[i, j] = min(
                cost[i - 1, j] + 1, cost[i, j - 1] + 1, cost[i - 1, j - 1] + (not same)
            )
    i, j, pairs = rows - 1, columns - 1, []
    while i and j:
        same = reference[i - 1] == heard[j - 1]
        if cost[i, j] == cost[i - 1, j - 1] + (not same):
            if same:
                pairs.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return int(cost[-1, -1]), pairs[::-1]


def error_rate(reference: Sequence[str], heard: Sequence[str]) -> float:
    """Wrong words of a hundred."""
    return 100 * aligned(reference, heard)[0] / max(1, len(reference))


def differing(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Words of a hundred that are not the same in two hearings."""
    return error_rate([w.text for w in one], [w.text for w in other])


def start_errors(truth: Sequence[Any], words: Sequence[Word]) -> list[float]:
    """Milliseconds between when words begin and when they were heard to."""
    _, pairs = aligned([text for text, *_ in truth], [word.text for word in words])
    return [abs(truth[i][1] - words[j].start_ms) for i, j in pairs]
