"""Stills in their three containers."""

import io

import numpy as np
import pytest
from PIL import Image

from fragdex.rendering.outputs import Still
from fragdex.rendering.pictures import encode_still
from rendering.frames.numbers import plain_png


def noise(size=(96, 64)):
    pixels = np.random.default_rng(1).integers(0, 255, (size[1], size[0], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((192, 128)).save(out, "PNG")
    return out.getvalue()


def opened(data):
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("container", ["jpeg", "webp"])
def test_quality_costs_bytes(container):
    sizes = [len(encode_still(noise(), Still(container, quality=q))) for q in (1, 30, 80, 100)]
    assert sizes == sorted(set(sizes))


def test_compression_saves_bytes():
    for container, levels in (("png", (1, 50, 100)), ("webp", (0, 6))):
        sizes = [len(encode_still(noise(), Still(container, compression=c))) for c in levels]
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) > 1


@pytest.mark.parametrize("container", ["jpeg", "png", "webp"])
def test_containers_are_what_they_say(container):
    picture = opened(encode_still(plain_png((200, 100, 50)), Still(container)))
    assert picture.format == container.upper()
    assert np.allclose(np.asarray(picture.convert("RGB"))[5, 5], (200, 100, 50), atol=4)


@pytest.mark.parametrize("container", ["png", "webp"])
def test_what_is_unpainted_stays_transparent_where_that_is_wanted(container):
    clear = plain_png((200, 100, 50, 0))
    picture = opened(encode_still(clear, Still(container, transparency=True)))
    assert picture.convert("RGBA").getpixel((5, 5))[3] == 0
    opaque = opened(encode_still(plain_png((1, 2, 3, 255)), Still(container)))
    assert opaque.mode == "RGB"


def test_the_same_picture_gives_the_same_bytes():
    for container in ("jpeg", "png", "webp"):
        assert len({encode_still(noise(), Still(container)) for _ in range(2)}) == 1
