"""`fragdex verify`: an index held against its file."""

import json
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, parse
from fragdex.seeking.difference import differences


@pytest.mark.parametrize("name", ["a.mp4", "b.mp4", "sidx.mp4", "progressive.mp4"])
def test_every_form_that_was_just_made_is_right(call, files, name):
    assert call("index", name, "-o", "x.fidx", "--samples", "--md5").code == 0
    assert call("index", name, "-o", "x.json", "-f", "json").code == 0
    ran = call("verify", name, "x.fidx", "x.json")
    assert (ran.code, ran.lines) == (0, ["x.fidx: OK", "x.json: OK"]), ran.out


def test_several_indexes_at_a_time(run, files):
    for form in ("fidx", "json"):
        run("index", "a.mp4", "b.mp4", "-f", form, "-o", f"{form}/")
    run("index", "a.mp4", "-o", "third.fidx")
    ran = run("verify", "a.mp4", "*/a.*", "third.fidx", "fidx/b.fidx", "gone.fidx", "--jobs", "2")
    assert ran.code == 2
    *right, failed = ran.lines[:3], ran.lines[-1]
    assert right == [["fidx/a.fidx: OK", "json/a.json: OK", "third.fidx: OK"]]
    assert failed.startswith("fidx/b.fidx: FAILED")
    assert "gone.fidx" in ran.err


def test_the_index_inside(run, files):
    ran = run("verify", "sidx.mp4")
    assert (ran.code, ran.out) == (0, "sidx's sidx: OK\n")


FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.mark.parametrize("name", ["frag-default-base", "frag-dash", "frag-separate-moof"])
def test_the_mfra_inside(run, name):
    """It names moofs alone: not what introduces them, and not where their data ends."""
    ran = run("verify", str(FIXTURES / f"{name}.mp4"))
    assert (ran.code, ran.out) == (0, f"{name}'s mfra: OK\n")


def test_the_mfra_inside_that_is_wrong(run, tmp_path):
    data = (FIXTURES / "frag-default-base.mp4").read_bytes()
    mfra = parse(data)[-1]

    def later(box):
        if box.type != "tfra":
            return box
        entries = box["entries"].copy()
        entries["time"][2:] += 7
        return box.replace(entries=entries)

    path = tmp_path / "wrong.mp4"
    wrong = mfra.replace(children=[later(box) for box in mfra.children])
    path.write_bytes(data[: mfra.offset] + build(wrong))
    ran = run("verify", str(path))
    assert ran.code == 1
    assert ran.lines[-1].startswith("wrong's ")
    assert "FAILED" in ran.lines[-1]


def test_neither_sidx_nor_mfra_inside(run):
    ran = run("verify", str(FIXTURES / "frag-skip-trailer.mp4"))
    assert ran.code == 2
    assert "no sidx and no mfra" in ran.err


def test_an_index_of_another_file_fails_with_1(run, files):
    run("index", "a.mp4", "-o", "x.fidx")
    ran = run("verify", "b.mp4", "x.fidx")
    assert ran.code == 1
    assert ran.lines[-1].startswith("x.fidx: FAILED, ")
    answer = json.loads(run("verify", "b.mp4", "x.fidx", "--json").out)
    assert answer["ok"] is False
    assert "size" in {difference["code"] for difference in answer["differences"]}


def test_other_bytes_of_the_same_shape_are_told_by_the_md5(call, files, tmp_path):
    call("index", "a.mp4", "-o", "x.fidx", "--md5")
    data = bytearray(files["a.mp4"])
    data[-1] ^= 1
    (tmp_path / "a.mp4").write_bytes(data)
    ran = call("verify", "a.mp4", "x.fidx")
    assert ran.code == 1
    assert "x.fidx: md5: " in ran.out


def test_a_column_with_a_wrong_bit_is_bad_input(call, files, tmp_path):
    call("index", "a.mp4", "-o", "x.fidx")
    data = bytearray((tmp_path / "x.fidx").read_bytes())
    data[-65] ^= 1
    (tmp_path / "x.fidx").write_bytes(data)
    assert call("verify", "a.mp4", "x.fidx").code == 2


def test_a_sidx_that_lies_about_times_is_found(call, files, tmp_path):
    boxes = list(parse(files["sidx.mp4"]))
    at = next(n for n, box in enumerate(boxes) if box.type == "sidx")
    references = boxes[at]["references"].copy()
    references["subsegment_duration"] += 1000
    boxes[at] = boxes[at].replace(references=references)
    (tmp_path / "lie.mp4").write_bytes(build(boxes))
    ran = call("verify", "lie.mp4")
    assert ran.code == 1
    assert "cts_min differs" in ran.out


def changed(index, **columns):
    """An index whose first track says something else."""
    track = index.tracks[0]
    table = track.fragments
    wrong = type(table).of({**table.columns(), **columns})
    kept = fragdex.Track(
        track.info, wrong, track.sync_samples, shift=track.shift, samples=track.samples
    )
    period = index.periods[0]
    other = type(period)(0, period.init, period.movie, (kept, *period.tracks[1:]))
    return fragdex.Index(index.file, index.how, [other])


def test_each_kind_of_difference(files):
    true = fragdex.index(files["b.mp4"])
    table = true.track(1).fragments
    for columns, codes in (
        ({"offset": table.offset + 1}, {"offset", "missing"}),
        ({"size": table.size - 1}, {"stop", "missing"}),
        ({"cts_min": table.cts_min - 1}, {"cts_min"}),
        ({"cts_end": table.cts_end + 1}, {"cts_end"}),
        ({"dts": table.dts + 7}, {"dts"}),
        ({"duration": table.duration + 1}, {"duration"}),
        ({"sample_count": table.sample_count + 1}, {"sample_count"}),
    ):
        findings = differences(changed(true, **columns), true)
        assert {finding.code for finding in findings} == codes
        assert all(finding.track == 1 for finding in findings)


def test_twice_and_fewer(files):
    true = fragdex.index(files["a.mp4"])
    track = true.track(1)
    table = track.fragments
    for rows, codes in ((np.r_[0:4, 2], {"twice"}), (np.r_[0:3], {"missing"})):
        kept = fragdex.Track(track.info, table.rows(rows), track.sync_samples, exact=False)
        period = true.periods[0]
        other = type(period)(0, period.init, period.movie, (kept,))
        index = fragdex.Index(true.file, true.how, [other])
        assert {finding.code for finding in differences(index, true)} == codes


def test_tracks_that_are_missing_or_too_many(files):
    one, two = fragdex.index(files["a.mp4"]), fragdex.index(files["b.mp4"])
    assert "track-missing" in {finding.code for finding in differences(one, two)}
    assert "track" in {finding.code for finding in differences(two, one)}


def test_samples_are_compared_where_both_know_them(files):
    true = fragdex.index(files["a.mp4"])
    track = true.track(1)
    for table, code in (
        (track.samples.rows(slice(0, -1)), "samples"),
        (
            type(track.samples).of({**track.samples.columns(), "size": track.samples.size + 1}),
            "sample-size",
        ),
    ):
        kept = fragdex.Track(track.info, track.fragments, track.sync_samples, samples=table)
        period = true.periods[0]
        other = type(period)(0, period.init, period.movie, (kept,))
        index = fragdex.Index(true.file, true.how, [other])
        assert {finding.code for finding in differences(index, true)} == {code}


def test_the_proof_of_a_view(call, files, tmp_path):
    """Whoever trusts the root of the source needs no source."""
    assert call("index", "b.mp4", "--digests", "-o", "b.fidx").code == 0
    root = fragdex.open_index(tmp_path / "b.fidx").digests.root.hex()
    extracted = call(
        "extract", "b.fidx", "0", "end", "--keep-times", "-o", "c.mp4", "--proof", "c.json"
    )
    assert extracted.code == 0, extracted.err
    assert "proved (c.json)" in extracted.out
    (tmp_path / "b.mp4").unlink()
    ran = call("verify", "c.mp4", "c.json", "--root", root.upper())
    assert (ran.code, ran.out, ran.err) == (0, "c.json: OK\n", "")
    assert root in call("verify", "c.mp4", "c.json").err
    assert call("verify", "c.mp4", "c.json", "--root", "0" * 64).code == 1
    kept = json.loads((tmp_path / "c.json").read_text())["kept"]
    assert kept
    data = bytearray((tmp_path / "c.mp4").read_bytes())
    data[kept[1]["ranges"][0][0]] ^= 1
    (tmp_path / "c.mp4").write_bytes(data)
    ran = call("verify", "c.mp4", "c.json", "--root", root, "--json")
    (wrong,) = json.loads(ran.out)["differences"]
    assert (ran.code, wrong["offset"]) == (1, kept[1]["ranges"][0][0])
    (tmp_path / "c.json").write_text('{"kept": 3, "algorithm": "sha256"}')
    assert call("verify", "c.mp4", "c.json").code == 2
    assert call("view", "a.mp4", "-o", "d.mp4", "--proof", "d.json").code == 2, "it has no digests"
