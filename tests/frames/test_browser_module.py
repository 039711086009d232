"""The browser module, in Chromium, answers as the library does; a film is decoded by WebCodecs."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import fragdex
from decoding.filming import number_in, numbered
from formats.test_fidx_maker import check, indexed
from fragdex.errors import FragdexError
from fragdex.formats import fidx
from fragdex.seeking.numbering import Numbering, SyncStarts
from service.console.conftest import browser  # noqa: F401

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODULE = Path(fidx.__file__).with_name("fidx-js") / "fidx.js"
ORDERS = ("presentation", "decode")

ASK = """async ([name, track, moments]) => {
  const { FrameIndex } = await import("/fidx.js");
  const index = await FrameIndex.load("/" + name);
  const one = index.tracks[track];
  const found = [];
  for (const order of ["presentation", "decode"]) for (const hidden of [false, true]) {
    const frames = index.frames({ track: one, order, hidden });
    const numbers = Array.from({ length: frames.length }, (_, number) => number);
    const groups = numbers.map((number) => frames.group(number));
    found.push({
      order, hidden, timescale: frames.timescale, ticks: frames.ticks,
      durations: frames.durations, times: numbers.map((number) => frames.time(number)),
      sync: numbers.map((number) => frames.sync(number)),
      ranges: numbers.map((number) => Object.values(frames.range(number))),
      first: groups.map((group) => group.samples[0].sample),
      last: groups.map((group) => group.samples.at(-1).sample),
      at: frames.length ? moments.map((moment) => frames.numberAt(moment)) : [],
    });
  }
  return found;
}"""

DECODE = """async (wanted) => {
  const { FrameIndex } = await import("/fidx.js");
  const index = await FrameIndex.load("/film.fidx");
  const frames = index.frames();
  const film = async ({ start, stop }) => (await (await fetch("/film.mp4", {
    headers: { Range: `bytes=${start}-${stop - 1}` },
  })).arrayBuffer());
  const parts = await Promise.all(index.init().map(film));
  const init = new Uint8Array(await new Blob(parts).arrayBuffer());
  const config = frames.decoderConfig(init);
  if (!(await VideoDecoder.isConfigSupported(config)).supported) return null;
  const shown = [];
  for (const number of wanted) {
    const group = frames.group(number);
    const bytes = new Uint8Array(await film(group));
    let picture;
    const decoder = new VideoDecoder({
      output: (frame) => {
        if (frame.timestamp === frames.samples[number]) picture = frame;
        else frame.close();
      },
      error: (error) => { throw error; },
    });
    decoder.configure(config);
    for (const one of group.samples) decoder.decode(new EncodedVideoChunk({
      type: one.sync ? "key" : "delta", timestamp: one.sample,
      data: bytes.subarray(one.start - group.start, one.stop - group.start),
    }));
    await decoder.flush();
    const size = picture.allocationSize();
    const pixels = new Uint8Array(size);
    const [luma] = await picture.copyTo(pixels);
    const { width } = picture.visibleRect;
    shown.push([...pixels.subarray(luma.offset, luma.offset + width)]);
    picture.close();
    decoder.close();
  }
  return shown;
}"""


@pytest.fixture
def page(browser):  # noqa: F811
    """A page of a secure origin, whose files are in `files`."""
    page = browser.new_page()
    page.files = {one.name: one.read_bytes() for one in MODULE.parent.iterdir() if one.is_file()}
    page.files[""] = b"<!doctype html><title>Frames</title>"

    def answer(route):
        name = route.request.url.partition("frames.test/")[2]
        if name not in page.files:
            return route.fulfill(status=404, body="")
        data, asked = page.files[name], route.request.headers.get("range")
        kind = "text/javascript" if name.endswith(".js") else "text/html"
        if asked is None:
            return route.fulfill(body=data, content_type=kind)
        first, last = map(int, asked.removeprefix("bytes=").split("-"))
        headers = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return route.fulfill(status=206, body=data[first : last + 1], headers=headers)

    page.route("**/*", answer)
    page.goto("https://frames.test/")
    yield page
    page.close()


def moments(numbering):
    """Times at, beside and between frames, as doubles."""
    if not len(numbering):
        return []
    exact = numbering.ticks / numbering.timescale
    some = exact[:: max(1, len(exact) // 20)]
    return [
        -1.0, 0.0, 1e9, *some.tolist(), *np.nextafter(some, -np.inf).tolist(),
        *np.nextafter(some, np.inf).tolist(), *(some + 0.01).tolist(),
    ]  # fmt: skip


def expected(track, size, asked):
    samples = track.samples
    starts = SyncStarts(samples)
    for order in ORDERS:
        for hidden in (False, True):
            own = Numbering(track, samples, size=size, order=order, hidden=hidden)
            wanted = own.sample
            low = samples.offset[wanted]
            yield {
                "order": order, "hidden": hidden, "timescale": own.timescale,
                "ticks": own.ticks.tolist(), "durations": own.durations.tolist(),
                "times": (own.ticks / own.timescale).tolist(), "sync": own.sync.tolist(),
                "ranges": np.stack([low, low + samples.size[wanted]], 1).tolist(),
                "first": [starts.of(sample) for sample in wanted.tolist()],
                "last": wanted.tolist(),
                "at": own.numbers_at(asked).tolist() if len(own) else [],
            }  # fmt: skip


def test_the_module_answers_as_the_library_does(page):
    seen = 0
    for path in sorted([*FIXTURES.iterdir(), *(FIXTURES / "made").iterdir()]):
        try:
            index = fragdex.index(path, exact=True, partial=True)
            page.files["film.fidx"] = fidx.write(index, samples=True)
        except (FragdexError, IsADirectoryError):
            continue
        for number, track in enumerate(index.tracks):
            if track.kind != "video" or not track.timescale or not len(track.fragments):
                continue
            asked = moments(Numbering(track, track.samples, size=index.file.size))
            answers = page.evaluate(ASK, ["film.fidx", number, asked])
            for one, right in zip(answers, expected(track, index.file.size, asked), strict=True):
                assert one == right, (path.name, number, one["order"], one["hidden"])
            seen += 1
    assert seen > 100


def test_frames_are_decoded_by_webcodecs(page):
    film = numbered(70, 25, keys=20, bframes=3, size=(256, 64))
    page.files |= {
        "film.mp4": film,
        "film.fidx": fidx.write(fragdex.index(film, exact=True), samples=True),
    }
    wanted = [0, 69, 33, 19, 20]
    shown = page.evaluate(DECODE, wanted)
    if shown is None:
        pytest.skip("this Chromium has no H.264")
    assert [number_in(np.array([line], np.uint8)) for line in shown] == wanted


def test_what_the_module_refuses(page):
    index = fragdex.index(FIXTURES / "open-gop.mp4", exact=True)
    whole = fidx.write(index, samples=True)
    damaged = bytearray(whole)
    damaged[100] ^= 1
    page.files |= {
        "cut.fidx": whole[:-1], "damaged.fidx": bytes(damaged), "none.fidx": b"no index",
        "later.fidx": whole[:8] + b"\x02" + whole[9:], "fragments.fidx": fidx.write(index),
    }  # fmt: skip
    refused = """async (name) => {
      const { FrameIndex } = await import("/fidx.js");
      try { (await FrameIndex.load("/" + name)).frames(); } catch (error) { return String(error); }
    }"""
    for name, message in (
        ("cut.fidx", "cut off"), ("damaged.fidx", "damaged"), ("none.fidx", "no .fidx file"),
        ("later.fidx", "version 2"), ("fragments.fidx", "--samples"), ("gone.fidx", "404"),
    ):  # fmt: skip
        assert message in page.evaluate(refused, name)


@pytest.mark.parametrize("order", ORDERS)
def test_tables_of_frames(order):
    path = FIXTURES / "open-gop.mp4"
    index = fragdex.index(path, exact=True)
    with fragdex.Frames(path, index, order=order) as frames:
        rows = list(csv.DictReader(io.StringIO(index.export("frames", order=order).decode())))
        table = json.loads(index.export("frames-json", order=order))
        assert [int(row["ticks"]) for row in rows] == frames.ticks.tolist()
        assert [float(row["time"]) for row in rows] == frames.times.tolist()
        assert [n for n, row in enumerate(rows) if row["sync"] == "1"] == frames.key_frames.tolist()
        data = path.read_bytes()
        samples = frames.track.samples
        for row in rows:
            start, sample = int(row["offset"]), int(row["sample"])
            assert start == samples.offset[sample]
            assert len(data[start : start + int(row["size"])]) == samples.size[sample]
        assert (table["track"], table["timescale"]) == (frames.track.id, frames.timescale)
        plain = [
            {k: str(int(v) if k != "time" else v) for k, v in r.items()} for r in table["frames"]
        ]
        assert [row | {"timescale": str(frames.timescale)} for row in plain] == rows
    with pytest.raises(ValueError, match="order"):
        index.export("frames", order="file")


MAKE = """async (names) => {
  const worker = new Worker("/worker.js", { type: "module" });
  const found = [];
  for (const name of names) {
    const what = await (await fetch("/" + name)).blob();
    const answer = await new Promise((resolve, reject) => {
      worker.onerror = () => reject(new Error("the worker failed"));
      worker.onmessage = ({ data }) => (data.index || data.error) && resolve(data);
      worker.postMessage({ what, options: { samples: true } });
    });
    const url = answer.index && await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsDataURL(new Blob([answer.index]));
    });
    found.push(url ? url.split(",")[1] : answer.error);
  }
  worker.terminate();
  return found;
}"""


def test_a_worker_makes_the_index_of_every_fixture(page):
    folders = (FIXTURES, FIXTURES / "made")
    paths = [p for f in folders for p in sorted(f.iterdir()) if p.suffix[1:3] in ("mp", "m4", "mo")]
    page.files |= {str(number): path.read_bytes() for number, path in enumerate(paths)}
    answers = page.evaluate(MAKE, [str(number) for number in range(len(paths))])
    made = 0
    for path, answer in zip(paths, answers, strict=True):
        if isinstance(answer, dict):
            assert answer["name"] == "IndexingError", (path.name, answer)
        else:
            check(path.name, indexed(path), base64.b64decode(answer))
            made += 1
    assert made > 130


def row_of_canvas(page):
    """A row of the picture that the player shows, as grey."""
    pixels = page.evaluate("""() => {
      const canvas = document.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, canvas.height >> 1, canvas.width, 1);
      return Array.from(data).filter((_, at) => at % 4 === 1);
    }""")
    return np.array([pixels], np.uint8)


def test_a_film_of_20_gb_is_played_without_reading_it(page, tmp_path):
    data = numbered(70, 25, keys=20, bframes=3, size=(256, 64), fragmented=False)
    at = data.index(b"moov") - 4
    path = tmp_path / "film.mp4"
    with path.open("wb") as file:
        # In front of the moov a box of 20 GB that was never written: a hole.
        file.write(data[:at] + b"\0\0\0\1free" + (20 << 30).to_bytes(8, "big"))
        file.seek(at + (20 << 30))
        file.write(data[at:])
    page.goto("https://frames.test/player.html")
    page.set_input_files("#file", path)

    def shown(number):
        page.wait_for_function(
            "text => document.querySelector('#status').value.match(text)",
            arg=f"frame {number} at|cannot|Error|not ",
        )
        status = page.evaluate("document.querySelector('#status').value")
        if "cannot decode" in status:
            pytest.skip("this Chromium has no H.264")
        assert f"frame {number} at {number / 25:.3f} s" in status
        assert number_in(row_of_canvas(page)) == number

    shown(0)
    for number in (1, 2, 3):
        page.click("#forward")
        shown(number)
    page.click("#back")
    shown(2)
    page.evaluate("""() => {
      const slider = document.querySelector("#number");
      slider.value = 41;
      slider.dispatchEvent(new Event("change"));
    }""")
    shown(41)
    status = page.evaluate("document.querySelector('#status').value")
    # of the moov, the headers, and the groups of six pictures
    assert 0 < int(status.split()[-3]) < 3 * len(data)
    page.evaluate("document.querySelector('#number').value = 30")
    page.click("#play")
    shown(69)
