import pytest

from fragdex.errors import Unavailable, Unprocessable
from fragdex.sandbox.child import ChildProcess, Failures
from fragdex.sandbox.walls import Walls

WALLS = Walls(256 << 20, 1 << 20)
FAILURES = Failures("the test process", "this file", Unprocessable, Unavailable)


@pytest.fixture
def inside(monkeypatch, pytestconfig):
    """Starts children that run `inside.py`, and ends them."""
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath / "tests" / "sandbox"))
    children = []

    def start(walls=WALLS, **more):
        children.append(ChildProcess("inside", walls, FAILURES, **more))
        return children[-1]

    yield start
    for one in children:
        one.end()
