"""The fuzzer's targets on its seeds, and on a few hundred kinds of damage that a seed decides.

The real fuzzer runs for minutes (`./dev fuzz`); this keeps its targets whole, and what it found
from coming back.
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "fuzz"))
try:
    import mutation
    import seeds
    import targets
finally:
    sys.path.pop(0)

# The fuzzer's own processes do not load hypothesis; neither would its time be well spent here.
MEDIA = ("index", "parse", "forms", "indexer", "extend", "extract", "embed")


def some(target, count):
    """A few seeds, evenly taken."""
    found = list(seeds.seeds(target))
    return found[:: max(1, len(found) // count)]


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


@pytest.mark.parametrize("target", ["json", "text"])
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
            whole += bool(fragdex.parse(damaged))
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
