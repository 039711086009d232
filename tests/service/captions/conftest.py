"""The service as it comes."""

import pytest

from service.serving import serving


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The service as it comes."""
    with serving(tmp_path_factory.mktemp("captions")) as served:
        yield served


@pytest.fixture
def client(server):
    """A client that sends a key."""
    return server.client
