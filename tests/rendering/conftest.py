"""Real Chromium for what is rendered here; nothing is mocked."""

import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine


@pytest.fixture(scope="session")
def chromium():
    """Skips what needs a browser where there is none."""
    try:
        return find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))
