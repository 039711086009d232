"""Questions about a video with known content, answered from the tools alone."""

import numpy as np
import pytest

from agents import known_video
from agents.asking import over_stdio
from agents.known_video import LINES, number_in, scene_of

VIDEO = "films/known.mp4"
MOST_CALLS = 5


def shown(agent, **what):
    """The number that the one picture says."""
    return number_in(agent("look", video=VIDEO, **what).pictures[0])


def said(agent, **what):
    return agent("read_words", video=VIDEO, **what)["lines"]


def track(agent, kind):
    return next(
        one for one in agent("describe_video", video=VIDEO)["tracks"] if one["kind"] == kind
    )


def tile(agent, place):
    """The number that a picture of a sheet of the whole video says."""
    sheet = agent("look", video=VIDEO, pictures=12)
    columns, count = sheet["columns"], len(sheet["tiles"])
    (pixels,) = sheet.pictures
    wide, high = pixels.shape[1] // columns, pixels.shape[0] // -(-count // columns)
    row, column = divmod(place, columns)
    label = 14
    return number_in(pixels[row * high : (row + 1) * high - label, column * wide :][:, :wide])


def cut_and_look(agent):
    made = agent("cut_video", parts=[{"video": VIDEO, "start": 10, "stop": "12.5"}], name="a.mp4")
    (picture,) = agent("look", video=made["written"], times=[0]).pictures
    return number_in(picture)


def joined_and_looked(agent):
    parts = [{"video": VIDEO, "start": a, "stop": a + 2} for a in (100, 20)]
    made = agent("cut_video", parts=parts, name="b.mp4")
    return [number_in(one) for one in agent("look", video=made["written"], times=[0, 2]).pictures]


def while_loudest(agent):
    loudest = agent("measure_sound", video=VIDEO)["loudest_at"]
    return said(agent, start=loudest, stop=loudest + 2)[0]["text"]


def silences(agent):
    (one,) = agent("measure_sound", video=VIDEO)["silences"]
    return round(one["start"], 1), round(one["stop"], 1)


def brightness(agent):
    (pixels,) = agent("look", video=VIDEO, times=[100]).pictures
    return round(float(pixels[pixels.shape[0] // 2 :].mean()), -1)


def levels(agent, *times):
    rows = agent("measure_sound", video=VIDEO)["levels"]
    return [[row["rms_db"] for row in rows if row["start"] <= time][-1] for time in times]


QUESTIONS = {
    "which videos are there": (
        lambda a: [one["video"] for one in a("list_videos")["videos"]], [VIDEO],
    ),
    "how long is it": (lambda a: a("describe_video", video=VIDEO)["seconds"], 120.0),
    "how many frames a second": (lambda a: track(a, "video")["frame_rate"], 10.0),
    "how wide is it": (lambda a: track(a, "video")["width"], 320),
    "is it AVC": (lambda a: track(a, "video")["codec"][:5], "avc1."),
    "how many channels": (lambda a: track(a, "audio")["channels"], 1),
    "what is odd about it": (lambda a: a("describe_video", video=VIDEO)["findings"], []),
    "are there caption files": (
        lambda a: a("describe_video", video=VIDEO)["caption_files"], ["films/known.en.vtt"],
    ),
    "which number is shown at 73.4 s": (lambda a: shown(a, times=[73.4]), 734),
    "which at 1:39.95": (lambda a: shown(a, times=["1:39.95"]), 999),
    "which at the start": (lambda a: shown(a, times=[0]), 0),
    "which at the very end": (lambda a: shown(a, times=["2:00"]), 1199),
    "which in frame 512": (lambda a: shown(a, frames=[512]), 512),
    "which is the sixth of twelve": (lambda a: tile(a, 5), 500),
    "until when is the frame of 60.05 s shown": (
        lambda a: a("look", video=VIDEO, times=[60.05])["pictures"][0]["until"], 60.1,
    ),
    "how many cuts": (lambda a: len(a("find_changes", video=VIDEO)["changes"]), 3),
    "when is the first": (lambda a: a("find_changes", video=VIDEO)["changes"][0]["time"], 13.7),
    "when is the last": (lambda a: a("find_changes", video=VIDEO)["changes"][-1]["time"], 90.5),
    "which number is shown after the second": (
        lambda a: shown(a, times=[a("find_changes", video=VIDEO)["changes"][1]["time"]]), 412,
    ),
    "is there a cut from 20 s to 40 s": (
        lambda a: a("find_changes", video=VIDEO, start=20, stop=40)["changes"], [],
    ),
    "how bright is it at 100 s": (brightness, float(round(scene_of(1000), -1))),
    "when are the bells out of tune": (lambda a: said(a, search="Out of  tune")[0]["start"], 33.25),
    "who says so": (lambda a: said(a, search="out of tune")[0]["speaker"], "Ada"),
    "what is answered": (lambda a: said(a, start=36.2, stop=37)[0]["text"], LINES[3][3]),
    "how often does Grace speak": (
        lambda a: sum(one.get("speaker") == "Grace" for one in said(a)), 3,
    ),
    "which number is shown as she says good night": (
        lambda a: shown(a, times=[said(a, search="good night")[0]["start"]]), 1105,
    ),
    "when is it silent": (silences, known_video.SILENT),
    "which number is shown as it becomes silent": (
        lambda a: shown(a, times=[silences(a)[0]]), 500,
    ),
    "is it louder at 25 s than at 45 s": (lambda a: np.diff(levels(a, 45, 25))[0] > 20, True),
    "when is it loudest": (lambda a: int(a("measure_sound", video=VIDEO)["loudest_at"]), 70),
    "what is said just after": (while_loudest, LINES[4][3]),
    "does it clip": (lambda a: a("measure_sound", video=VIDEO)["true_peak_dbtp"] > 0, False),
    "what does a clip from 10 s begin with": (cut_and_look, 100),
    "and one of two parts": (joined_and_looked, [1000, 200]),
}  # fmt: skip


@pytest.mark.slow
def test_each_question_is_answered_right_in_few_calls(films, tmp_path):
    (tmp_path / "made").mkdir()
    assert len(QUESTIONS) >= 30
    wrong = {}
    with over_stdio(films, "-o", tmp_path / "made") as agent:
        for question, (ask, right) in QUESTIONS.items():
            agent.calls = 0
            answer = ask(agent)
            if answer != right or agent.calls > MOST_CALLS:
                wrong[question] = (answer, right, agent.calls)
    assert wrong == {}
