import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine


@pytest.fixture(scope="session", autouse=True)
def engine():
    try:
        return find_engine()
    except EngineUnavailable as error:
        pytest.skip(f"{error.message}: {error.advice}")
