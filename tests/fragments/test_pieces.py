"""The tree over pieces of a file: every leaf's path leads to the root, and no other bytes do."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.fragments.pieces import leaves_of, path_of, root_of, root_of_path


def tree(count):
    return [hashlib.sha256(bytes([number])).digest() for number in range(count)]


def root_by_definition(digests):
    """C2PA 2.1, 18.7: pairs are hashed, and what has no neighbour goes up as it is."""
    while len(digests) > 1:
        pairs = [digests[at : at + 2] for at in range(0, len(digests), 2)]
        digests = [hashlib.sha256(b"".join(two)).digest() if two[1:] else two[0] for two in pairs]
    return digests[0]


@given(st.integers(1, 40), st.data())
def test_the_path_of_a_leaf_leads_to_the_root_and_no_other_does(count, data):
    digests = tree(count)
    leaves, number = leaves_of(digests), data.draw(st.integers(0, count - 1))
    root, path = root_of(leaves), path_of(leaves, number)
    assert root == root_by_definition(digests)
    assert root_of_path(digests[number], number, count, path) == root
    assert root_of_path(bytes(32), number, count, path) != root
    assert root_of_path(digests[number], number, count, [*path, bytes(32)]) is None
    for cut in range(len(path)):
        assert root_of_path(digests[number], number, count, path[:cut]) is None


@pytest.mark.parametrize("number", [-1, 3])
def test_there_is_no_path_of_a_leaf_that_is_not_there(number):
    with pytest.raises(IndexError, match="there is no leaf"):
        path_of(leaves_of(tree(3)), number)
    assert root_of_path(bytes(32), number, 3, ()) is None
