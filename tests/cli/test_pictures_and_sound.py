"""`thumbnail`, `storyboard`, `peaks`, `loudness`: what the library makes, in files."""

import io
import json

import pytest

import fragdex

pytest.importorskip("av")
Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.jpg", "JPEG"), ("a.webp", "WEBP"), ("a.avif", "AVIF"), ("a.png", "PNG")],
)
def test_a_thumbnail_is_that_of_the_library(call, fixtures, tmp_path, name, format):
    film = fixtures / "frag-cmaf.mp4"
    ran = call("thumbnail", film, "1.2", "-o", name, "--width", "32", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    picture = fragdex.decoding.thumbnail(
        fragdex.index(film), film, 1.2, width=32, format=format.lower()
    )
    assert (tmp_path / name).read_bytes() == picture.data
    assert Image.open(io.BytesIO((tmp_path / name).read_bytes())).format == format
    assert (answer["time"], answer["width"], answer["size"]) == (
        float(picture.time), 32, len(picture.data)
    )  # fmt: skip


def test_a_thumbnail_on_stdout_of_a_saved_index(call, fixtures, tmp_path):
    (tmp_path / "a.mp4").write_bytes((fixtures / "frag-cmaf.mp4").read_bytes())
    assert call("index", "a.mp4").code == 0
    ran = call("thumbnail", "a.fidx", "end", "-o", "-", "--picture", "frame", "-f", "png")
    assert ran.code == 0, ran.err
    assert Image.open(io.BytesIO(ran.data)).size == (64, 48)
    assert "1.96" in ran.err


def test_a_storyboard_is_a_folder(call, fixtures, tmp_path):
    film = fixtures / "frag-cmaf.mp4"
    ran = call(
        "storyboard", film, "-o", "board", "--every", "0.5", "--width", "32", "--columns", "3",
        "--rows", "1", "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert (answer["tiles"], answer["columns"], len(answer["sheets"])) == (4, 3, 2)
    names = sorted(path.name for path in (tmp_path / "board").iterdir())
    assert names == [
        "adaptation-set.xml", "image-stream-inf.m3u8", "images.m3u8", "sheet-0.jpg", "sheet-1.jpg",
        "storyboard.vtt",
    ]  # fmt: skip
    assert Image.open(io.BytesIO((tmp_path / "board" / "sheet-1.jpg").read_bytes())).size == (
        96,
        24,
    )
    vtt = (tmp_path / "board" / "storyboard.vtt").read_text()
    assert "00:00:01.500 --> 00:00:02.000\nsheet-1.jpg#xywh=0,0,32,24\n" in vtt
    assert (
        f"BANDWIDTH={answer['bandwidth']},"
        in (tmp_path / "board" / "image-stream-inf.m3u8").read_text()
    )


def test_several_storyboards_get_a_folder_each(call, fixtures, tmp_path):
    films = [fixtures / name for name in ("frag-cmaf.mp4", "faststart.mp4")]
    assert call("storyboard", *films, "-o", "all").code == 0
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"frag-cmaf", "faststart"}
    assert call("storyboard", films[0], tmp_path / "x" / "frag-cmaf.mp4", "-o", "all").code == 2


@pytest.mark.parametrize("name", ["a.json", "a.dat"])
def test_peaks_are_those_of_the_library(call, fixtures, tmp_path, name):
    film = fixtures / "frag-cmaf.mp4"
    ran = call("peaks", film, "-o", name, "-z", "512", "-b", "16", "--split-channels", "--json")
    assert ran.code == 0, ran.err
    waveform = fragdex.decoding.peaks(
        fragdex.index(film), film, samples_per_pixel=512, bits=16, split=True
    )
    expected = waveform.json() if name.endswith("json") else waveform.dat()
    assert (tmp_path / name).read_bytes() == expected
    assert json.loads(ran.out)["length"] == len(waveform.values)


def test_loudness_is_that_of_the_library(call, fixtures):
    film = fixtures / "frag-cmaf.mp4"
    loudness = fragdex.decoding.loudness(fragdex.index(film), film)
    ran = call("loudness", film, "--json")
    assert json.loads(ran.out)["integrated"] == loudness.integrated
    ran = call("loudness", film)
    assert f"{loudness.integrated:.1f} LUFS" in ran.out
    assert f"true peak {loudness.true_peak:.1f} dBTP" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("thumbnail", "FILM", "0"),
        ("thumbnail", "FILM", "nan", "-o", "a.jpg"),
        ("thumbnail", "FILM", "0", "-o", "a.jpg", "--width", "0"),
        ("thumbnail", "FILM", "0", "-o", "a.jpg", "--width", "1000000"),
        ("thumbnail", "SOUND", "0", "-o", "a.jpg"),
        ("storyboard", "FILM"),
        ("storyboard", "FILM", "-o", "-"),
        ("storyboard", "FILM", "-o", "x", "--every", "0"),
        ("storyboard", "FILM", "-o", "x", "--every", "0.000001"),
        ("storyboard", "SOUND", "-o", "x"),
        ("peaks", "FILM"),
        ("peaks", "FILM", "-o", "a.json", "-z", "1"),
        ("peaks", "FILM", "-o", "a.json", "-b", "7"),
        ("peaks", "FILM", "-o", "a.json", "-t", "1"),
        ("loudness", "ENCRYPTED"),
    ],
)
def test_what_cannot_be_made_is_one_line_and_2(call, fixtures, tmp_path, arguments):
    names = {"FILM": "frag-cmaf.mp4", "SOUND": "aac.m4a", "ENCRYPTED": "encrypted.mp4"}
    ran = call(*(fixtures / names[a] if a in names else a for a in arguments))
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "fault" not in ran.err
    assert list(tmp_path.iterdir()) == []
