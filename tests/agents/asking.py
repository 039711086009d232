"""An agent: the SDK's own client, with a real server as a process."""

import base64
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
from anyio.from_thread import start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters

MOST = 1 << 20
"""Bytes of an answer."""


class Answer:
    """What a tool answered."""

    def __init__(self, result):
        self.size = len(result.model_dump_json())
        assert self.size <= MOST
        self.text = result.content[0].text
        self.error = self.text if result.is_error else None
        self.json = None if result.is_error else json.loads(self.text)
        self.files = [base64.b64decode(one.data) for one in result.content[1:]]

    def __getitem__(self, name):
        assert self.error is None, self.error
        return self.json[name]

    @property
    def pictures(self):
        from PIL import Image

        return [np.asarray(Image.open(io.BytesIO(one))) for one in self.files]


class Agent:
    """Calls tools, and counts."""

    def __init__(self, portal, client):
        self._portal, self.client, self.calls, self.largest = portal, client, 0, 0

    def __call__(self, tool, **arguments):
        self.calls += 1
        answer = Answer(self._portal.call(self.client.call_tool, tool, arguments))
        self.largest = max(self.largest, answer.size)
        return answer

    def read(self, uri):
        """The first content of a resource; a str where it is refused."""
        try:
            return self._portal.call(self.client.read_resource, uri).contents[0]
        except MCPError as error:
            return str(error)

    def tools(self):
        return self._portal.call(self.client.list_tools).tools

    def in_loop(self, function):
        """Run a coroutine function with the client."""
        return self._portal.call(function, self.client)


@contextmanager
def connected(to):
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(to)) as client,
    ):
        yield Agent(portal, client)


def over_stdio(*arguments, **env):
    """An agent whose server is a process of its own, with these arguments of `fragdex mcp`."""
    words = ["-m", "fragdex", "mcp", *map(str, arguments)]
    environment = {**os.environ, **env}
    return connected(StdioServerParameters(command=sys.executable, args=words, env=environment))


@contextmanager
def http_server(*arguments, **env):
    """The address of a server over HTTP."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fragdex", "mcp", *map(str, arguments), "--http", "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
    )
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            process.kill()
            process.stdout.close()
