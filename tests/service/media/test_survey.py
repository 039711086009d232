"""The first slice of a picture, read from bytes that may be anything."""

from hypothesis import given
from hypothesis import strategies as st

from fragdex.service.media.avc import first_slice

SLICES = {1, 2, 3, 4, 5}
units = st.lists(
    st.tuples(st.integers(0, 255), st.binary(max_size=20).map(lambda b: b.replace(b"\0", b"\1"))),
    max_size=6,
)


def truth(found):
    return next((head & 31 for head, _ in found if head & 31 in SLICES), None)


@given(units, st.integers(1, 4))
def test_with_lengths_before_the_units(found, size):
    data = b"".join(
        (len(body) + 1).to_bytes(size, "big") + bytes([head]) + body for head, body in found
    )
    assert first_slice(memoryview(data), size) == truth(found)


@given(units, st.sampled_from([b"\0\0\1", b"\0\0\0\1"]))
def test_with_start_codes(found, code):
    # a unit of no body at the very end is one that was cut
    data = b"".join(code + bytes([head or 1]) + body + b"\1" for head, body in found)
    assert first_slice(memoryview(data), 0) == truth([(head or 1, b"") for head, _ in found])


@given(st.binary(max_size=200), st.integers(0, 4))
def test_any_bytes_have_an_answer(data, size):
    assert first_slice(memoryview(data), size) in {None, *SLICES}
