"""Whole files as text, so that a change of any declaration shows as a difference to read.

To accept a difference: FRAGDEX_UPDATE_GOLDEN=1 pytest tests/boxes/test_golden.py
"""

import os
from pathlib import Path

import numpy as np
import pytest

from fragdex.boxes import parse

GOLDEN = Path(__file__).parent / "golden"
FILES = ["dash-init.mp4", "frag-audio-sidx.m4a", "frag-prft.mp4", "pcm-24.mov", "vp9-flac.mp4"]


def shown(value):
    if isinstance(value, np.ndarray):
        rows = value[:3].tolist()
        return f"{rows}{' …' if len(value) > 3 else ''} ({len(value)})"
    if isinstance(value, bytes | memoryview):
        return f"{bytes(value[:24]).hex()}{'…' if len(value) > 24 else ''} ({len(value)} bytes)"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


def lines(box, depth=0):
    indent = "    " * depth
    yield f"{indent}{box.type} {box.offset}+{box.size}"
    for name, value in box.fields.items():
        yield f"{indent}  {name} = {shown(value)}"
    for child in box:
        yield from lines(child, depth + 1)
    if box.trailing:
        yield f"{indent}  trailing = {box.trailing.hex()}"


@pytest.mark.parametrize("name", FILES)
def test_the_dump_is_the_golden_one(root, name):
    text = "".join(
        f"{line}\n" for box in parse((root / "fixtures" / name).read_bytes()) for line in lines(box)
    )
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("FRAGDEX_UPDATE_GOLDEN"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
