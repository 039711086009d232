"""ISOBMFF files with their indexes, and a context of them."""

import hashlib
import json

import pytest

import fragdex
from fragdex.testing import movie
from service.serving import API

FILM = movie(fragments=6, samples=50, fps=25)  # 6 × 2 s, one track


@pytest.fixture(params=["sqlite", "postgresql"])
def context(request, tmp_path):
    """A context without a server, over each database."""
    from fragdex.service.app import close_context, open_context
    from fragdex.service.config import Settings

    more = {}
    if request.param == "postgresql":
        more["database_url"] = request.getfixturevalue("new_postgres")()
    context = open_context(Settings(data=tmp_path / "data", job_workers=0, **more))
    yield context
    close_context(context)


def fresh_md5(name):
    return fragdex.digest.Md5(name.encode()).digest().dashed


@pytest.fixture
def new_file(client, request):
    """A function that registers a file of an md5 of its own."""

    def new(name="film"):
        body = {"md5": fresh_md5(f"{request.node.nodeid} {name}"), "filename": f"{name}.mp4"}
        answer = client.post(f"{API}/isobmff_files", json=body)
        assert answer.status_code == 201
        return answer.json()

    return new


def index_json(data=FILM):
    return json.loads(fragdex.index(data).export("json"))


def md5_hex(data):
    return hashlib.md5(data).hexdigest()
