"""Renders over HTTP: a service that waits with them, and one that works on them."""

import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from service.renders.working import Renderer
from service.serving import API


@pytest.fixture(scope="session")
def chromium():
    """Skips what needs a browser where there is none."""
    try:
        return find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def begun(client):
    """Makes renders; answers with their records."""

    def begin(**body):
        answer = client.post(f"{API}/renders", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    return begin


@pytest.fixture(scope="module")
def renderer(chromium, working):
    """A service of its own process that renders."""
    return Renderer(working.client, working)
