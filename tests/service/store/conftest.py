"""Every store, as `store` (with `reopen`)."""

import pytest

from fragdex.service.store import open_store
from fragdex.service.store.objects import ObjectStore

KINDS = ("disk", "memory", "local-objects", "s3")


@pytest.fixture
def opener(request, tmp_path):
    """opener(kind): a function that opens the same store again, as another process would."""

    def choose(kind):
        if kind == "disk":
            return lambda: open_store(tmp_path / "store")
        if kind == "s3":
            url = request.getfixturevalue("s3_url")
            return lambda: open_store(url)
        from obstore.store import LocalStore, MemoryStore

        bucket = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
        return lambda: ObjectStore(bucket)

    return choose


@pytest.fixture(params=KINDS)
def reopen(request, opener):
    return opener(request.param)


@pytest.fixture
def store(reopen):
    return reopen()
