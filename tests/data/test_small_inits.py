"""What is remembered of the initialization segments of other files changes none."""

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fragdex.data import set_parts, small_inits
from fragdex.errors import FragdexError
from fragdex.indexing import native
from fragdex.indexing.making import index_source
from fragdex.indexing.reading import Head
from fragdex.sources import open_source
from simple_inputs import SIMPLE, edited

pytestmark = pytest.mark.skipif(native.compiled is None, reason="the C extension was not compiled")


def small_init(data):
    """As a set makes it; None where there are no pictures."""
    source, head = open_source(data), Head()
    index = index_source(source, exact=True, head=head)
    video = index.video
    return None if video is None else set_parts.small_init(index, video, source, head)


def alone(data):
    """The same where nothing is remembered."""
    small_inits._SEGMENTS.clear()
    return small_init(data)


def test_segments_are_the_same_whatever_was_made_before():
    true = {name: alone(data) for name, data in SIMPLE.items()}
    small_inits._SEGMENTS.clear()
    for _ in range(2):
        assert {name: small_init(data) for name, data in SIMPLE.items()} == true
    assert len(small_inits._SEGMENTS) > 20


@given(st.sampled_from(sorted(SIMPLE)), st.integers(0, 2**32))
def test_segments_of_edited_files_are_the_same(name, seed):
    data = edited(SIMPLE[name], random.Random(seed))
    try:
        true = alone(data)
    except FragdexError:
        event("refused")
        return
    small_inits._SEGMENTS.clear()
    small_init(SIMPLE[name])
    event(f"{len(small_inits._SEGMENTS)} remembered")
    assert small_init(data) == true
