"""The fuzzer's targets on its seeds, and on a few hundred kinds of damage that a seed decides.

The real fuzzer runs for minutes (`./dev fuzz`); this keeps its targets whole, and what it found
from coming back.
"""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "fuzz"))
try:
    import mutation
    import run
    import seeds
    import targets
    from wider_targets import large
finally:
    sys.path.pop(0)

# The fuzzer's own processes do not load hypothesis; neither would its time be well spent here.
MEDIA = (
    "index",
    "parse",
    "forms",
    "indexer",
    "extend",
    "extract",
    "embed",
    "dump",
    "verify",
    "pure",
    "repair",
)
TEXTS = ("json", "text", "captions", "images", "archives")


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """What a file costs is judged by the fuzzer, which has the machine for itself, and not here."""
    monkeypatch.setitem(large.__globals__, "LEAST_S", 1e9)


def some(target, count):
    """A few seeds, evenly taken."""
    every = list(seeds.seeds(target))
    return every[:: max(1, len(every) // count)]


@pytest.mark.parametrize("target", targets.TARGETS)
def test_seeds_raise_nothing_but_our_errors(target):
    for _, data in some(target, 25):
        targets.TARGETS[target](data)


@pytest.mark.parametrize("target", MEDIA)
def test_damaged_files_raise_nothing_but_our_errors(target):
    dice = random.Random(target)
    for _, data in some(target, 12):
        for _ in range(4):
            damaged = mutation.mutate_boxes(
                data, 32_768, dice, lambda part, most: mutation.scramble(part, dice)[:most]
            )
            targets.TARGETS[target](damaged)


def test_damaged_indexes_raise_nothing_but_our_errors():
    dice = random.Random("fidx")
    for _, data in some("open_index", 12):
        for _ in range(8):
            damaged = mutation.mutate_fidx(
                data, 32_768, dice, lambda part, most: mutation.scramble(part, dice)[:most]
            )
            targets.TARGETS["open_index"](damaged)


@pytest.mark.parametrize("target", TEXTS)
def test_damaged_texts_raise_nothing_but_our_errors(target):
    dice = random.Random(target)
    for _, data in some(target, 10):
        for _ in range(20):
            targets.TARGETS[target](mutation.scramble(data, dice))


def test_mended_sizes_keep_the_boxes_apart():
    """What the box mutator makes still parses into boxes, mostly: else it would not get deep."""
    import fragdex

    dice, whole = random.Random(1), 0
    data = dict(seeds.seeds("parse"))["made.mp4"]
    for _ in range(100):
        damaged = mutation.mutate_boxes(data, 32_768, dice, lambda part, _: part)
        try:
            whole += bool(fragdex.boxes.parse(damaged))
        except fragdex.FragdexError:
            continue
    assert whole > 50


def test_a_mended_index_opens():
    from fragdex.formats import fidx

    data = dict(seeds.seeds("open_index"))["made.mp4.fidx"]
    text_size, start = (
        fidx.parse_head(memoryview(data))[1] - 64,
        fidx.parse_head(memoryview(data))[2],
    )
    again = mutation.mend_fidx(data[64 : 64 + text_size], data[start:])
    assert again == data


def test_one_input_can_be_run_again(tmp_path):
    path = tmp_path / "found"
    path.write_bytes(dict(seeds.seeds("parse"))["made.mp4"])
    done = subprocess.run(
        [sys.executable, str(ROOT / "fuzz" / "run.py"), "--replay", str(path), *targets.TARGETS],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing but our errors" in done.stdout


def test_every_target_has_seeds_and_a_share_of_the_time():
    assert run.TARGETS.keys() == targets.TARGETS.keys()
    assert all(some(target, 1) for target in targets.TARGETS)


def test_a_corpus_is_packed_the_same_each_time_and_seeds_the_next_run(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus" / "captions"
    corpus.mkdir(parents=True)
    for number, data in enumerate((b"WEBVTT", b"1", b"x" * run.MOST_PACKED)):
        (corpus / str(number)).write_bytes(data)
    packed = []
    for name in ("one.zip", "other.zip"):
        monkeypatch.setattr(run, "PACKED", tmp_path / name)
        run.pack(tmp_path)
        packed.append((tmp_path / name).read_bytes())
    assert packed[0] == packed[1]
    monkeypatch.setattr(seeds, "PACKED", tmp_path / "one.zip")
    assert {b"WEBVTT", b"1"} < {data for _, data in seeds.seeds("captions")}


def test_no_worker_is_left_behind():
    """What is ended from outside ends what it started, and nothing else."""
    workers = run.Workers()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with ThreadPoolExecutor(1) as pool, open(os.devnull, "wb") as nothing:
            sleeping = [sys.executable, "-c", "import time; print(1); time.sleep(60)"]
            code = pool.submit(workers.run, sleeping, nothing)
            while not workers._running:
                time.sleep(0.01)
            workers.end()
            assert code.result(30) == -signal.SIGTERM
            assert workers.run(sleeping, nothing) == 0
        assert other.poll() is None
        other.communicate(b"\n")


@pytest.mark.parametrize(("power", "fault"), [(1, False), (2, True)])
def test_a_cost_that_rises_faster_than_the_size_is_a_fault(monkeypatch, power, fault):
    spent = [0.0]

    def work(data):
        spent[0] += (len(data) / 1000) ** power

    monkeypatch.setitem(large.__globals__, "WORK", (work,))
    monkeypatch.setitem(large.__globals__, "LEAST_S", 0.5)
    monkeypatch.setattr(time, "process_time", lambda: spent[0])
    if fault:
        with pytest.raises(AssertionError, match="more than in proportion"):
            large(b"\0\0\0\0")
    else:
        large(b"\0\0\0\0")
