"""The videos of a running service, whose key the agent never sees."""

import shutil

import pytest

from agents.asking import over_stdio
from agents.known_video import number_in
from service.serving import serving


def test_videos_of_a_service_are_listed_looked_at_and_heard(films, tmp_path, monkeypatch):
    pytest.importorskip("fastapi")
    from fragdex.cli.remote import wait_until_processed
    from fragdex.client import Client

    with serving(tmp_path / "data", job_workers=1) as served:
        with Client(served.url, served.key) as client:
            sent = client.push(films / "known.mp4", type="video")
            assert wait_until_processed(client, sent, "known.mp4").status == "ready"
        shutil.rmtree(films)
        with over_stdio("--service", served.url, FRAGDEX_KEY=served.key) as agent:
            (listed,) = agent("list_videos")["videos"]
            assert listed["title"] == "known.mp4"
            name = listed["video"]
            assert agent("describe_video", video=name)["seconds"] == 120
            answer = agent("look", video=name, times=[73.4])
            assert number_in(answer.pictures[0]) == 734
            assert served.key not in answer.text
            for other in ("service:../keys", "service:", "service:a/b", f"{name}/tracks/1"):
                assert agent("describe_video", video=other).error
            unknown = agent("describe_video", video=f"service:{'0' * 20}").error
            assert unknown
            assert served.key not in unknown
