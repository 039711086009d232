"""One header is read in one way: what its size and type say, and what they cannot say."""

from hypothesis import given
from hypothesis import strategies as st

from fragdex.box_header import BoxHeader, read_header
from fragdex.boxes import parse_box
from fragdex.errors import FormatError
from fragdex.indexing import headers, native


def large(size, kind=b"mdat"):
    return b"\0\0\0\1" + kind + size.to_bytes(8, "big")


def test_a_compact_size_counts_the_header():
    assert read_header(b"\0\0\0\x09free.") == BoxHeader(b"free", 9, 8, "compact")


def test_a_size_of_1_stands_for_the_64_bits_behind_the_type():
    assert read_header(large(1 << 40)) == BoxHeader(b"mdat", 1 << 40, 16, "large")


def test_a_size_of_0_reaches_to_the_end():
    header = read_header(b"\0\0\0\0mdat")
    assert (header.size, header.form) == (0, "to_end")
    assert [header.size_in(room) for room in (7, 8, 99)] == [0, 8, 99]
    assert not header.fits(99)


def test_64_bits_of_0_are_impossible_and_do_not_reach_to_the_end():
    header = read_header(large(0))
    assert header.impossible
    assert header.size_in(99) == 0


def test_the_user_type_of_a_uuid_box_belongs_to_its_header():
    short, wide = read_header(b"\0\0\0\x18uuid"), read_header(large(32, b"uuid"))
    assert [(header.length, header.impossible) for header in (short, wide)] == [
        (24, False),
        (32, False),
    ]
    assert read_header(b"\0\0\0\x17uuid").impossible
    assert read_header(large(31, b"uuid")).impossible


def test_a_header_that_the_input_ends_in_is_told_from_one_that_is_wrong():
    assert [read_header(large(24)[:size]) for size in range(8)] == [None] * 8
    cut = [read_header(large(24)[:size]) for size in range(8, 16)]
    assert {header.form for header in cut} == {"cut"}
    assert not any(header.impossible or header.size_in(99) for header in cut)


def test_a_header_is_read_inside_of_the_box_around_it_only():
    data = large(24) + bytes(8)
    assert read_header(data, 0, 7) is None
    assert read_header(data, 0, 15).form == "cut"
    assert read_header(b"...." + data, 4).size == 24


sizes = st.one_of(st.integers(0, 40), st.integers(0, 2**32 - 1))
heads = st.builds(
    lambda size, kind, wide, rest: size.to_bytes(4, "big") + kind + wide.to_bytes(8, "big") + rest,
    sizes,
    st.sampled_from([b"free", b"uuid", b"mdat", b"skip"]),
    st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)),
    st.binary(max_size=40),
)


@given(heads, st.integers(0, 56))
def test_what_fits_is_a_box_for_the_parser_and_the_walk(data, size):
    data = data[:size]
    header = read_header(data)
    try:
        box = parse_box(data)
    except FormatError:
        box = None
    fits = header.size_in(len(data)) if header is not None else 0
    assert fits == (box.size if box is not None else 0)
    if box is not None:
        assert (box.header_size, box.size_form) == (header.length, header.form)
    met = native.walk(memoryview(data), 0)
    if header is not None and header.fits(len(data)):
        assert met.top["size"][0] == header.size
        assert met.top["header"][0] == header.length
    if header is not None and header.impossible:
        assert met.status == headers.MALFORMED
