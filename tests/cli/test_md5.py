"""`fragdex md5`: as md5sum prints and checks."""

import json
import os
import shutil
import subprocess

import pytest

import fragdex


def test_it_prints_like_md5sum(run, files, tmp_path):
    ran = run("md5", "a.mp4", "b.mp4")
    if shutil.which("md5sum"):
        theirs = subprocess.run(
            ["md5sum", "a.mp4", "b.mp4"], cwd=tmp_path, check=True, capture_output=True
        )
        assert ran.data == theirs.stdout
    assert ran.lines[0] == f"{fragdex.sources.md5(files['a.mp4'])}  a.mp4"


def test_dashed_and_json(call, files):
    digest = fragdex.sources.md5(files["a.mp4"])
    assert call("md5", "--dashed", "a.mp4").out == f"{digest.dashed}  a.mp4\n"
    assert json.loads(call("md5", "--json", "a.mp4").out) == {"file": "a.mp4", "md5": digest.hex}


def test_stdin(run, files):
    assert (
        run("md5", "-", stdin=files["a.mp4"]).out == f"{fragdex.sources.md5(files['a.mp4'])}  -\n"
    )


def test_what_it_prints_it_checks(call, files):
    for option in ([], ["--dashed"], ["--jobs", "2"]):
        call("md5", "*.mp4", *option, "-o", "sums.md5")
        ran = call("md5", "-c", "sums.md5", *option)
        assert (ran.code, ran.err) == (0, "")
        assert ran.lines == ["a.mp4: OK", "b.mp4: OK", "progressive.mp4: OK", "sidx.mp4: OK"]


def test_what_differs_or_is_gone_is_counted_and_1(call, files, tmp_path):
    call("md5", "*.mp4", "-o", "sums.md5")
    (tmp_path / "a.mp4").write_bytes(b"changed")
    (tmp_path / "b.mp4").unlink()
    with open(tmp_path / "sums.md5", "a") as sums:
        sums.write("# a comment\n\nnot a digest at all\n")
    ran = call("md5", "-c", "sums.md5")
    assert ran.code == 1
    assert ran.lines[:2] == ["a.mp4: FAILED", "b.mp4: FAILED open or read"]
    assert ran.err.splitlines()[1:] == [
        "fragdex: WARNING: 1 line is improperly formatted",
        "fragdex: WARNING: 1 listed file could not be read",
        "fragdex: WARNING: 1 computed checksum did NOT match",
    ]
    entries = [json.loads(line) for line in call("md5", "-c", "sums.md5", "--json").lines]
    assert [entry["ok"] for entry in entries] == [False, False, True, True]


def test_lists_that_md5sum_wrote_and_lists_that_it_can_read(run, tmp_path):
    if not shutil.which("md5sum") or os.name == "nt":
        pytest.skip("no md5sum")
    odd = "back\\slash\nnewline.bin"
    (tmp_path / odd).write_bytes(b"abc")
    for writer, reader in ((["md5sum"], None), (None, ["md5sum", "-c"])):
        if writer:
            listed = subprocess.run(
                [*writer, odd], cwd=tmp_path, check=True, capture_output=True
            ).stdout
        else:
            listed = run("md5", odd).data
        (tmp_path / "sums").write_bytes(listed)
        if reader:
            subprocess.run([*reader, "sums"], cwd=tmp_path, check=True, capture_output=True)
        else:
            assert run("md5", "-c", "sums").code == 0


def test_a_list_from_stdin(run, files):
    listed = f"{fragdex.sources.md5(files['a.mp4']).dashed.upper()} *a.mp4\n"
    assert run("md5", "-c", "-", stdin=listed.encode()).out == "a.mp4: OK\n"


def test_a_bar_on_a_terminal_and_nowhere_else(files, tmp_path):
    pty = pytest.importorskip("pty")
    import sys

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fragdex", "md5", "a.mp4", "b.mp4"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        out = process.stdout.read()
    os.close(theirs)
    assert out.decode().splitlines()[0].endswith("  a.mp4")
    assert b"a.mp4" in os.read(ours, 65536)
    os.close(ours)
