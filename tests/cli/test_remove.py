"""`fragdex remove`: a film without some spans of time."""

import json

import fragdex
from conftest import ROOT

FILM = ROOT / "fixtures" / "faststart.mp4"


def test_it_says_what_stays_and_what_went_besides(call):
    ran = call("remove", FILM, "0.5", "1", "-o", "shorter.mp4")
    assert ran.code == 0
    assert "shorter.mp4: 0.000 – 0.500, 1.440 – 2.000 of" in ran.out
    assert "1.000 – 1.440 is left out" in ran.err
    whole, shorter = fragdex.index(FILM), fragdex.index("shorter.mp4")
    assert shorter.duration < whole.duration - 0.9


def test_several_spans_as_json(call):
    ran = call("remove", FILM, "1.44", "end", "0", "0:00.48", "--json", "-o", "middle.mp4")
    told = json.loads(ran.out)
    assert told["kept"] == [[0.48, 1.44]]
    assert told["findings"] == []
    assert fragdex.index("middle.mp4").duration == told["seconds"] == 0.96


def test_the_film_on_stdout_has_its_words_on_stderr(run):
    ran = run("remove", FILM, "0.5", "1", "-o", "-")
    assert fragdex.index(ran.data).duration < 1.2
    assert "0.000 – 0.500" in ran.err


def test_what_it_cannot_do_is_said(call):
    for words, said in (
        (["0.5"], "0.5 has no end"),
        (["1", "0.5"], "T1 (0.5) must be after T0 (1)"),
        (["0", "50"], "nothing would be left"),
    ):
        ran = call("remove", FILM, *words, "-o", "x.mp4")
        assert (ran.code, said in ran.err) == (2, True), ran.err


def test_what_is_removed_is_proved_to_be_gone(call):
    assert call("remove", FILM, "0.5", "1", "-o", "shorter.mp4").code == 0
    ran = call("verify", "shorter.mp4", FILM, "--without", "0.5", "1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("shorter.mp4: OK, none of ")
    ran = call("verify", "shorter.mp4", FILM, "--without", "0", "0.2", "0.5", "1")
    assert ran.code == 1
    assert "shorter.mp4: sample-left: bytes of the video sample at 0.000 s" in ran.out
    assert "FAILED" in ran.lines[-1]
    told = json.loads(call("verify", "shorter.mp4", FILM, "--without", "0.5", "1", "--json").out)
    assert told["ok"] is True
    assert told["left"] == 0 < told["samples"]


def test_a_clip_that_hides_what_was_before_it_is_no_proof(call):
    assert call("extract", FILM, "0.8", "end", "-o", "clip.mp4").code == 0
    assert call("index", FILM, "-o", "film.fidx").code == 0
    ran = call("verify", "clip.mp4", FILM, "--without", "0", "0.8")
    assert ran.code == 1


def test_a_proof_needs_a_source_and_a_span(call):
    for words, said in (
        (["--without", "0.5", "1"], "verify FILE SOURCE --without"),
        ([FILM, "--without", "0.5", "1", "2"], "verify FILE SOURCE --without"),
        ([FILM, "--without", "1", "0.5"], "ends after it starts"),
        ([FILM, "--without", "50", "60"], "no sample"),
    ):
        ran = call("verify", FILM, *words)
        assert (ran.code, said in ran.err) == (2, True), ran.err
