import pytest

from fragdex.errors import Unavailable, Unprocessable
from fragdex.service.processes.child import ChildProcess
from fragdex.service.processes.failures import Failures
from fragdex.service.processes.walls import Walls

WALLS = Walls(256 << 20, 1 << 20)
FAILURES = Failures("the test process", "this file", Unprocessable, Unavailable)


@pytest.fixture
def inside(monkeypatch, pytestconfig):
    """Starts children that run `inside.py`, and ends them."""
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath / "tests" / "service" / "processes"))
    made = []

    def start(walls=WALLS, **more):
        made.append(ChildProcess("inside", walls, FAILURES, **more))
        return made[-1]

    yield start
    for one in made:
        one.end()
