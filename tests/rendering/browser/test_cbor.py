"""Messages of the DevTools protocol as bytes, and back."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.rendering.browser import pipe

_NUMBERS = st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False)
_TEXTS = st.text(st.characters())  # halves of pairs among them
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS | st.binary(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner),
)


@given(_VALUES)
def test_values_come_back_as_they_are(value):
    assert pipe.from_cbor(pipe.to_cbor(value)) == value


def test_whole_numbers_larger_than_the_browser_has_are_told_as_doubles():
    # as its parser of JSON takes them
    assert pipe.to_cbor(2**31) == b"\xfb" + struct.pack(">d", 2**31)


def test_a_text_may_be_utf_16():
    """RFC 8949 3.1: major type 2; what V8 says that is not ASCII."""
    message = bytes.fromhex("d8185a 0000000b bf 61 76 46 e900 3cd8 4fdf ff".replace(" ", ""))
    assert pipe.from_cbor(message) == {"v": "é🍏"}


def test_a_text_of_the_page_may_be_none():
    """Bodies of requests are told as texts, whatever is in them."""
    message = bytes.fromhex("d8185a 00000008 bf 61 76 63 61ff62 ff".replace(" ", ""))
    assert pipe.from_cbor(message) == {"v": "a\ufffdb"}


def test_messages_say_how_long_they_are():
    message = pipe.to_cbor({"id": 1})
    assert pipe.HEADER_BYTES + pipe.length_of(message) == len(message)
    with pytest.raises(pipe.MalformedMessage):
        pipe.length_of(b'{"id":1}')


def test_a_page_may_nest_as_deep_as_it_likes():
    deep = 50_000
    inside = b"\x9f" * deep + b"\xff" * deep
    value, depth = pipe.from_cbor(inside), 0
    while value:
        (value,) = value
        depth += 1
    assert depth == deep - 1


@given(_VALUES.map(pipe.to_cbor), st.data())
def test_what_is_cut_off_or_changed_is_refused_or_read_as_something(message, data):
    at = data.draw(st.integers(0, len(message) - 1))
    other = bytearray(message)
    other[at] = data.draw(st.integers(0, 255))
    for wrong in (message[:at], bytes(other)):
        try:
            pipe.from_cbor(wrong)
        except pipe.MalformedMessage:
            continue
