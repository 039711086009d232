"""Films of hostile sizes: what they take in memory, in processes of their own, and the answers."""

import json
import math
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.muxing.segmentation import MARGIN
from fragdex.testing import movie

if not Path("/proc/self/status").exists():
    pytest.skip("the peak of a process is read from /proc", allow_module_level=True)

MOOV = 100_000_000
MIB = 1 << 20
FEW = 1_000_000


def large_moov(file):
    """A short film whose moov is of 100 MB, most of it a hole in the file."""
    data = movie(1, samples=20, fps=5, fragmented=False)
    at = data.index(b"moov") - 4
    size = int.from_bytes(data[at : at + 4], "big")
    file.write(data[:at] + struct.pack(">I", size + MOOV) + data[at + 4 : at + size])
    file.write(struct.pack(">I4s", MOOV, b"free"))
    file.seek(MOOV - 8, os.SEEK_CUR)
    file.write(data[at + size :])
    file.truncate()


def many_samples(file):
    """A progressive film of very many samples without a byte: their sizes are a hole."""
    data = movie(1, samples=20, fps=5, fragmented=False)
    at = data.index(b"moov") - 4
    stop = at + int.from_bytes(data[at : at + 4], "big")
    tables = {
        b"stsz": struct.pack(">III", 0, 0, FEW),
        b"stts": struct.pack(">IIII", 0, 1, FEW, 1000),
        b"stsc": struct.pack(">IIIII", 0, 1, 1, FEW, 1),
        b"stss": struct.pack(">III", 0, 1, 1),
    }

    def copied(part):
        """The boxes with these tables, and bytes that the last table lacks."""
        data, at = b"", 0
        while at < len(part):
            size, kind = struct.unpack_from(">I4s", part, at)
            body, lacks = part[at + 8 : at + size], 0
            if kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
                body, lacks = copied(body)
            elif kind == b"stsz":
                continue_at = at + size
                rest, _ = copied(part[continue_at:])  # the hole is the last of its stbl
                head = struct.pack(">I4s", 20 + 4 * FEW, kind) + tables[kind]
                return data + rest + head, 4 * FEW
            body = tables.get(kind, body)
            data += struct.pack(">I4s", 8 + len(body) + lacks, kind) + body
            at += size
            if lacks:
                assert at == len(part), "the hole ends all boxes around it"
                return data, lacks
        return data, 0

    moov, lacks = copied(data[at:stop])
    file.write(data[:at] + moov)
    file.seek(lacks, os.SEEK_CUR)
    file.write(data[stop:])
    file.truncate()


def short_fragments(file):
    """Ten hours of fragments of one frame, 25 a second."""
    data = movie(3, samples=1, fps=25)
    starts = fragdex.index(data, exact=True).track(1).fragments.moof_offset.tolist()
    moof = bytearray(data[starts[0] : data.index(b"mdat") - 4])
    struct.pack_into(">I", moof, moof.index(b"trun") + 20, 1)  # bytes of the sample
    one = bytes(moof) + struct.pack(">I4s", 9, b"mdat") + b"x"
    file.write(data[: starts[0]])
    tfdt = one.index(b"tfdt") + 8
    for first in range(0, 10 * 3600 * 25, 90_000):
        rows = np.tile(np.frombuffer(one, np.uint8), (90_000, 1))
        numbers = np.arange(first, first + 90_000)
        rows[:, 20:24] = (numbers + 1).astype(">u4").view(np.uint8).reshape(-1, 4)
        rows[:, tfdt : tfdt + 8] = (numbers * 1000).astype(">u8").view(np.uint8).reshape(-1, 8)
        file.write(rows)


# what each takes at most, beside what a process takes that imported all
FILMS = {
    "moov": (large_moov, 6 * MOOV),
    "samples": (many_samples, 200 * FEW),
    "fragments": (short_fragments, 500 * MIB),
}

CHILD = r"""
import json, re, resource, sys
import fragdex
from fragdex.errors import FragdexError
from fragdex.testing import movie
from fragdex.muxing.kinds import described

def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10

def looked_at(source, clip):
    index = fragdex.index(source, exact=True)
    made = fragdex.package(index, source=source)
    texts = [len(made[name].read()) for name in ("master.m3u8", "v1.m3u8", "manifest.mpd")]
    (one,) = made.title.of("video")
    last = made[f"v1/{one.segments[-1].time}.m4s"].read(source=source)
    answers = [len(one.segments), len(last), texts]
    for kind, options in (("fragmented", {}), ("faststart", {}), ("clip", clip)):
        view = described(index, kind, source=source, **options)
        part = view.read(fragdex.ByteRange(view.size - 100, view.size), source=source)
        answers.append([view.size, len(part)])
    return answers

looked_at(movie(3), {})
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
before = peak()
try:
    answers = looked_at(sys.argv[1], {"start": float(sys.argv[2]), "stop": float(sys.argv[2]) + 1})
except FragdexError as error:
    answers = str(error)
print(json.dumps([peak() - before, answers]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name, (write, _) in FILMS.items():
        with (folder / f"{name}.mp4").open("wb") as file:
            write(file)
    return folder


def looked_at(path, start):
    command = [sys.executable, "-c", CHILD, str(path), str(start)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_a_moov_of_100_mb(folder):
    path = folder / "moov.mp4"
    assert path.stat().st_size > MOOV
    taken, answers = looked_at(path, 1)
    assert taken < FILMS["moov"][1]
    segments, _, _, fragmented, faststart, clip = answers
    assert segments == 1
    # all that was in the moov is passed on
    assert min(fragmented[0], faststart[0], clip[0]) > MOOV


def test_samples_without_number(folder):
    taken, answers = looked_at(folder / "samples.mp4", 1)
    assert taken < FILMS["samples"][1]
    # one sync sample: a single segment, and a clip from it on
    assert answers[0] == 1


@pytest.mark.slow
def test_ten_hours_of_fragments_of_one_frame(folder):
    taken, answers = looked_at(folder / "fragments.mp4", 18_000)
    assert taken < FILMS["fragments"][1]
    segments, last, _, fragmented, faststart, clip = answers
    # each frame is a key frame: a segment ends at the first one that is near enough to 4 s, as it
    # would if the file grew, since what comes may not be one
    frames = math.ceil((4 - MARGIN) * 25)
    assert segments == math.ceil(10 * 3600 * 25 / frames)
    assert last < 4000
    # one moov, and no header for each frame
    assert faststart[0] < fragmented[0] < (folder / "fragments.mp4").stat().st_size
    assert clip[0] < 10_000


def test_the_origin_serves_them(folder):
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "fragdex", "origin", str(folder), "--port", "0"]
    command += ["--log", "none", "--growing", "0", "--films", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            base = re.search(r"http://\S+(?=/)", process.stdout.readline())[0]
            with httpx.Client(base_url=base, timeout=300) as client:
                for name in FILMS:
                    for path in ("hls/master.m3u8", "hls/v1.m3u8", "hls/v1/0.m4s"):
                        answer = client.get(f"/{name}.mp4/{path}")
                        assert answer.status_code == 200, answer.text
                    end = {"range": "bytes=-100"}
                    answer = client.get(f"/{name}.mp4/clip.mp4?start=1&end=2", headers=end)
                    assert (answer.status_code, len(answer.content)) == (206, 100)
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10 < 1100 * MIB
        finally:
            process.terminate()
            process.wait(30)
