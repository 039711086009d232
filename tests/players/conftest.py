"""Chromium, players from npm, and an origin with films on a real socket."""

import base64
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.console.conftest import browser  # noqa: F401

MODULES = Path(__file__).parent / "node" / "node_modules"
SCRIPTS = {
    "hls.js": "hls.js/dist/hls.min.js",
    "shaka": "shaka-player/dist/shaka-player.compiled.js",
    "dash.js": "dashjs/dist/modern/umd/dash.all.min.js",
    "video.js": "video.js/dist/video.min.js",
}
PATIENCE = 120_000
LENGTH = 0.8


def script(player):
    path = MODULES / SCRIPTS[player]
    if not path.is_file():
        pytest.skip(f"{player} is not installed: ./dev setup installs it where npm is there")
    return path


@contextmanager
def serving(folder, seconds, **options):
    """An origin of a folder; its address."""
    from fragdex.origin.application import Origin
    from fragdex.origin.titles import Titles

    with listening(Origin(Titles(folder, segment_duration=seconds, **options))) as address:
        yield address


@contextmanager
def listening(app):
    """An application on a real socket; its address."""
    uvicorn = pytest.importorskip("uvicorn")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


class Page:
    """A page with one player."""

    def __init__(self, page, address, player):
        self.page = page
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/")
        page.set_content('<video width="320" height="180" class="video-js"></video>')
        page.add_script_tag(path=script(player))
        page.add_script_tag(path=Path(__file__).with_name("players.js"))

    def __call__(self, function, *given):
        """What a function of players.js gives; it fails with what the page says where it hangs."""
        return self.page.evaluate("([name, ...given]) => patient(name, given)", [function, *given])

    def state(self):
        state = self.page.evaluate("state()")
        for one in state["appended"]:
            one["bytes"] = base64.b64decode(one["bytes"])
        return state


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    at = [str(Path(__file__).parents[1]), *sys.path]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, at))}
    command = [sys.executable, Path(__file__).with_name("films.py"), str(folder)]
    subprocess.run(command, env=env, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def origin(folder):
    with serving(folder, LENGTH) as address:
        yield address


@pytest.fixture
def page(browser):  # noqa: F811
    with browser.new_context() as context:
        yield context.new_page()


def answer(body, kind, route):
    route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")
