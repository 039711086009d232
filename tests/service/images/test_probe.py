"""The size of an image by its header, whatever it claims, and at no cost."""

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import Unprocessable
from fragdex.service.images.probe import kind_of, probe
from service.images.conftest import claimed_png, claimed_webp, made

CAP = 100_000_000


def measured(tmp_path, data, mime_type=None, cap=CAP):
    path = tmp_path / "image"
    path.write_bytes(data)
    with path.open("rb") as file:
        return tuple(probe(file, mime_type or kind_of(data), cap))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", [None, *range(1, 9), 77])
def test_the_size_is_that_after_orientation(tmp_path, form, orientation):
    sideways = orientation in (5, 6, 7, 8)
    data = made(form, orientation=orientation)
    assert measured(tmp_path, data) == ((20, 30) if sideways else (30, 20))


def test_webp_of_each_kind(tmp_path):
    assert measured(tmp_path, made("WEBP", (301, 7), lossless=True)) == (301, 7)
    assert measured(tmp_path, made("WEBP", (301, 7), quality=10)) == (301, 7)


@pytest.mark.parametrize("data", [claimed_png(60_000, 60_000), claimed_webp(1 << 24, 1 << 24)])
def test_a_claimed_size_over_the_cap_costs_nothing(tmp_path, data):
    tracemalloc.start()
    try:
        with pytest.raises(Unprocessable, match="too many pixels") as refused:
            measured(tmp_path, data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert refused.value.more["limit"] == CAP


@pytest.mark.parametrize("announced", ["image/jpeg", "image/png", "image/webp", "image/svg+xml"])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF"])
def test_another_type_than_announced_is_refused(tmp_path, announced, form):
    data = made(form)
    if kind_of(data) != announced:
        with pytest.raises(Unprocessable, match="type announced"):
            measured(tmp_path, data, announced)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_header_that_breaks_off_is_refused(tmp_path, form):
    data = made(form)
    for length in (12, 16, 20):
        with pytest.raises(Unprocessable):
            measured(tmp_path, data[:length])


WHOLE = {
    "png": made("PNG", orientation=6),
    "webp": made("WEBP", orientation=3),
    "webp-lossless": made("WEBP", lossless=True),
    "jpeg": made("JPEG", orientation=8),
    "jpeg-progressive": made("JPEG", progressive=True),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whatever_was_cut_off_is_refused(tmp_path, name):
    """A browser would show the part that is there, and nobody learnt of the rest."""
    data = WHOLE[name]
    for length in range(16, len(data)):
        with pytest.raises(Unprocessable):
            measured(tmp_path, data[:length], kind_of(data))
    for more in (b"", b"\0", b"behind its end", data):
        assert max(measured(tmp_path, data + more)) == 30


def test_a_long_scan_ends_where_its_marker_is(tmp_path):
    """Also where the marker's two bytes are read apart."""
    head, scan, end = made("JPEG").rpartition(b"\xff\xd9")[0], b"\xff\0a" * 400_000, b"\xff\xd9"
    for fill in range(3):
        data = head + b"x" * fill + scan
        assert measured(tmp_path, data + end) == (30, 20)
        with pytest.raises(Unprocessable, match="cut off"):
            measured(tmp_path, data + end[:1])


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_no_byte_of_an_exif_that_is_damaged_makes_noise(tmp_path, form, recwarn):
    """Pillow warns of each oddity, and a log fills with what a stranger sends."""
    data = made(form, orientation=6)
    for place in range(len(data)):
        for byte in (0, 8, 255):
            with suppress(Unprocessable):
                measured(
                    tmp_path,
                    data[:place] + bytes([byte]) + data[place + 1 :],
                    f"image/{form.lower()}",
                )
    assert not recwarn.list


@given(
    data=st.sampled_from([made(form, orientation=6) for form in ("JPEG", "PNG", "WEBP")]),
    place=st.floats(0, 1, exclude_max=True),
    byte=st.integers(0, 255),
    end=st.floats(0, 1),
)
def test_damage_is_measured_or_refused_and_nothing_else(tmp_path_factory, data, place, byte, end):
    damaged = bytearray(data)
    damaged[int(place * len(damaged))] = byte
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged[: int(end * len(damaged)) + 1])
    try:
        with path.open("rb") as file:
            size = probe(file, kind_of(data), CAP)
    except Unprocessable:
        return
    assert 1 <= size.width * size.height <= CAP
