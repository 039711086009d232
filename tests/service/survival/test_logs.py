"""The log of a running service: a line for a user's bad file, a traceback for a fault of ours."""

import io
import re

import pytest
from PIL import Image

import fragdex
from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from service.serving import await_housekeeping
from service.survival.processes import md5_of, until
from service.transcriptions.working import SPEECH, sound_file
from service.working import FIXTURES

LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (?P<level>[A-Z]+) (?P<logger>[\w.]+): (?P<text>.*)")
THROWS = "<script>throw new Error('x\\n2030-01-01 00:00:00,000 ERROR forged: y')</script>"


def lines_of(log):
    """The level and text of each line; whatever has another form stands there as it is."""
    matches = [(line, LINE.fullmatch(line)) for line in log.read_text().splitlines()]
    return [(m["level"], m["text"]) if m else ("", line) for line, m in matches]


def picture():
    out = io.BytesIO()
    Image.new("RGB", (40, 30)).save(out, "PNG")
    return out.getvalue()


def riff(channels=1):
    """A WAV that says more than it has."""
    head = b"RIFF\xff\xff\xff\x7fWAVEfmt \x10\0\0\0\x01\0" + bytes([channels, 0])
    return head + b"\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\xff\xff\xff\x7f" + b"\xff\x7f" * 400


def garbled(name):
    """A file whose boxes are right and whose sound is noise."""
    data = bytearray((SPEECH / name).read_bytes())
    index = fragdex.index(bytes(data))
    for track in index.tracks:
        rows = track.fragments
        for start, stop in zip(rows.data_start.tolist(), rows.data_stop.tolist(), strict=True):
            data[start:stop] = b"\xa5" * (stop - start)
    return bytes(data)


FILES = {
    "cut-in-moov.mp4": (FIXTURES / "cut-in-moov.mp4").read_bytes,
    "cut-in-moof.mp4": (FIXTURES / "cut-in-moof.mp4").read_bytes,
    "cut-in-mdat.mp4": (FIXTURES / "cut-in-mdat.mp4").read_bytes,
    "cut-in-header.mp4": (FIXTURES / "cut-in-header.mp4").read_bytes,
    "no-moov.mp4": (FIXTURES / "no-moov.mp4").read_bytes,
    "text.mp4": lambda: b"This is no film.\n" * 50,
    "zeros.mkv": lambda: bytes(5000),
    "noise.webm": lambda: b"\x1a\x45\xdf\xa3" + bytes(range(256)) * 20,
    "long.wav": riff,
    "without-channels.wav": lambda: riff(channels=0),
}


@pytest.fixture
def browser():
    try:
        find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))


def process(client, name, data):
    """The record of a file that was given to a process, and the one that ended."""
    body = {"filename": name, "byte_size": len(data), "md5": md5_of(data)}
    record = client.post("/unprocessed_files", json=body).json()
    path = f"/unprocessed_files/{record['id']}"
    client.post(f"{path}/upload", content=data)
    answer = client.post(f"{path}/process")
    if answer.status_code == 422:
        return record["id"], "failed"
    place = f"/process_isobmff/{answer.json()['id']}"
    ended = until(lambda: (r := client.get(place).json())["status"] != "processing" and r)
    return ended["id"], ended["status"]


def ended(client, place):
    return until(lambda: (r := client.get(place).json())["status"] in ("complete", "failed") and r)


@pytest.mark.usefixtures("browser")
def test_a_user_s_bad_file_is_a_line_and_no_traceback(site):
    child = site.serve(log_level="info")
    failed = []
    with site.client(child) as client:
        for name, make in FILES.items():
            id, status = process(client, name, make())
            if status == "failed":
                failed.append(id)
        assert len(failed) >= 6
        cut = picture()[:20]
        body = {"filename": "a.png", "byte_size": len(cut), "md5": md5_of(cut)}
        image = client.post("/image_files", json=body).json()["id"]
        assert client.post(f"/image_files/{image}/upload", content=cut).status_code == 422
        failed.append(image)
        size = {"width": 320, "height": 180, "duration_ms": 200, "fps": 10}
        pages = [THROWS, "<script>for (;;);</script>"]
        renders = [client.post("/renders", json={"html": page, **size}).json() for page in pages]
        speech = sound_file(client, garbled("even-aac.mp4"))
        heard = client.post("/transcriptions", json={"file_id": speech, "track_id": 1}).json()
        places = [f"/renders/{one['id']}" for one in renders] + [f"/transcriptions/{heard['id']}"]
        records = [ended(client, place) for place in places]
        failed += [record["id"] for record in records if record["status"] == "failed"]
    child.end()
    lines = lines_of(child.log)
    text = child.log.read_text()
    assert "Traceback" not in text, text
    assert [line for line in lines if line[0] != "INFO"] == []
    for id in failed:
        mentions = [line for _, line in lines if id in line]
        assert len(mentions) == 1, (id, mentions)
        assert re.search(r"(failed|was refused): \w+", mentions[0]), mentions


def test_a_fault_of_ours_is_one_error_with_its_traceback(site):
    child = site.serve(log_level="info", job_workers=0)
    await_housekeeping(child.url)
    with site.client(child) as client:
        with site.database.write() as connection:
            connection.exec_driver_sql("DROP TABLE fragdex_files")
        answer = client.get("/image_files")
        assert answer.status_code == 500
    child.end()
    lines = lines_of(child.log)
    assert [text for level, text in lines if level == "ERROR"] == [
        f"fault {answer.json()['instance']} [{answer.headers['x-request-id']}]"
    ]
    assert "Traceback (most recent call last)" in child.log.read_text()
    assert "no such table" in child.log.read_text()


def test_an_order_that_ends_in_the_middle_of_work_is_no_error(site, slow_film):
    child = site.serve(log_level="info")
    with site.client(child) as client:
        body = {"filename": "a.mkv", "byte_size": len(slow_film), "md5": md5_of(slow_film)}
        path = f"/unprocessed_files/{client.post('/unprocessed_files', json=body).json()['id']}"
        client.post(f"{path}/upload", content=slow_film)
        client.post(f"{path}/process")
        until(lambda: child.works)
    child.end()
    assert [line for line in lines_of(child.log) if line[0] != "INFO"] == []
