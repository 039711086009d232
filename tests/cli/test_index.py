"""`fragdex index`: where it writes, and every form."""

import csv
import io
import json
import re

import pytest

import fragdex


def test_an_index_goes_beside_its_file(run, files, tmp_path):
    ran = run("index", "a.mp4")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("a.fidx: a.mp4: ")
    saved = fragdex.open_index(tmp_path / "a.fidx")
    assert saved.track(1).fragments == fragdex.index(files["a.mp4"]).track(1).fragments


def test_several_go_to_a_folder(call, files, tmp_path):
    ran = call("index", "*.mp4", "-o", "made/", "--jobs", "2")
    assert ran.code == 0
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "a.fidx",
        "b.fidx",
        "progressive.fidx",
        "sidx.fidx",
    ]


def test_two_inputs_never_share_a_place(call, files, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.mp4").write_bytes(files["a.mp4"])
    ran = call("index", "a.mp4", "more/a.mp4", "-o", "made/")
    assert ran.code == 2
    assert "would both be written" in ran.err


@pytest.mark.parametrize("form", ["fidx", "json", "sidx", "mfra", "hls", "dash", "csv"])
def test_stdout_has_what_the_library_exports(call, files, form):
    ran = call("index", "b.mp4", "--format", form, "-o", "-")
    assert (ran.code, ran.err) == (0, "")
    index = fragdex.index("b.mp4")
    more = {"source": files["b.mp4"]} if form in ("dash", "mfra") else {}
    assert ran.data.rstrip(b"\n") == index.export(form, **more).rstrip(b"\n")


def test_text_goes_to_stdout_by_itself(call, files, tmp_path):
    assert call("index", "a.mp4", "-f", "csv").out.startswith("track_id,timescale,dts,pts")
    assert call("index", "a.mp4", "-f", "torchcodec").code == 0
    assert not list(tmp_path.glob("*.csv"))


def test_json_is_the_form_json_one_document_a_line(call, files):
    ran = call("index", "a.mp4", "b.mp4", "--json")
    assert [sorted(json.loads(line)) for line in ran.lines] == [["1"], ["1", "2"]]
    assert call("index", "a.mp4", "--format", "json").out == call("index", "a.mp4", "--json").out


def test_segments_are_as_long_as_asked(call, files):
    many = json.loads(call("index", "b.mp4", "--json", "--segment-duration", "0").out)
    one = json.loads(call("index", "b.mp4", "--json", "--segment-duration", "1:00").out)
    assert len(many["1"]["segments"]) == 5
    assert len(one["1"]["segments"]) == 1


def test_csv_on_the_presentation_timeline(call, fixtures):
    media = call("index", fixtures / "faststart.mp4", "-f", "csv").out
    shown = call("index", fixtures / "faststart.mp4", "-f", "csv", "--presentation", "-t", "1").out
    first, moved = (next(csv.DictReader(io.StringIO(text))) for text in (media, shown))
    assert int(first["pts"]) == 1024
    assert int(moved["pts"]) == 0
    assert {row["track_id"] for row in csv.DictReader(io.StringIO(shown))} == {"1"}


def test_arrow_and_parquet_with_samples(call, files, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert call("index", "b.mp4", "-f", "parquet", "--samples").code == 0
    table = parquet.read_table(tmp_path / "b.parquet")
    index = fragdex.index(files["b.mp4"])
    assert table.num_rows == sum(track.sample_count for track in index.tracks)
    assert call("index", "b.mp4", "-f", "arrow", "-t", "1", "-o", "b.arrows").code == 0


def test_playlists(call, files):
    media = call("index", "a.mp4", "-f", "hls", "--uri", "https://example.org/a.mp4").out
    assert "https://example.org/a.mp4" in media
    iframes = call("index", "a.mp4", "-f", "hls", "--playlist", "iframes").out
    assert "#EXT-X-I-FRAMES-ONLY" in iframes
    assert "#EXT-X-STREAM-INF" in call("index", "a.mp4", "-f", "hls", "--playlist", "master").out


def test_dash_looks_into_the_file_for_its_sidx(call, files):
    assert "<SegmentBase " in call("index", "sidx.mp4", "-f", "dash").out
    assert "<SegmentList " in call("index", "a.mp4", "-f", "dash").out


@pytest.mark.parametrize(
    "name", ["a.mp4", "b.mp4", "sidx.mp4", "frag-base-data-offset.mp4", "frag-default-base.mp4"]
)
def test_embedding_gives_a_copy_that_opens_by_its_sidx(call, files, fixtures, tmp_path, name):
    if not (tmp_path / name).exists():
        (tmp_path / name).write_bytes((fixtures / name).read_bytes())
    ran = call("index", name, "--embed", "-o", "made/")
    assert ran.code == 0, ran.err
    copy = tmp_path / "made" / name
    assert fragdex.index(copy).how.method == "sidx"
    before, after = (fragdex.index(path, exact=True) for path in (tmp_path / name, copy))
    for one, two in zip(before.tracks, after.tracks, strict=True):
        for column in ("size", "dts", "cts", "duration", "sync"):
            ours, theirs = getattr(one.samples, column), getattr(two.samples, column)
            assert (ours == theirs).all()
    assert call("verify", copy).code == 0


def test_embedding_of_a_progressive_file_is_refused(call, files):
    ran = call("index", "progressive.mp4", "--embed", "-o", "x.mp4")
    assert ran.code == 2
    assert "needs movie fragments" in ran.err


def test_an_embedded_copy_on_stdout(run, files):
    ran = run("index", "a.mp4", "--embed", "-o", "-")
    assert ran.code == 0
    assert fragdex.index(ran.data).how.method == "sidx"


def test_what_comes_through_a_pipe(run, files, tmp_path):
    ran = run("index", "-", "-o", "piped.fidx", "--md5", stdin=files["b.mp4"])
    assert ran.code == 0
    saved = fragdex.open_index(tmp_path / "piped.fidx")
    assert saved.file.md5 == fragdex.sources.md5(files["b.mp4"]).hex
    assert len(saved.track(2).fragments) == 5


def test_a_saved_index_is_an_input_too(call, files):
    call("index", "b.mp4", "--samples")
    call("index", "a.mp4")
    assert call("index", "b.fidx", "-f", "csv").out == call("index", "b.mp4", "-f", "csv").out
    # without samples of its own, it is the file that it names which is asked
    assert call("index", "a.fidx", "-f", "csv").out == call("index", "a.mp4", "-f", "csv").out


def test_exact_goes_past_the_sidx(call, files):
    quick = json.loads(call("info", "sidx.mp4", "--json").out)
    exact = json.loads(call("info", "sidx.mp4", "--json", "--exact").out)
    assert (quick["how"]["method"], exact["how"]["method"]) == ("sidx", "boxes")
    assert exact["periods"][0]["tracks"][0]["sample_count"] == 30


def test_segments_with_their_init(call, fixtures):
    segment, init = fixtures / "dash-segment-1.m4s", fixtures / "dash-init.mp4"
    assert json.loads(call("info", segment, "--json").out)["duration"] is None
    assert json.loads(call("info", segment, "--init", init, "--json").out)["duration"] > 0


def test_findings_go_to_stderr_once_each(call, fixtures):
    ran = call("index", fixtures / "frag-global-sidx-stale-base.mp4", "--exact", "-o", "-")
    assert ran.code == 0
    assert ran.data.startswith(b"\x89FDX")
    assert "frag-global-sidx-stale-base.mp4: " in ran.err


# ---- playlists -------------------------------------------------------------------------------


def attributes(line):
    return dict(re.findall(r'([A-Z-]+)=("[^"]*"|[^",]+)', line.partition(":")[2]))


def test_a_master_playlist_with_all_that_it_names(call, fixtures, tmp_path):
    """Each URI leads from the playlist to a file that is there, or to bytes of the media file."""
    (tmp_path / "my films").mkdir()
    data = (fixtures / "frag-default-base.mp4").read_bytes()
    (tmp_path / "my films" / "a b.mp4").write_bytes(data)
    (tmp_path / "out").mkdir()
    ran = call("index", "my films/a b.mp4", "-f", "hls", "--playlist", "all", "-o", "out/m.m3u8")
    assert (ran.code, ran.err) == (0, "")
    lines = (tmp_path / "out/m.m3u8").read_text().splitlines()
    stream = attributes(next(line for line in lines if line.startswith("#EXT-X-STREAM-INF")))
    assert stream["AUDIO"] == '"audio"'
    assert {"BANDWIDTH", "AVERAGE-BANDWIDTH", "CODECS", "RESOLUTION", "FRAME-RATE"} <= stream.keys()
    iframes = attributes(next(line for line in lines if "I-FRAME-STREAM-INF" in line))
    assert iframes["CODECS"].strip('"') in stream["CODECS"]
    assert int(iframes["BANDWIDTH"]) >= int(iframes["AVERAGE-BANDWIDTH"])
    named = [*(line for line in lines if line[0] != "#"), iframes["URI"].strip('"')]
    assert named == ["m-media.m3u8", "m-iframes.m3u8"]
    for playlist in named:
        text = (tmp_path / "out" / playlist).read_text()
        places = {line for line in text.splitlines() if not line.startswith("#")}
        assert places == {"../my%20films/a%20b.mp4"}
        assert '#EXT-X-MAP:URI="../my%20films/a%20b.mp4"' in text


def test_a_master_playlist_of_sound_alone_names_no_iframes(call, fixtures):
    ran = call("index", fixtures / "frag-audio.m4a", "-f", "hls", "--playlist", "master")
    assert ran.code == 0
    assert "I-FRAME" not in ran.out
    assert "EXT-X-MEDIA:" not in ran.out
    assert ran.lines[-1] == "frag-audio-media.m3u8"


def test_playlists_need_a_place(call, files):
    ran = call("index", "a.mp4", "-f", "hls", "--playlist", "all")
    assert ran.code == 2
    assert "-o" in ran.err


def test_fragments_that_players_refuse(call, fixtures, files):
    """hls and dash say it; other forms do not, and a copy plays."""
    name = fixtures / "frag-base-data-offset.mp4"
    for form in ("hls", "dash"):
        ran = call("index", name, "-f", form)
        assert ran.code == 0
        assert "declared-base-offset" in ran.err
        assert "fragdex extract" in ran.err
    assert call("index", name, "--json").err == ""
    assert call("extract", name, "0", "end", "--fragmented", "-o", "copy.mp4").code == 0
    assert call("index", "copy.mp4", "-f", "hls").err == ""


def test_a_segment_whose_initialization_segment_is_elsewhere(call, fixtures):
    segment, init = fixtures / "dash-segment-2.m4s", fixtures / "dash-init.mp4"
    for form, named in (("hls", 'MAP:URI="dash-init.mp4"'), ("dash", 'sourceURL="dash-init.mp4"')):
        ran = call("index", segment, "--init", init, "-f", form)
        assert (ran.code, ran.err) == (0, "")
        assert named in ran.out
    for playlist in ("media", "iframes", "master"):
        ran = call("index", segment, "-f", "hls", "--playlist", playlist)
        assert ran.code == 2
        assert "--init" in ran.err
    ran = call("index", init, "-f", "hls")
    assert ran.code == 2
    assert "this is an initialization segment" in ran.err
    assert "extract" not in ran.err
