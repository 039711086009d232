"""Which fields of a request decide what is answered, so that the fast answer is not given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.serving.answers import decides

DECIDING = (b"range", b"if-match", b"if-none-match", b"if-range")
names = st.sampled_from([*DECIDING, b"host", b"accept", b"user-agent", b"x-range"])


@given(st.lists(st.tuples(names, st.binary(max_size=9))))
def test_a_request_with_such_a_field_is_read_with_care(headers):
    assert decides(headers) == any(name in DECIDING for name, _ in headers)


@pytest.mark.parametrize("name", DECIDING)
def test_each_field_alone_decides(name):
    assert decides([(b"host", b"x"), (name, b"")])
