"""What is said in a video without captions, and a page as a video."""

import json

import pytest

from agents.asking import over_stdio


def test_speech_without_captions_is_transcribed(root, tmp_path):
    pytest.importorskip("moonshine_voice")
    folder = tmp_path / "talks"
    folder.mkdir()
    name = "even-aac.mp4"
    (folder / name).write_bytes((root / "fixtures" / "speech" / name).read_bytes())
    rows = json.loads((root / "fixtures" / "speech" / "MANIFEST.json").read_text("utf-8"))["files"]
    truth = {word: at for word, at, _ in next(r["words"] for r in rows if r["file"] == name)}
    with over_stdio(folder) as agent:
        answer = agent("read_words", video=f"talks/{name}", search="punch")
        assert answer["from"].startswith("speech, by moonshine")
        (line,) = answer["lines"]
        assert line["start"] - 0.5 <= truth["punch"] / 1000 <= line["stop"]
        assert answer["read"]["bytes"]
        silent = agent("read_words", video=f"talks/{name}", transcribe=False)
        assert silent["from"] is None
        assert silent["lines"] == []


def test_a_page_becomes_a_video_and_reaches_no_network(tmp_path):
    finding = pytest.importorskip("fragdex.rendering.browser.finding")
    from fragdex.errors import EngineUnavailable
    from fragdex.testing import RangeServer

    try:
        finding.find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "made").mkdir()
    with RangeServer({"/a.png": b""}) as server:
        (site / "card.html").write_text(
            f"<body style='background:rgb(0,0,255)'><img src='{server.at('a.png')}'>"
        )
        with over_stdio(site, "-o", tmp_path / "made") as agent:
            made = agent(
                "render_page", page="site/card.html", name="card.mp4", seconds=1, width=64,
                height=64, fps=5,
            )  # fmt: skip
            assert made["frames"] == 5
            assert made["blocked"] == [server.at("a.png")]
            (pixels,) = agent("look", video=made["written"], times=[0.5]).pictures
            red, green, blue = pixels[32, 32].tolist()
            assert red < 40 > green
            assert blue > 200
        assert server.requests == []
