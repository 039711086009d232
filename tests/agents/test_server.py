"""The server as clients meet it: over stdio and HTTP, with progress, cancellation and budgets."""

import base64
import http.client
import json
import os
import re
import subprocess
import sys
from urllib.parse import urlsplit

import anyio
import numpy as np
import pytest

import fragdex
from agents import known_video
from agents.asking import connected, http_server, over_stdio
from agents.known_video import number_in
from fragdex.agents.server import READING, WRITING
from fragdex.testing import RangeServer

VIDEO = "films/known.mp4"


def test_over_http_the_same_tools_answer_alike(films):
    with http_server(films) as url, connected(url) as agent, over_stdio(films) as other:
        assert [one.name for one in agent.tools()] == [one.name for one in other.tools()]
        one, two = (who("look", video=VIDEO, times=[73.4]) for who in (agent, other))
        assert one.files == two.files
        assert number_in(one.pictures[0]) == 734


def test_the_page_has_every_tool_in_its_order(root):
    page = (root / "docs" / "agents.md").read_text("utf-8")
    named = re.findall(r"^\| `(\w+)` \| (with `-o`)?", page, re.MULTILINE)
    assert [name for name, _ in named] == [one.__name__ for one in (*READING, *WRITING)]
    assert {name for name, writes in named if writes} == {one.__name__ for one in WRITING}


def asked(url, headers, path=None):
    """The status of a first message that is sent so."""
    parts = urlsplit(url)
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}
    )  # fmt: skip
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    fields = {"Content-Type": "application/json", "Host": parts.netloc,
              "Accept": "application/json, text/event-stream"} | headers  # fmt: skip
    connection.request("POST", parts.path if path is None else path, body, fields)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_over_http_names_of_others_pages_of_others_and_guesses_are_refused(films):
    """DNS rebinding sends the other name as Host; a page of another site says its Origin."""
    with http_server(films) as url:
        assert urlsplit(url).hostname == "127.0.0.1"
        own = f"http://{urlsplit(url).netloc}"
        assert asked(url, {}) == 200
        assert asked(url, {"Origin": own}) == 200
        assert asked(url, {"Host": "evil.example"}) == 421
        assert asked(url, {"Host": f"evil.example:{urlsplit(url).port}"}) == 421
        assert asked(url, {"Origin": "https://evil.example"}) == 403
        assert asked(url, {"Origin": "null"}) == 403
        for path in ("/mcp", "/", "/" + "0" * 32 + "/mcp", urlsplit(url).path.upper()):
            assert asked(url, {}, path) == 404
    with http_server(films, FRAGDEX_MCP_TOKEN="a" * 20) as url:
        assert urlsplit(url).path == "/" + "a" * 20 + "/mcp"
        assert asked(url, {}) == 200


def test_videos_at_urls_are_read_by_ranges(known_bytes, films):
    data = known_video.made(fragmented=True, with_sound=False)
    with (
        RangeServer({"/public/a.mp4": data}) as server,
        over_stdio("--url", server.at("public/")) as agent,
    ):
        listed = agent("list_videos")
        assert listed["videos"] == []
        assert listed["urls_below"] == [server.at("public/")]
        answer = agent("look", video=server.at("public/a.mp4"), times=[99.9])
        assert number_in(answer.pictures[0]) == 999
        read = answer["read"]
        assert read["requests"] == len(server.requests)
        assert read["bytes"] == server.bytes_sent < len(data)


def test_captions_of_tracks_come_before_files_and_name_their_speaker(fixtures_folder, films):
    (films / "text.mp4").write_bytes((fixtures_folder / "frag-text.mp4").read_bytes())
    (films / "text.vtt").write_text(known_video.webvtt())
    with over_stdio(films) as agent:
        answer = agent("read_words", video="films/text.mp4")
        assert answer["from"].startswith("track ")
        assert answer["lines"]
        assert [one["from"] for one in answer["captions"]][-1] == "films/text.vtt"


@pytest.fixture
def fixtures_folder(root):
    return root / "fixtures"


def test_resources_are_frames_and_captions(films):
    with over_stdio(films) as agent:
        from PIL import Image

        frame = agent.read(f"fragdex://frame/1:13.4/{VIDEO}")
        assert frame.mime_type == "image/jpeg"
        import io

        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(frame.blob))))
        assert number_in(pixels) == 734
        captions = agent.read(f"fragdex://captions/{VIDEO}")
        assert captions.mime_type == "text/vtt"
        assert "<v Ada>That was the loudest bell &amp; the last." in captions.text
        assert "is not a time" in agent.read(f"fragdex://frame/never/{VIDEO}")


def test_progress_comes_and_cancelling_ends_the_work(films, known_bytes):
    """An answer that takes long is told of; after its end no child is left at work."""
    long = known_video.made(count=6000, with_sound=False)
    (films / "long.mp4").write_bytes(long)

    async def watched(client):
        steps = []

        async def note(progress, total, message):
            steps.append((progress, total, message))

        with anyio.move_on_after(600) as scope:

            async def stop():
                while not steps:
                    await anyio.sleep(0.05)
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                for _ in range(50):
                    await client.call_tool(
                        "find_changes", {"video": "films/long.mp4"}, progress_callback=note
                    )
        return steps

    with over_stdio(films) as agent:
        steps = agent.in_loop(watched)
        assert steps
        assert all(0 <= done <= total == 1 for done, total, _ in steps)
        # the server is as well as before
        assert agent("list_videos")["videos"]


def test_ten_hours_are_answered_within_a_budget_that_is_told(films):
    part = known_video.made(count=360, fps=1, with_sound=False)
    index = fragdex.index(part, exact=True)
    many = fragdex.join([index] * 100, source=[part] * 100)
    many.save(films / "hours.mp4")
    video = {"video": "films/hours.mp4"}
    with over_stdio(films, "--max-bytes", 3 << 20) as agent:
        assert agent("describe_video", **video)["seconds"] == 36_000
        (picture,) = agent("look", **video, times=["9:59:00"]).pictures
        assert number_in(picture) == (9 * 3600 + 59 * 60) % 360
        sheet = agent("look", **video, pictures=64)
        assert len(sheet["tiles"]) == 64
        found = agent("find_changes", **video)
        assert not found["every_frame"]
        assert {one["number"] % 360 for one in found["changes"]} <= {0, *known_video.CUTS}
        for answer in (sheet, found):
            assert answer["read"]["bytes"] < 3 << 20 < many.size
    with over_stdio(films, "--max-bytes", 10_000) as agent:
        assert "budget" in agent("describe_video", **video).error
    with over_stdio(films, "--max-seconds", 1) as agent:
        assert "--max-seconds" in agent("find_changes", **video).error


def test_a_hostile_video_ends_its_own_child_alone(films):
    broken = bytearray((films / "known.mp4").read_bytes())
    start = broken.index(b"mdat") + 4
    broken[start : start + 400_000] = os.urandom(400_000)
    (films / "broken.mp4").write_bytes(broken)
    (films / "noise.mp4").write_bytes(os.urandom(100_000))
    (films / "empty.mp4").write_bytes(b"")
    with over_stdio(films) as agent:
        for name in ("broken", "noise", "empty"):
            for tool in ("describe_video", "look", "find_changes", "measure_sound", "read_words"):
                answer = agent(
                    tool,
                    video=f"films/{name}.mp4",
                    **({"transcribe": False} if tool == "read_words" else {}),
                )
                assert answer.error is None or "Error executing tool" in answer.error
                assert answer.error != f"Error executing tool {tool}"
        assert number_in(agent("look", video=VIDEO, times=[12]).pictures[0]) == 120


def test_lists_have_pages(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(230):
        (folder / f"{number:03}.mp4").write_bytes(b"")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.mp4").write_bytes(b"")
    with over_stdio(folder, tmp_path / "other") as agent:
        seen, after = [], {}
        while after is not None:
            page = agent("list_videos", **after)
            seen += [one["video"] for one in page["videos"]]
            after = page["next"]
    assert seen == [*(f"many/{number:03}.mp4" for number in range(230)), "other/a.mp4"]


def test_the_core_imports_nothing_of_it():
    program = "import sys, fragdex.cli.app, fragdex.agents; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert done.stdout == "False\n"
