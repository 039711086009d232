"""FFmpeg plays what the origin serves: the packets of HLS and DASH are those of the files."""

import hashlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.titles import Titles
from origin.serving import serving

FIXTURES = Path(__file__).parents[2] / "fixtures"
FFMPEG = shutil.which("ffmpeg")
NAMES = (
    "faststart", "hybrid", "frag-every-frame", "hevc-aac", "frag-av1-opus", "vp9-flac",
    "video-late", "audio-late", "frag-variable-rate", "start-7s", "negative-cts",
    "frag-two-languages",
)  # fmt: skip
FILES = [FIXTURES / f"{name}.mp4" for name in NAMES]


def packets(what, *streams):
    """The md5 of each packet of streams, in decode order, as FFmpeg reads them."""
    asked = [FFMPEG, "-v", "error", "-i", what]
    for stream in streams:
        asked += ["-map", f"0:{stream}"]
    asked += ["-c", "copy", "-f", "framemd5", "-"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (what, done.stderr)
    digests = {}
    for line in done.stdout.splitlines():
        if line[:1] != "#":
            stream, _, _, _, _, digest, *_ = (part.strip() for part in line.split(","))
            digests.setdefault(stream, []).append(digest)
    return [digests[stream] for stream in sorted(digests)]


def each(what, count):
    """The same, one stream at a time: FFmpeg ends DASH with the track that ends first."""
    return [one for stream in ("v:0", "a:0", "a:1")[:count] for one in packets(what, stream)]


def packets_by_pyav(what):
    """The md5 of each packet of video and sound, by stream: PyAV brings an FFmpeg along."""
    av = pytest.importorskip("av")
    with av.open(str(what)) as container:
        kept = [one for one in container.streams if one.type in ("video", "audio")]
        digests = {one.index: [] for one in kept}
        for packet in container.demux(kept):
            if packet.size:
                digests[packet.stream.index].append(hashlib.md5(bytes(packet)).hexdigest())
    # renditions are opened in an order of their own
    return sorted(digests.values())


def addresses(client, path):
    return [f"{str(client.base_url).rstrip('/')}/{file.name}/{path}" for file in FILES]


def test_by_hls_the_packets_are_those_of_the_file():
    with serving(Titles(FIXTURES, segment_duration=0.5)) as client:
        by_hls = list(map(packets_by_pyav, addresses(client, "hls/master.m3u8")))
    whole = list(map(packets_by_pyav, FILES))
    assert all(whole)
    assert dict(zip(NAMES, by_hls, strict=True)) == dict(zip(NAMES, whole, strict=True))


@pytest.mark.skipif(FFMPEG is None, reason="ffmpeg is not installed; PyAV's reads no DASH")
def test_by_dash_the_packets_are_those_of_the_file():
    with (
        serving(Titles(FIXTURES, segment_duration=0.5)) as client,
        ThreadPoolExecutor(4) as together,
    ):
        whole = list(together.map(lambda what: packets(what, "v?", "a?"), FILES))
        by_dash = list(together.map(each, addresses(client, "dash/manifest.mpd"), map(len, whole)))
    assert all(whole)
    assert dict(zip(NAMES, by_dash, strict=True)) == dict(zip(NAMES, whole, strict=True))
