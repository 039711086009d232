"""Laws on what writes: whoever makes an output says what it has, and one writer makes the boxes."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import find_all, make_box, parse
from fragdex.byterange import ByteRange
from fragdex.indexing import native
from fragdex.muxing.fragments import Fragments
from fragdex.muxing.groups import Grouping
from fragdex.muxing.media import media_of
from fragdex.muxing.movie import chunks_of, described
from fragdex.muxing.plan import Plan, PlannedTrack
from fragdex.muxing.progressive import Chunks, tables_of
from fragdex.muxing.view import View
from fragdex.seeking.origin import FileInfo
from fragdex.testing import movie

SGPD = make_box("sgpd", version=1, grouping_type="roll", default_length=2)
SRC = Path(fragdex.__file__).parent
MOOF = {"moof", "mfhd", "traf", "tfhd", "trun"}
TABLES = {"stts", "stsc", "stsz", "stss", "ctts"}
MADE_IN = {frozenset(MOOF): "muxing/fragments.py", frozenset(TABLES): "muxing/progressive.py"}


def made(tree):
    """The boxes that a file makes: names in calls of make_box, and codes that are packed."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
        name = name.id if isinstance(name, ast.Name) else name
        constants = [one.value for one in node.args if isinstance(one, ast.Constant)]
        if name == "make_box":
            yield from (one for one in constants[:1] if isinstance(one, str))
        if name == "pack":
            yield from (one.decode("latin-1") for one in constants if isinstance(one, bytes))


@pytest.mark.parametrize(("codes", "home"), MADE_IN.items(), ids=["moofs", "sample tables"])
def test_one_file_writes_them(codes, home):
    files = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if path.relative_to(SRC).parts[0] not in ("boxes", "testing")
        and codes & set(made(ast.parse(path.read_text())))
    }
    assert files == {home}


def test_rows_of_several_samples_have_the_tables_of_single_ones():
    """Sound that is not coded: the last sample of a row lasts until the next one begins."""
    track = fragdex.index(movie(1, samples=2)).track(1)
    planned = media_of(track)
    sizes, begins = np.array([6, 2, 4]), np.array([0, 35, 45])
    columns = {"offset": np.array([0, 50, 90]), "size": sizes, "dts": begins, "cts": begins}
    columns |= {"duration": sizes // 2 * 10, "sync": np.ones(3, np.bool_)}
    table = type(planned.samples).of(columns)
    rows = type(planned)(track, table, 1000, np.zeros(3, np.int64), unit=2)
    chunks = Chunks(np.arange(3), np.array([0, 6, 8]), np.ones(3, np.int64))
    stts, stsc, stsz, stco = tables_of(rows, chunks, wide=False)
    assert stts["entries"].tolist() == [(2, 10), (1, 15), (3, 10)]
    assert stsc["entries"].tolist() == [(1, 3, 1), (2, 1, 1), (3, 2, 1)]
    assert (stsz["sample_size"], stsz["sample_count"]) == (2, 6)
    assert stco["entries"]["chunk_offset"].tolist() == [0, 6, 8]


@pytest.mark.parametrize("explicit", [False, True])
def test_fragments_are_as_long_as_they_say(explicit):
    """Sizes are known before bytes are made, with samples of two descriptions and made ones."""
    data = movie(3, samples=4)
    track = fragdex.index(data).track(1)
    planned = media_of(track)
    sizes = planned.samples.size.copy()
    sizes[2] = 7
    table = type(planned.samples).of(planned.samples.columns() | {"size": sizes})
    numbers = np.array([1] * 5 + [2] * 7)
    planned = replace(planned, samples=table, descriptions=numbers, made={2: b"x" * 7})
    fragments = Fragments(Plan((planned,)), [np.array([0, 3, 3, 12])], explicit=explicit)
    trafs = []
    for number, size in enumerate(fragments.sizes.tolist()):
        pieces = [
            block
            if isinstance(block, bytes)
            else b"".join(data[r.start : r.stop] for r in ranges_of(block))
            for block in fragments.parts(number)
        ]
        assert len(b"".join(pieces)) == size
        trafs += find_all(parse(b"".join(pieces)), "moof/traf")
    assert [traf.find("trun")["sample_count"] for traf in trafs] == [3, 2, 7]
    assert [traf.find("tfhd").get("sample_description_index", 1) for traf in trafs] == [1, 1, 2]


VALUES = st.sampled_from([1, 2, 2, 2, 2, 40, 2**32 - 1])
SAMPLE = st.tuples(
    *(VALUES, st.sampled_from([0, 1, 3, 3, 3]), st.sampled_from([0, 0, 0, 1]), st.booleans()),
    *(st.sampled_from([0, 0, 0, 5, -1]), st.sampled_from([0, 0, 1, 2])),
)


@pytest.mark.skipif(native.compiled is None, reason="the C extension was not compiled")
@given(st.data(), st.lists(SAMPLE, min_size=1, max_size=24), st.booleans())
def test_fragments_written_together_are_those_written_one_by_one(data, samples, grouped):
    """Of every run of fragments the same bytes and ranges, whole and of every range."""
    duration, size, gap, sync, shift, group = (np.array(one) for one in zip(*samples, strict=True))
    dts = np.cumsum(duration) - duration
    columns = {"offset": 100 + np.cumsum(size + gap) - size, "size": size, "dts": dts}
    columns |= {"cts": dts + shift, "duration": duration, "sync": sync.astype(np.bool_)}
    track = fragdex.index(movie(1)).track(1)
    table = type(track.samples).of(columns)
    groups = (Grouping(SGPD, 0, 0, group),) if grouped else ()
    planned = PlannedTrack(track, table, 1000, np.zeros(len(size), np.int64), groups=groups)
    inner = data.draw(st.lists(st.integers(0, len(size)), max_size=6).map(sorted))
    edges = np.array([0, *inner, len(size)])
    made = Fragments(Plan((planned,)), [edges], b"lead", 7, 3, led=np.array([0]))
    low = data.draw(st.integers(0, len(made) - 1))
    high = data.draw(st.integers(low + 1, len(made)))
    together = parts_of(made.parts(low, high))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", None)
        plain = Fragments(Plan((planned,)), [edges], b"lead", 7, 3, led=np.array([0]))
        assert together == parts_of(plain.parts(low, high))
    total = int(made.sizes[low:high].sum())
    source = bytes(range(256)) * 8
    view = View("", [FileInfo("", len(source))], "", [total], lambda _: made.parts(low, high))
    whole = view.read(source=source)
    assert len(whole) == total == view.size
    start = data.draw(st.integers(0, total))
    stop = data.draw(st.integers(start, total))
    assert view.read(ByteRange(start, stop), source=source) == whole[start:stop]


def parts_of(blocks):
    """The parts of blocks, with made bytes that touch as one."""
    parts = []
    for block in blocks:
        for part in block.parts() if hasattr(block, "parts") else [block]:
            if isinstance(part, bytes) and parts and isinstance(parts[-1], bytes):
                parts[-1] += part
            elif part != b"":
                parts.append(part)
    return parts


def ranges_of(block):
    return [part.range for part in block.parts()] if hasattr(block, "parts") else [block.range]


def test_a_track_without_a_sample_to_chunk_box_has_one_description(root):
    data = (root / "fixtures" / "faststart.mp4").read_bytes()
    (trak, *_) = find_all(parse(data), "moov/trak")
    bare = trak.replace(children=[])
    assert described(fragdex.index(data).track(1), bare, np.arange(3)).tolist() == [1, 1, 1]
    assert [column.tolist() for column in chunks_of(bare, np.arange(2))] == [[1, 1], [0, 0], [0, 0]]
