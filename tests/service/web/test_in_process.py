"""What pages of renders are answered, whatever process renders them."""

import pytest
from starlette.testclient import TestClient

from fragdex.errors import Unavailable
from fragdex.service.app import close_context, make_app, make_worker_app, open_context
from fragdex.service.config import Settings
from fragdex.service.web.in_process import InProcess
from service.serving import API

FILES = f"http://site.localhost{API}/files"


@pytest.fixture
def context(tmp_path):
    context = open_context(Settings(data=tmp_path, job_workers=0))
    yield context
    close_context(context)


def test_a_worker_without_a_port_answers_them(context):
    asked = context.part(InProcess)
    with asked.run_in_thread(make_app(context)):
        assert asked.get("ours", FILES, {}, 1000).status == 200
    with pytest.raises(Unavailable):
        asked.get("ours", FILES, {}, 1000)


def test_a_worker_with_a_port_answers_them_and_nobody_else(context):
    with TestClient(make_worker_app(context)) as anyone:
        assert context.part(InProcess).get("ours", FILES, {}, 1000).status == 200
        assert anyone.get("/healthz").status_code == 200
        assert anyone.get(f"{API}/files").status_code == 404
