"""`fragdex dump`: the tree of boxes."""

import json

import pytest

import fragdex
from fragdex.boxes import build, make_box


def test_every_box_of_a_file_with_its_place(run, files):
    ran = run("dump", "a.mp4")
    assert (ran.code, ran.err) == (0, "")
    for box in fragdex.boxes.parse(files["a.mp4"]):
        assert any(line.startswith(f"{box.type} @{box.offset} +{box.size}") for line in ran.lines)
        for child in box.children:
            assert f"  {child.type} @{child.offset} +{child.size}" in ran.out


def test_media_data_is_not_read(call, files):
    answer = json.loads(call("info", "b.mp4", "--json").out)
    assert answer["source"]["size"] == len(files["b.mp4"])
    media = sum(box.size - 8 for box in fragdex.boxes.parse(files["b.mp4"]) if box.type == "mdat")
    assert call("dump", "b.mp4", "--max-bytes", len(files["b.mp4"]) - media + 2000).code == 0


def test_one_path(call, files):
    ran = call("dump", "a.mp4", "-p", "moof/traf/trun", "--full")
    truns = [
        trun for box in fragdex.boxes.parse(files["a.mp4"]) for trun in box.find_all("traf/trun")
    ]
    heads = [line for line in ran.lines if not line.startswith(" ")]
    assert len(heads) == len(truns) == 4
    assert f"samples: {len(truns[0]['samples'])} rows" in ran.out


def test_numbers_and_stars_in_paths(call, files):
    assert call("dump", "a.mp4", "-p", "moof[2]/mfhd").out.count("\n") == 1
    assert "sequence_number=2" in call("dump", "a.mp4", "-p", "moof[2]/mfhd").out
    both = call("dump", "b.mp4", "-p", "moov/trak[2]/tkhd", "-p", "moov/*/tkhd")
    assert both.out.count("tkhd @") == 2


def test_tables_are_cut_unless_full(call, files):
    short = call("dump", "progressive.mp4", "-p", "moov/trak/mdia/minf/stbl/stsz")
    full = call("dump", "progressive.mp4", "-p", "moov/trak/mdia/minf/stbl/stsz", "--full")
    assert "more rows (--full shows all)" in short.out
    assert "more rows" not in full.out
    assert len(full.lines) > len(short.lines)


def test_json_has_all_fields_and_rows(call, files):
    answer = json.loads(call("dump", "b.mp4", "--json").out)
    for shown, box in zip(answer["boxes"], fragdex.boxes.parse(files["b.mp4"]), strict=True):
        assert (shown["type"], shown["offset"], shown["size"]) == (box.type, box.offset, box.size)
    moof = next(box for box in answer["boxes"] if box["type"] == "moof")
    trun = next(box for box in moof["children"][1]["children"] if box["type"] == "trun")
    assert len(trun["fields"]["samples"]) == trun["fields"]["sample_count"]


def test_what_stands_before_damage_is_shown(call, files, tmp_path):
    whole = files["a.mp4"]
    moof = next(box for box in fragdex.boxes.parse(whole) if box.type == "moof")
    data = bytearray(whole)
    data[moof.offset + 8 : moof.offset + 12] = (5).to_bytes(4, "big")
    (tmp_path / "damaged.mp4").write_bytes(data)
    ran = call("dump", "damaged.mp4")
    assert ran.code == 2
    assert "moov @" in ran.out
    assert "a box size smaller than its header" in ran.err
    for cut, message in ((5, "inside a box header"), (20, "inside a box")):
        (tmp_path / "cut.mp4").write_bytes(whole + build(make_box("skip", data=bytes(40)))[:cut])
        ran = call("dump", "cut.mp4")
        assert ran.code == 2
        assert message in ran.err
        assert ran.out.count("moof @") == 4


def test_odd_boxes(call, tmp_path):
    boxes = [
        make_box("ftyp", major_brand="is m", compatible_brands=("a\nb\0",)),
        make_box("free", data=b"", size_form="large"),
        make_box("zzzz", data=bytes(range(40))),
        make_box("00112233445566778899aabbccddeeff", data=b"xyz"),
        make_box("mdat", data=b"1234", size_form="to_end"),
    ]
    (tmp_path / "odd.mp4").write_bytes(build(boxes))
    ran = call("dump", "odd.mp4")
    assert ran.code == 0
    assert "(64-bit size)" in ran.out and "(to the end)  4 bytes" in ran.out  # noqa: PT018
    assert "data=000102030405060708090a0b0c0d0e0f… (40 bytes)" in ran.out
    assert "\\n" in ran.lines[0]
    full = json.loads(call("dump", "odd.mp4", "--json", "--full").out)
    assert full["boxes"][2]["fields"]["data"] == bytes(range(40)).hex()
    assert json.loads(call("dump", "odd.mp4", "--json").out)["boxes"][2]["fields"] == {}


def test_several_files_in_several_processes(call, files):
    one, two = (call("dump", "a.mp4", "b.mp4", "--jobs", jobs) for jobs in (1, 2))
    assert one.out == two.out
    assert one.lines[0] == "a.mp4:"


def test_real_files_of_every_kind(call, fixtures):
    ran = call("dump", str(fixtures / "*.mp4"), str(fixtures / "*.mov"), "--json", "--jobs", "2")
    assert len(ran.lines) > 60
    text = call("dump", str(fixtures / "f*.mp4"), "--full")
    assert "\x1b" not in text.out


def test_a_damaged_file_gives_json_that_ends_with_the_error(call, files, tmp_path):
    (tmp_path / "cut.mp4").write_bytes(files["a.mp4"][:-10])
    ran = call("dump", "cut.mp4", "--json")
    assert ran.code == 2
    answer = json.loads(ran.out)
    assert [box["type"] for box in answer["boxes"]][:2] == ["ftyp", "moov"]
    assert "the input ends inside a box" in answer["error"]


def test_boxes_are_written_one_by_one(files):
    """The first box is out before the second is looked for, as text and as JSON."""
    from fragdex.cli.info import _as_json, _as_text

    class Stopped(Exception):
        pass

    class Endless:
        """Small boxes without end; whoever asks for many of them at once gets none."""

        name, size, asked = "endless", None, 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def read_up_to(self, place):
            self.asked += 1
            if self.asked > 2:
                raise Stopped
            return (b"\0\0\0\x08free" * (place.size // 8 + 1))[: place.size]

    import fragdex.sources

    for write in (_as_text, _as_json):
        source = Endless()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fragdex.sources, "open_source", lambda name, source=source: source)
            pieces = write("endless", None, False, False, {})
            assert "free" in next(piece for piece in pieces if "free" in piece)
            assert source.asked == 1
            with pytest.raises(Stopped):
                list(pieces)


@pytest.mark.parametrize("count", [1000, 4000])
def test_reads_grow_slower_than_boxes(count, tmp_path):
    from fragdex.boxes import parse
    from fragdex.cli.box_tree import top_level_boxes
    from fragdex.sources import open_source

    data = build(make_box("ftyp", major_brand="isom")) + b"\0\0\0\x08zzzz" * count
    with open_source(data) as source:
        boxes = list(top_level_boxes(source, None, strict=False))
        assert source.requests <= 10
    assert [box.offset for box in boxes] == [box.offset for box in parse(data)]


def test_json_of_every_fixture_is_that_of_its_boxes(fixtures):
    """Pieces make one document that says what the boxes do, however they are cut."""
    from fragdex.boxes import parse
    from fragdex.cli import box_tree

    for path in sorted(fixtures.glob("*.mp4"))[:40]:
        try:
            boxes = parse(path.read_bytes())
        except fragdex.FragdexError:
            continue
        with pytest.MonkeyPatch.context() as patch:
            whole = ["".join(box_tree.box_pieces(box, full=True)) for box in boxes]
            patch.setattr(box_tree, "BATCH", 2)
            assert ["".join(box_tree.box_pieces(box, full=True)) for box in boxes] == whole
        for text, box in zip(whole, boxes, strict=True):
            shown = json.loads(text)
            assert (shown["type"], shown["size"]) == (box.type, box.size)
            assert [one["type"] for one in shown.get("children", ())] == [
                one.type for one in box.children
            ]
            assert shown["fields"].keys() == box.fields.keys()
