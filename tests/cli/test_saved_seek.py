"""A saved index is asked without numpy and typer; the answer is that of the whole command."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.cli import app, saved_seek
from fragdex.errors import FragdexError
from fragdex.testing import movie

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.mp4"))
TIMES = [
    "0",
    "0.04",
    "1",
    "1.5s",
    "1:00",
    "0:00:01.25",
    "99999999",
    " 2 ",
    "1.",
    "end",
    "x",
    "1:99",
]
FLAGS = [[], ["--json"], ["-t", "1"], ["--track", "2", "--json"], ["-t", "7"], ["--stop", "9"]]


def both(capsysbinary, arguments):
    """What the short way prints, or None where it gives up; and exit code and text of the long."""
    code = saved_seek.seek(arguments)
    short = capsysbinary.readouterr().out
    assert code == 0 or (code is None and not short)
    try:
        long = app.run(arguments), capsysbinary.readouterr().out
    except SystemExit as leaving:
        long = leaving.code, capsysbinary.readouterr().out
    return (None if code is None else short), long


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_an_answer_is_that_of_the_whole_command(path, tmp_path, capsysbinary):
    saved, media = tmp_path / "a.fidx", tmp_path / "a.mp4"
    media.write_bytes(path.read_bytes())
    try:
        fragdex.index(media).save(saved)
    except FragdexError:
        pytest.skip("it has no index")
    answered = 0
    for number, time in enumerate(TIMES):
        arguments = ["seek", str(saved), time, *FLAGS[number % len(FLAGS)]]
        short, long = both(capsysbinary, arguments)
        assert short is None or (0, short) == long
        answered += short is not None
        # A changed file is told of, whatever is asked.
    media.write_bytes(b"....")
    assert saved_seek.seek(["seek", str(saved), "1"]) is None
    index = fragdex.index(path)
    plain = index.complete and len(index.periods) == 1
    if plain and any(t.timescale and len(t.sync_samples) for t in index.tracks):
        assert answered


@given(
    place=st.integers(0, 2**20),
    bits=st.integers(1, 255),
    time=st.sampled_from(TIMES[:8]),
    flags=st.sampled_from(FLAGS),
)
@example(place=5825, bits=1, time="0", flags=[])  # in a column that no seek reads
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_index_is_told_of_or_answered_as_ever(
    tmp_path, capsysbinary, place, bits, time, flags
):
    saved = tmp_path / "a.fidx"
    fragdex.index(movie(fragments=9, tracks=2)).save(saved)
    data = bytearray(saved.read_bytes())
    data[place % len(data)] ^= bits
    saved.write_bytes(data)
    short, long = both(capsysbinary, ["seek", str(saved), time, *flags])
    assert short is None or (0, short) == long


@pytest.mark.parametrize("name", ["", "-", "*.fidx", "nothing.fidx", "https://a.org/a.fidx", "-x"])
def test_other_inputs_are_left_to_the_whole_command(name):
    assert saved_seek.seek(["seek", name, "1"]) is None


def test_neither_numpy_nor_typer_is_imported(tmp_path):
    fragdex.index(movie(fragments=3)).save(tmp_path / "a.fidx")
    program = (
        "import sys; from fragdex.__main__ import main; main(sys.argv[1:]); "
        "print({'numpy', 'typer', 'fractions', 'dataclasses'} & sys.modules.keys())"
    )
    for arguments in (["seek", str(tmp_path / "a.fidx"), "1"], ["--version"]):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "set()", done.stdout
