"""`fragdex repair` says what it found, and writes what `fragdex.repair` describes."""

import json
from pathlib import Path

import fragdex

FIXTURES = Path(__file__).parents[2] / "fixtures"
BROKEN, GOOD = FIXTURES / "cut-moov-last.mp4", FIXTURES / "moov-last.mp4"


def test_the_mended_film_is_written(call, tmp_path):
    ran = call("repair", BROKEN, "--like", GOOD, "-o", "mended.mp4")
    assert (ran.code, ran.err) == (0, "")
    repaired = fragdex.repair(BROKEN, GOOD)
    assert (tmp_path / "mended.mp4").read_bytes() == repaired.view.read()
    assert ran.lines[0].startswith("mended.mp4: ")
    assert ran.lines[0].endswith(", nothing lost")
    assert ran.lines[1].startswith("track 1: video avc1.64000A, 50 samples (50 proved), ")
    assert fragdex.index(tmp_path / "mended.mp4").track(2).sample_count == 33


def test_what_became_of_each_byte(call):
    ran = call("repair", BROKEN, "--like", GOOD, "--spans")
    assert "48 –          5,832  proved     samples" in ran.out
    answer = json.loads(call("repair", BROKEN, "--like", GOOD, "--json").out)
    assert answer["repaired"] is None
    assert answer["lost"] == 0
    assert answer["spans"][-1] == {"start": 48, "stop": 5832, "state": "proved", "what": "samples"}
    assert [track["samples"] for track in answer["tracks"]] == [50, 33]


def test_what_is_lost_is_said(call, tmp_path):
    data = bytearray(BROKEN.read_bytes())
    data[2000:2600] = bytes(600)
    (tmp_path / "holed.mp4").write_bytes(data)
    ran = call("repair", "holed.mp4", "--like", GOOD)
    assert ran.code == 0
    assert "in 1 place are in no sample" in ran.err
    assert ran.lines[0].startswith("holed.mp4: would be ")
    assert " lost" in ran.lines[0]


def test_bad_input_is_told_what_to_do(call, tmp_path):
    ran = call("repair", FIXTURES / "README.md", "--like", GOOD)
    assert ran.code == 2
    assert "same camera" in ran.err


def test_a_rate_that_is_none(call):
    for text in ("fast", "0", "1/0"):
        ran = call("repair", BROKEN, "--rate", text)
        assert ran.code == 2
        assert "--rate" in ran.err


def test_the_error_of_a_film_without_a_moov_names_repair(call):
    for command in ("info", "index"):
        ran = call(command, BROKEN)
        assert ran.code == 2
        assert "fragdex repair" in ran.err
