"""SVG: its size by its root; nothing it names is opened."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import Unprocessable
from fragdex.service.images.probe import measure_svg, probe

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'


def svg(attributes, before=""):
    return f"{before}<svg {NAMESPACE} {attributes}><rect/></svg>".encode()


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="30" height="20"', (30, 20)),
        ('width="30px" height=" 20.4 "', (30, 20)),
        ('width="1in" height="2.54cm"', (96, 96)),
        ('width="72pt" height="6pc"', (96, 96)),
        ('width="25.4mm" height="101.6Q"', (96, 96)),
        ('width="1e2" height=".6e2"', (100, 60)),
        ('viewBox="0 0 40 30"', (40, 30)),
        ('viewBox="0,0,40.6,30" width="100%" height="auto"', (41, 30)),
        ('viewBox="0 0 40 30" width="80"', (80, 60)),
        ('viewBox="0 0 40 30" height="3em" width="4"', (4, 3)),
        ('viewBox="0 0 40 30" height="15"', (20, 15)),
        ("", (300, 150)),
        ('viewBox="0 0 0 0" width="-3" height="x"', (300, 150)),
        ('width="0.1" height="1e300"', (1, 2**31 - 1)),
    ],
)
def test_the_size(attributes, size):
    assert measure_svg(io.BytesIO(svg(attributes))) == size


@pytest.mark.parametrize(
    "attributes",
    ['width="1e300" height="1e300"', 'viewBox="0 0 1e300 1"', 'width="20000" height="20000"'],
)
def test_it_is_bounded_as_other_pictures_are(attributes):
    with pytest.raises(Unprocessable, match="too many pixels"):
        probe(io.BytesIO(svg(attributes)), "image/svg+xml", 100_000_000)


@pytest.mark.parametrize(
    "before",
    [
        "\ufeff",
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by a program -->\n',
        '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://127.0.0.1:1/svg11.dtd">',
    ],
)
def test_what_drawing_programs_write_before_the_root(before):
    assert measure_svg(io.BytesIO(svg('width="3" height="2"', before))) == (3, 2)


def test_other_encodings():
    text = f'<?xml version="1.0" encoding="UTF-16"?><svg {NAMESPACE} width="3" height="2"/>'
    assert measure_svg(io.BytesIO(text.encode("utf-16"))) == (3, 2)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "before",
    [
        f'<!DOCTYPE svg [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE svg [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]>',
    ],
)
def test_entities_are_refused_before_they_grow(before):
    with pytest.raises(Unprocessable, match="entities"):
        measure_svg(io.BytesIO(svg('width="&l9;" height="2"', before)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<",
        b"<html></html>",
        b"<svg width='3' height='2'/>",
        b"<?xml version='1.0' encoding='klingon'?><svg/>",
        b"<!-- " + b"x" * 100_000,
        b"\xff\xfe<\0",
    ],
)
def test_what_is_no_svg_is_refused(data):
    with pytest.raises(Unprocessable):
        measure_svg(io.BytesIO(data))


@given(st.binary(max_size=200), st.integers(0, 200))
def test_noise_is_measured_or_refused_and_nothing_else(noise, place):
    data = bytearray(svg('width="30" height="20" viewBox="0 0 1 1"'))
    data[place:place] = noise
    try:
        width, height = measure_svg(io.BytesIO(data))
    except Unprocessable:
        return
    assert width >= 1
    assert height >= 1
