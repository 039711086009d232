"""fidx.h under AddressSanitizer and UndefinedBehaviorSanitizer, with files that someone forged.

Checksums are right, since nothing behind a wrong one is read. Any number may be returned; a wrong
access, an overflow, a leak, or a range that is none, ends the program.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fragdex
from forged_indexes import forged_columns, forged_values
from formats import fidx_programs as programs
from formats import fidx_vectors as made
from fragdex.formats import fidx
from fragdex.formats.fidx_head import parse_head
from fragdex.testing import movie

SOURCE = Path(__file__).parents[2] / "fuzz" / "fidx_h.c"
SMALL = fidx.write(fragdex.index(movie(fragments=2, samples=3), exact=True), samples=True)
READ, REFUSED = 0, range(1, 7)


class Child:
    """The program that asks everything of a file, running."""

    def __init__(self, program: Path) -> None:
        self._child = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def status(self, data: bytes) -> int:
        """What it says of a file; fails with what the sanitizers report."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(b"%d\n" % len(data) + data)
            self._child.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._child.stdout.readline()
        assert line, self.report()
        return int(line)

    def statuses(self, files: Iterable[bytes]) -> list[int]:
        """Of many files."""
        return [self.status(data) for data in files]

    def report(self) -> str:
        """Ends it; what it had to say."""
        _, output = self._child.communicate()
        return output.decode()[-4000:]


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    if programs.compiler() is None:
        pytest.skip("no gcc and no clang")
    target = tmp_path_factory.mktemp("fidx") / "hostile"
    programs.compiled(SOURCE, target, "-DFROM_STDIN", *programs.SANITIZED)
    if not programs.runs(target):
        pytest.skip("no process runs under the sanitizers here")
    running = Child(target)
    yield running
    assert running.report() == ""


def test_every_cut_is_refused(child):
    assert set(child.statuses(SMALL[:size] for size in range(len(SMALL)))) <= set(REFUSED)
    assert child.status(SMALL) == READ


def test_forged_values_and_columns(child):
    statuses = child.statuses(data for _, data in islice(forged_values(SMALL), 0, None, 5))
    assert {READ, *statuses} <= {READ, *REFUSED}
    assert min(statuses.count(READ), len(statuses) - statuses.count(READ)) > 60
    statuses = child.statuses(data for _, data in islice(forged_columns(SMALL), 0, None, 5))
    assert min(statuses.count(READ), len(statuses) - statuses.count(READ)) > 20


FILES = [made.film(name) for name in made.FILMS]
SNIPS = st.sampled_from(
    [b"", b"0", b"-1", b"9" * 18, b"9" * 30, b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"\\u00",
     b"1e5", b"null", b"true", b" ", b"\x00", b"\xff"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_files_with_right_checksums(child, data):
    whole = data.draw(st.sampled_from(FILES))
    _, stop, start = parse_head(memoryview(whole))
    text, columns = whole[64:stop], bytearray(whole[start:])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        more = data.draw(st.integers(0, 4) | st.integers(0, 300))
        text = text[:at] + data.draw(SNIPS | st.binary(max_size=4)) + text[at + more :]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(0, len(columns) // 8 - 1))) * 8
        number = data.draw(st.integers(-(2**63), 2**63 - 1))
        columns[at : at + 8] = number.to_bytes(8, "little", signed=True)
    assert child.status(made.sealed(text, bytes(columns))) in (READ, *REFUSED)
