"""`fragdex view` writes what `fragdex.view` describes."""

import json
import os

import pytest

import fragdex
from fragdex.muxing.kinds import described
from fragdex.testing import movie

ASKED = {
    "fragmented": ([], {}),
    "faststart": ([], {}),
    "tracks": (["-t", "2"], {"tracks": [2]}),
    "clip": (["--start", "0.3", "--stop", "0:00.6"], {"start": "0.3", "stop": "0.6"}),
    "init": (["-t", "1"], {"tracks": [1]}),
    "segment": (["-n", "2", "--segment-duration", "all"], {"number": 2, "segment_duration": None}),
    "timeline": (["--segment-duration", "1"], {"segment_duration": 1}),
}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("name", ["b.mp4", "progressive.mp4"])
def test_a_kind(call, files, tmp_path, kind, name):
    options, asked = ASKED[kind]
    ran = call("view", name, "--kind", kind, *options, "-o", "made.mp4")
    assert (ran.code, ran.err) == (0, "")
    view = described(fragdex.index(tmp_path / name, exact=True), kind, **asked)
    assert (tmp_path / "made.mp4").read_bytes() == view.read()
    assert ran.out.startswith(f"made.mp4: {kind} of {name}, {view.media_type}, ")


def test_a_clip_from_its_sync_sample(call, files, tmp_path):
    options = ["--kind", "clip", "--start", "0.25", "--at-key-frame"]
    assert call("view", "progressive.mp4", *options, "-o", "made.mp4").code == 0
    index = fragdex.index(tmp_path / "made.mp4")
    assert index.how.method == "boxes"
    source = fragdex.index(files["progressive.mp4"])
    length = source.duration - source.track(1).seek(0.25).time.seconds
    assert index.duration == pytest.approx(length, abs=0.05)


def test_the_answer_as_json(call, files, tmp_path):
    ran = call("view", "a.mp4", "b.mp4", "--json", "-o", "made/", "--jobs", "2")
    answers = [json.loads(line) for line in ran.lines]
    assert [one["file"] for one in answers] == ["a.mp4", "b.mp4"]
    view = fragdex.view(fragdex.index(tmp_path / "b.mp4", exact=True))
    assert answers[1] == {
        "file": "b.mp4",
        "view": os.path.join("made", "b.mp4"),
        "kind": "fragmented",
        "media_type": view.media_type,
        "size": view.size,
        "etag": view.etag,
        "findings": [],
    }


def test_a_view_on_stdout_and_the_words_on_stderr(run, files):
    ran = run("view", "progressive.mp4", "-o", "-")
    assert ran.code == 0
    assert fragdex.index(ran.data).complete
    assert ran.err.startswith("-: fragmented of progressive.mp4")


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("how", [["--samples"], []], ids=" ".join)
def test_from_a_saved_index(call, files, tmp_path, kind, how):
    """Also from one that has no samples: those are read from the media."""
    call("index", "b.mp4", *how, "-o", "saved")
    for name in ("saved", "b.mp4"):
        ran = call("view", name, "--kind", kind, *ASKED[kind][0], "-o", f"{name}.made")
        assert ran.code == 0, ran.err
    assert (tmp_path / "saved.made").read_bytes() == (tmp_path / "b.mp4.made").read_bytes()


def test_from_a_file_with_a_sidx(call, files, tmp_path):
    assert fragdex.index(files["sidx.mp4"]).how.method == "sidx"
    assert call("view", "sidx.mp4", "-o", "made.mp4", "--segment-duration", "1").code == 0
    exact = fragdex.index(tmp_path / "sidx.mp4", exact=True)
    assert (tmp_path / "made.mp4").read_bytes() == fragdex.view(exact, segment_duration=1).read()


def test_of_a_remote_clip_only_what_is_needed_is_read(call):
    pytest.importorskip("httpx")
    from fragdex.testing import RangeServer

    long = movie(fragments=300, samples=20, sidx=True)
    options = ["--kind", "clip", "--start", "100", "--stop", "101", "-o", "made.mp4"]
    with RangeServer({"/long.mp4": long}) as server:
        budget = ["--max-bytes", len(long) // 4, "--max-requests", "20"]
        ran = call("view", server.url, *options, *budget)
        assert ran.code == 0, ran.err
        assert call("view", server.url, "-o", "made.mp4", *budget).code == 2


def test_files_one_behind_the_other(call, files, tmp_path):
    names = ["a.mp4", "b.mp4", "progressive.mp4"]
    indexes = [fragdex.index(tmp_path / name, exact=True) for name in names]
    call("index", "b.mp4", "-o", "b.fidx")
    given = ["a.mp4", "b.fidx", "progressive.mp4"]
    ran = call("view", *given, "--kind", "timeline", "-o", "made.mp4", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["files"] == given
    assert (tmp_path / "made.mp4").read_bytes() == fragdex.join(indexes).read()
    starts = ["--starts", "1,0:10,20"]
    ran = call("view", *names, "--kind", "timeline", "-o", "late.mp4", *starts)
    assert ran.out.startswith("late.mp4: timeline of a.mp4 and 2 more, video/mp4; ")
    view = fragdex.join(indexes, starts=[1, 10, 20])
    assert (tmp_path / "late.mp4").read_bytes() == view.read()


def test_a_timeline_that_cannot_be(call, files):
    both = ["view", "a.mp4", "b.mp4", "--kind", "timeline"]
    ran = call(*both, "-o", "made.mp4", "--starts", "0")
    assert ran.code == 2
    assert "--starts has 1 times for 2 files" in ran.err
    ran = call(*both, "-o", "b.mp4")
    assert ran.code == 2
    assert "one of the inputs" in ran.err
    ran = call("view", "a.mp4", "-o", "made.mp4", "--starts", "0")
    assert "--starts does not apply to fragmented" in ran.err
    ran = call(*both, "-o", "made.mp4", "--starts", "source")
    assert ran.code == 2
    assert "b.mp4 would begin before a.mp4 has ended" in ran.err
