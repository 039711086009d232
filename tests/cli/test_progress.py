"""Bars of frames and slices: on a terminal and nowhere else, with words above them."""

import os
import re
import subprocess
import sys
import threading

import pytest

PROGRAM = """
from fragdex.cli.output import part_progress
with part_progress("[b]page.html", "frames") as progress:
    progress(1, 20)
    print("heard", flush=True)
    progress(20, 20)
"""


def seen(**streams):
    """What a program writes to a terminal, without colours; `streams` go elsewhere."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    output = []

    def listen():
        try:
            while data := os.read(ours, 65536):
                output.append(data)
        except OSError:  # the other end is closed
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        **{"stdout": theirs, "stderr": theirs, **streams},
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        check=True,
    )
    os.close(theirs)
    listener.join()
    os.close(ours)
    return done, re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", b"".join(output).decode())


def test_a_bar_tells_what_is_done_of_how_many():
    _, terminal = seen()
    assert "[b]page.html" in terminal
    assert "20/20 frames" in terminal
    assert "\rheard\r\n" in terminal


def test_words_into_a_pipe_are_nothing_but_words():
    done, terminal = seen(stdout=subprocess.PIPE)
    assert done.stdout == b"heard\n"
    assert "20/20 frames" in terminal
    assert "heard" not in terminal


def test_nobody_watches():
    done, terminal = seen(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.stdout, done.stderr, terminal) == (b"heard\n", b"", "")
