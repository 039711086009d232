"""The oracle itself: pymp4, asked as a process, reads plain boxes and says so where it cannot."""

import struct

import pytest

pytestmark = pytest.mark.pymp4


def box(code, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), code) + body


def large(code, body):
    return struct.pack(">I4sQ", 1, code, 16 + len(body)) + body


TRUN = box(b"trun", struct.pack(">IIi", 0x000201, 2, 120), struct.pack(">II", 7, 9))
TRAF = box(b"traf", box(b"tfhd", struct.pack(">II", 0x020000, 3)), TRUN)
MFHD = box(b"mfhd", struct.pack(">II", 0, 41))


@pytest.fixture
def dump(tmp_path, ask_pymp4):
    def dump(data):
        path = tmp_path / "boxes.mp4"
        path.write_bytes(data)
        return ask_pymp4(path)

    return dump


def test_a_fragment_becomes_a_tree_with_places_and_columns(dump):
    free, moof, mdat = dump(
        box(b"free", b"12") + box(b"moof", MFHD, TRAF) + box(b"mdat", b"x" * 16)
    )
    assert (free["type"], moof["type"], mdat["type"]) == ("free", "moof", "mdat")
    assert moof["offset"] == 10
    mfhd, traf = moof["tree"]["children"]
    assert mfhd["fields"]["sequence_number"] == 41
    tfhd, trun = traf["children"]
    assert tfhd["fields"]["track_ID"] == 3
    assert tfhd["fields"]["flags"]["default_base_is_moof"] is True
    assert trun["offset"] == 10 + 8 + len(MFHD) + 8 + tfhd["size"]
    assert trun["fields"]["data_offset"] == 120
    assert trun["fields"]["sample_info"]["sample_size"] == [7, 9]
    assert "fields" not in mdat["tree"]


def test_large_sizes_are_read_though_pymp4_knows_none(dump):
    [moof] = dump(large(b"moof", MFHD + large(b"traf", TRAF[8:])))
    assert moof["tree"]["header_size"] == 16
    assert moof["tree"]["children"][1]["children"][1]["fields"]["sample_count"] == 2


def test_what_it_cannot_parse_is_told_and_the_rest_goes_on(dump):
    lie = box(b"trun", struct.pack(">II", 0x000200, 1000), b"\0" * 8)
    [moof] = dump(box(b"moof", MFHD, box(b"traf", lie, TRUN)))
    broken, good = moof["tree"]["children"][1]["children"]
    assert "error" in broken
    assert good["fields"]["sample_info"]["sample_size"] == [7, 9]


def test_a_box_past_the_end_closes_the_list(dump):
    first, rest = dump(box(b"free") + struct.pack(">I4s", 100, b"moof"))
    assert first["type"] == "free"
    assert "runs 92 bytes past the end" in rest["error"]


@pytest.mark.corpus
def test_every_fragment_of_the_corpus_can_be_asked(corpus, ask_pymp4):
    def runs(node):
        yield from [node] if node["type"] == "trun" else []
        for child in node.get("children", []):
            yield from runs(child)

    fragment_runs = [
        run
        for path in sorted(corpus.glob("*.m*4*"))
        for line in ask_pymp4(path)
        if "tree" in line
        for run in runs(line["tree"])
    ]
    assert len(fragment_runs) > 50
    assert all(run["fields"]["sample_count"] >= 0 for run in fragment_runs)
