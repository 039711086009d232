"""Every tool and resource, with every kind of name outside of what was allowed: all are refused.

And nothing is asked of a server, or written, that was not allowed at start.
"""

import os
from contextlib import ExitStack

import pytest

from agents.asking import over_stdio
from fragdex.testing import Faults, RangeServer, edit

SECRET = b"the secret words"
READING = {
    "describe_video": lambda name: {"video": name},
    "look": lambda name: {"video": name, "times": [1]},
    "read_words": lambda name: {"video": name, "transcribe": False},
    "find_changes": lambda name: {"video": name},
    "measure_sound": lambda name: {"video": name},
}
WRITING = {
    "cut_video": lambda name: {"parts": [{"video": name}], "name": "cut.mp4"},
    "package_video": lambda name: {"videos": [name], "name": "package"},
    "repair_video": lambda name: {"video": name, "name": "repaired.mp4"},
    "repair_like": lambda name: {"video": "films/known.mp4", "like": name, "name": "like.mp4"},
    "render_page": lambda name: {"page": name, "name": "page.mp4", "seconds": 1},
}
RESOURCES = ("fragdex://frame/1/{}", "fragdex://captions/{}")


@pytest.fixture
def places(films, tmp_path, known_bytes):
    """A folder that is allowed, with ways out of it; one that is not, next to it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.mp4").write_bytes(known_bytes)
    (outside / "secret.en.vtt").write_text(
        f"WEBVTT\n\n00:00.000 --> 00:09.000\n{SECRET.decode()}\n"
    )
    (outside / "index.html").write_bytes(SECRET)
    (films / "link.mp4").symlink_to(outside / "secret.mp4")
    (films / "link.en.vtt").symlink_to(outside / "secret.en.vtt")
    (films / "linked").symlink_to(outside)
    (films / ".hidden.mp4").write_bytes(known_bytes)
    (films / "notes.txt").write_bytes(SECRET)
    os.mkfifo(films / "pipe.mp4")
    (films / "device.mp4").symlink_to("/dev/zero")
    (films / "list.mp4").write_text(f"#EXTM3U\n#EXTINF:1,\nfile://{outside}/secret.mp4\n")
    (films / "list.ffconcat.mp4").write_text(f"ffconcat version 1.0\nfile '{outside}/secret.mp4'\n")
    (tmp_path / "made").mkdir()
    return films, outside, tmp_path / "made"


@pytest.fixture
def server(known_bytes):
    """A server of which /public/ is allowed; what it has elsewhere, and leads to, is not."""

    def faults(request):
        where = request.path.rpartition("/")[2]
        if where == "away.mp4":
            return Faults(redirects=1 << 30, redirect_to=server.at("private/secret.mp4"))
        return Faults()

    content = dict.fromkeys(
        ("/public/known.mp4", "/public/away.mp4", "/private/secret.mp4", "/public-2/secret.mp4"),
        known_bytes,
    )
    with RangeServer(content) as server:
        server.faults_for = faults
        yield server


def names(outside, server):
    """Each kind of name outside."""
    base, known = server.at(""), server.at("public/known.mp4")
    port = base.rstrip("/").rpartition(":")[2]
    return {
        "an absolute path": f"{outside}/secret.mp4",
        "a relative one": "outside/secret.mp4",
        "a step up": "films/../outside/secret.mp4",
        "steps up from nowhere": "../outside/secret.mp4",
        "steps with backslashes": "films\\..\\outside\\secret.mp4",
        "a step in the middle": "films/linked/../../outside/secret.mp4",
        "an escaped step": "films/%2e%2e/outside/secret.mp4",
        "a link to a file": "films/link.mp4",
        "a link to a folder": "films/linked/secret.mp4",
        "another case": "FILMS/known.mp4",
        "a hidden file": "films/.hidden.mp4",
        "an empty step": "films//known.mp4",
        "a dot": "films/./known.mp4",
        "a zero byte": "films/known.mp4\0.mp4",
        "a pipe": "films/pipe.mp4",
        "a device": "films/device.mp4",
        "a file of another kind": "films/notes.txt",
        "a playlist": "films/list.mp4",
        "a list of files": "films/list.ffconcat.mp4",
        "the folder": "films",
        "nothing": "",
        "a file URL": f"file://{outside}/secret.mp4",
        "a protocol of FFmpeg": f"concat:{outside}/secret.mp4",
        "a pipe of FFmpeg": "pipe:0",
        "data": "data:video/mp4;base64,AAAA",
        "another path": f"{base}private/secret.mp4",
        "a path that begins alike": f"{base}public-2/secret.mp4",
        "a step up in a URL": f"{base}public/../private/secret.mp4",
        "an escaped step in a URL": f"{base}public/%2e%2e/private/secret.mp4",
        "a step that is escaped twice": f"{base}public/%252e%252e/private/secret.mp4",
        "an escaped slash": f"{base}public/..%2fprivate/secret.mp4",
        "a backslash in a URL": f"{base}public/..\\private/secret.mp4",
        "a redirect": f"{base}public/away.mp4",
        "another port": f"http://127.0.0.1:{int(port) ^ 1}/public/known.mp4",
        "another name of the host": known.replace("127.0.0.1", "127.1"),
        "a host in the user": known.replace("127.0.0.1", "127.0.0.1@127.0.0.1"),
        "another scheme": known.replace("http:", "ftp:"),
        "an object store": "s3://bucket/secret.mp4",
        "a service": "service:0193",
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_tool_reaches_outside(places, server):
    films, outside, made = places
    before = {one: one.read_bytes() for one in outside.iterdir()}
    with over_stdio(films, "-o", made, "--url", server.at("public/")) as agent:
        assert agent("look", video=server.at("public/known.mp4"), times=[3])["pictures"]
        allowed = len(server.requests)
        wrong = []
        for kind, name in names(outside, server).items():
            for tool, arguments in (READING | WRITING).items():
                # a page may be a folder, of which this one has no index.html
                answer = agent(tool.replace("repair_like", "repair_video"), **arguments(name))
                if answer.error is None or SECRET.decode() in answer.text:
                    wrong.append((kind, tool, answer.text))
            for resource in RESOURCES:
                got = agent.read(resource.format(name))
                if not isinstance(got, str) or SECRET.decode() in got:
                    wrong.append((kind, resource, got))
        assert wrong == []
        # captions of a video that may be read, which lead out, are not there
        (films / "known.fr.vtt").symlink_to(outside / "secret.en.vtt")
        words = agent("read_words", video="films/known.mp4")
        assert [one["from"] for one in words["captions"]] == ["films/known.en.vtt"]
        assert SECRET.decode() not in words.text
    asked = server.requests[allowed:]
    assert {one.path for one in asked} <= {"/public/away.mp4"}
    assert not [*made.iterdir()]
    assert {one: one.read_bytes() for one in outside.iterdir()} == before


@pytest.mark.slow
def test_nothing_is_written_elsewhere_or_over_anything(places):
    films, outside, made = places
    (made / "there.mp4").write_bytes(b"kept")
    (made / "away.mp4").symlink_to(outside / "new.mp4")
    (made / "away").symlink_to(outside)
    wrong = []
    with over_stdio(films, "-o", made) as agent:
        for name in (
            "../new.mp4", f"{outside}/new.mp4", "a/new.mp4", "away/new.mp4", "there.mp4",
            "away.mp4", ".hidden.mp4", "new.mp4\0", "..", "", "new.sh", "C:\\new.mp4",
            "n" * 300 + ".mp4",
        ):  # fmt: skip
            for tool, arguments in WRITING.items():
                given = arguments("films/known.mp4") | {"name": name}
                if tool == "package_video" and name == "new.sh":
                    continue  # a folder may be called so
                answer = agent(tool.replace("repair_like", "repair_video"), **given)
                if answer.error is None:
                    wrong.append((name, tool, answer.text))
    assert wrong == []
    assert {one.name for one in made.iterdir()} == {"there.mp4", "away.mp4", "away"}
    assert (made / "there.mp4").read_bytes() == b"kept"
    assert {one.name for one in outside.iterdir()} == {"secret.mp4", "secret.en.vtt", "index.html"}


def test_a_reference_in_a_video_leads_nowhere(places):
    """A data reference to another file (ISO/IEC 14496-12, 8.7.2) is a finding, and is not read."""
    films, outside, _ = places
    path = films / "refers.mp4"
    data = (films / "known.mp4").read_bytes()
    referring = edit(
        data, "moov/trak[0]/mdia/minf/dinf/dref/url", flags=0,
        location=f"file://{outside}/secret.mp4",
    )  # fmt: skip
    path.write_bytes(referring)
    with over_stdio(films) as agent:
        assert agent("describe_video", video="films/refers.mp4")["findings"]
        assert agent("look", video="films/refers.mp4", times=[1]).error


def test_without_an_output_nothing_that_writes_is_offered(films):
    with over_stdio(films) as agent:
        offered = {one.name for one in agent.tools()}
        assert offered == {*READING, "list_videos"}
        assert "Unknown tool" in agent("cut_video", **WRITING["cut_video"]("films/known.mp4")).error


def test_links_that_stay_inside_are_followed(films):
    (films / "same.mp4").symlink_to(films / "known.mp4")
    with ExitStack() as stack:
        agent = stack.enter_context(over_stdio(films))
        assert agent("describe_video", video="films/same.mp4")["seconds"] == 120
