"""seek, plan and info: the answers of the library, in words and in JSON."""

import json
from pathlib import Path

import pytest

import fragdex

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def test_seek_says_what_the_library_says(run, files):
    ran = run("seek", "b.mp4", "0.5")
    index = fragdex.index(files["b.mp4"])
    assert (ran.code, ran.err, len(ran.lines)) == (0, "", 2)
    for line, track in zip(ran.lines, index.tracks, strict=True):
        hit = track.seek(0.5)
        assert line.startswith(f"track {track.id} ({track.kind})  {hit.range.header}  ")
        assert line.endswith(f"fragment {hit.fragment}  sample {hit.sample}")


def test_seek_in_json(call, files):
    hit = json.loads(call("seek", "b.mp4", "0.5", "--json", "-t", "2").out)["hits"][0]
    expected = fragdex.index(files["b.mp4"]).track(2).seek(0.5)
    assert (hit["start"], hit["stop"], hit["sample"], hit["time"]) == (
        expected.range.start,
        expected.range.stop,
        expected.sample,
        expected.time.seconds,
    )


def test_seek_until_says_where_its_bytes_do_not_play(call, files):
    ran = call("seek", "progressive.mp4", "0", "--stop", "0.4")
    assert ran.out.startswith("init  bytes=0-")
    assert "progressive.mp4: these bytes do not play alone" in ran.err
    answers = [
        json.loads(call("seek", n, "0", "-u", "1", "--json").out)
        for n in ("a.mp4", "progressive.mp4")
    ]
    assert [one["plays"] for one in answers] == [True, False]
    assert answers[0]["obstacle"] == ""
    assert "fragdex.clip(" in answers[1]["obstacle"]


def test_seek_until_gives_the_bytes_to_fetch(call, files):
    ran = call("seek", "b.mp4", "0.2", "--stop", "0.4")
    index = fragdex.index(files["b.mp4"])
    span = index.span(0.2, 0.4)
    assert ran.lines == [
        *(f"init  {part.header}" for part in span.init),
        *(f"media {part.header}" for part in span.media),
    ]
    answer = json.loads(call("seek", "b.mp4", "0.2", "--stop", "end", "--json").out)
    assert answer["media"][-1]["stop"] == len(files["b.mp4"])


def test_times_outside_are_marked(call, files):
    assert all(line.endswith("clamped") for line in call("seek", "b.mp4", "--", "-1").lines)
    assert all(line.endswith("clamped") for line in call("seek", "b.mp4", "end").lines)


def test_a_span_that_reaches_outside_says_so(call, files):
    ran = call("seek", "a.mp4", "0.5", "--stop", "90")
    end = float(fragdex.index(files["a.mp4"]).track(1).stop)
    assert ran.code == 0
    assert ran.err == f"fragdex: a.mp4: clamped: it plays from 0.000000 s to {end:.6f} s\n"
    assert "nearest bytes" in call("seek", "a.mp4", "60", "--stop", "90").err
    assert "clamped" in call("seek", "a.mp4", "--stop", "1", "--", "-1").err
    for until, clamped in (("90", True), ("0.6", False), ("end", False)):
        answer = json.loads(call("seek", "a.mp4", "0.5", "--stop", until, "--json").out)
        assert answer["clamped"] is clamped
    assert call("seek", "a.mp4", "0.5", "--stop", "end").err == ""
    # what the tracks that were not asked for play does not count
    assert call("seek", "b.mp4", "0", "--stop", "end", "-t", "2").err == ""


def test_several_files_are_headed_by_their_names(call, files):
    ran = call("seek", "a.mp4", "b.mp4", "0.1")
    assert ran.lines[0] == "a.mp4:"
    assert "b.mp4:" in ran.lines
    assert len(call("seek", "*.mp4", "0", "--json").lines) == 4
    assert call("plan", "a.mp4", "b.mp4", "0.1").lines[0] == "a.mp4:"


@pytest.mark.parametrize("form", ["fidx", "json"])
def test_a_saved_index_answers_like_its_file(call, files, form):
    call("index", "a.mp4", "-f", form, "-o", f"saved.{form}")
    saved, media = (call("seek", name, "0.5", "--json").out for name in (f"saved.{form}", "a.mp4"))
    ours, theirs = json.loads(saved)["hits"], json.loads(media)["hits"]
    if form == "fidx":
        assert ours == theirs
    else:
        assert ours[0]["time"] <= theirs[0]["time"]


def test_plan_says_what_is_read_and_why(call, files):
    answer = json.loads(call("plan", "b.mp4", "0.5", "--json").out)
    plan = fragdex.index(files["b.mp4"]).plan(0.5)
    assert (answer["requests"], answer["bytes"]) == (plan.requests, plan.bytes)
    assert answer["samples"] == {str(track): count for track, count in plan.samples.items()}
    words = call("plan", "b.mp4", "0.5").out
    assert all(f"  {sentence}\n" in words for sentence in plan.why)
    assert "initialization segment" in words


def test_a_file_without_tracks_has_nothing_to_seek_in(call, fixtures):
    for command in ("seek", "plan"):
        ran = call(command, fixtures / "dash-init.mp4", "0")
        assert ran.code == 2, ran.out


def test_info_shows_what_print_shows(call, files):
    assert call("info", "b.mp4").out.startswith(f"{fragdex.index('b.mp4')!r}\n")


def test_info_says_what_a_player_wants_to_know(call, fixtures):
    lines = call("info", fixtures / "frag-two-languages.mp4").lines
    assert any("25 fps" in line and "kbit/s (peak " in line for line in lines)
    assert any("fra, not enabled, alternate group 1" in line for line in lines)
    assert "  chapter 1.000 second" in call("info", fixtures / "chapters.mp4").lines
    track = json.loads(call("info", fixtures / "ntsc.mp4", "--json").out)["periods"][0]["tracks"][0]
    assert track["frame_rate"] == pytest.approx(30000 / 1001)
    assert track["bit_rate"] < track["peak_bit_rate"]
    assert track["rotation"] == 0


def test_info_in_json_has_everything(call, fixtures):
    answer = json.loads(call("info", fixtures / "two-inits.mp4", "--json").out)
    assert len(answer["periods"]) == 2
    track = answer["periods"][0]["tracks"][0]
    assert track["codec"].startswith("avc1.")
    assert track["width"] == 64
    assert answer["complete"] is True


def test_periods_are_told_apart(call, fixtures):
    ran = call("seek", fixtures / "two-inits.mp4", "0")
    assert any(line.startswith("period 0 track") for line in ran.lines)
    assert any(line.startswith("period 1 track") for line in ran.lines)


def test_the_end_as_a_time(call, files):
    """It is the last moment there is, in JSON as elsewhere."""
    for command in ("seek", "plan"):
        ran = call(command, "a.mp4", "end", "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["time"] == pytest.approx(fragdex.index(files["a.mp4"]).duration)


def test_a_time_on_the_command_line_is_exact(call, files):
    """0.1 is a tenth, which the float 0.1 is not; a clock of 99 seconds is refused."""
    assert json.loads(call("seek", "a.mp4", "0.1s", "--json").out)["time"] == 0.1
    ran = call("seek", "a.mp4", "1:99")
    assert ran.code == 2
    assert ran.err == (
        "fragdex: '1:99' is not a time: minutes and seconds after a colon are below 60\n"
    )


def test_a_verified_seek_goes_back_to_where_a_decoder_can_start(run, call, tmp_path):
    for name in ("all-sync.mp4", "frag-all-sync.mp4"):
        media = tmp_path / name
        media.write_bytes((FIXTURES / name).read_bytes())
        fragdex.index(media).save(tmp_path / "saved.fidx")
        for asked in (media, tmp_path / "saved.fidx"):
            ran = call("seek", str(asked), "1.7", "-t", "1", "--verified")
            assert "from 1.440000 s" in ran.out
            assert ran.lines[0].endswith("sample 36")
        assert "sample 43" in call("seek", str(media), "1.7", "-t", "1").out
        verified = call(
            "seek", str(media), "1.7", "--stop", "1.8", "-t", "1", "--verified", "--json"
        )
        span = fragdex.index(media).span("1.44", "1.8", tracks=[1])
        ranges = [(part["start"], part["stop"]) for part in json.loads(verified.out)["media"]]
        assert ranges == [(part.start, part.stop) for part in span.media]
    # the pictures that it looks at count in the same budget as the index
    spent = fragdex.index(media, max_bytes=10**9).how.bytes_read
    ran = run("seek", str(media), "1.7", "-t", "1", "--verified", "--max-bytes", str(spent))
    assert ran.code == 2
    assert "would exceed the budget" in ran.err


def test_what_cannot_be_verified_is_an_error(run, tmp_path):
    ran = run("seek", str(FIXTURES / "encrypted.mp4"), "1.7", "--verified")
    assert ran.code == 2
    assert "track 1: it is encrypted" in ran.err
    data = (FIXTURES / "all-sync.mp4").read_bytes()
    fragdex.index(data).save(tmp_path / "bytes.fidx")
    ran = run("seek", str(tmp_path / "bytes.fidx"), "1.7", "--verified")
    assert ran.code == 2
