"""Pictures of an image sequence are compressed several at once, and stand in order."""

import io
import threading
import zipfile
from fractions import Fraction

import numpy as np
from PIL import Image

from fragdex.rendering import join as sequences
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.encode import Encoding
from fragdex.rendering.outputs import Film


def png(level):
    out = io.BytesIO()
    Image.fromarray(np.full((16, 32, 3), level, np.uint8)).save(out, "PNG")
    return out.getvalue()


def test_several_pictures_are_compressed_at_once_and_stay_in_order(tmp_path, monkeypatch):
    levels = [10, 10, 20, 30, 30, 40]
    path, out = tmp_path / "slice.mkv", tmp_path / "a.zip"
    with Encoding(path, PageView(32, 16, Fraction(30)), Film("zip")) as encoding:
        for level in levels:
            encoding.frame(png(level))
        encoding.finish()
    # of four that differ, each waits for another one
    both, real = threading.Barrier(2, timeout=30), sequences.encode_still

    def encode(*given):
        both.wait()
        return real(*given)

    monkeypatch.setattr(sequences.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(sequences, "encode_still", encode)
    assert sequences.archive([lambda: path.open("rb")], out, Film("zip"), 7) == len(levels)
    with zipfile.ZipFile(out) as pictures:
        assert pictures.namelist() == [f"{7 + n:05}.png" for n in range(len(levels))]
        colours = [Image.open(pictures.open(name)).getpixel((5, 5)) for name in pictures.namelist()]
    assert colours == [(level,) * 3 for level in levels]
