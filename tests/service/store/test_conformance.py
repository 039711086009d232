"""Every store passes every check that ships with the contract."""

import pytest

from service.store.conformance import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_store(store, check):
    check(store)
    assert not list(store.keys("conformance/"))
    assert not list(store.drafts())
