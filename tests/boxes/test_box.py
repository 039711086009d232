"""Boxes as values: reading them, looking into them, changing them."""

import numpy as np
import pytest

from fragdex.boxes import Box, build, find, find_all, make_box, parse, parse_box
from fragdex.errors import BuildError, LimitExceeded


@pytest.fixture
def moov():
    tracks = [
        make_box(
            "trak",
            children=[
                make_box("tkhd", track_ID=number),
                make_box("mdia", children=[make_box("mdhd", timescale=number * 1000)]),
            ],
        )
        for number in (1, 2, 3)
    ]
    return parse_box(build(make_box("moov", children=[make_box("mvhd"), *tracks])))


def test_finding_by_path(moov):
    assert moov.find("trak/tkhd")["track_ID"] == 1
    assert moov.find("trak[2]/mdia/mdhd")["timescale"] == 2000
    assert [box["track_ID"] for box in moov.find_all("trak/tkhd")] == [1, 2, 3]
    assert [box.type for box in moov.find_all("trak[3]/*")] == ["tkhd", "mdia"]
    assert moov.find("trak[4]") is None
    assert moov.find("mvex/trex") is None
    assert find([moov], "moov/trak[2]/tkhd")["track_ID"] == 2
    assert len(find_all([moov, moov], "moov/trak")) == 6
    with pytest.raises(ValueError, match="no box path"):
        moov.find("trak/mediabox")


def test_codes_that_end_in_a_space_are_found_without_it():
    dref = make_box("dref", children=[make_box("url ", flags=1)])
    assert dref["entry_count"] == 1
    assert dref.find("url") is dref.find("url ")


def test_a_box_is_read_like_a_mapping(moov):
    tkhd = moov.find("trak/tkhd")
    assert "track_ID" in tkhd
    assert tkhd.get("nothing") is None
    assert [child.type for child in moov] == ["mvhd", "trak", "trak", "trak"]
    with pytest.raises(TypeError):
        tkhd.fields["track_ID"] = 4
    with pytest.raises(AttributeError):
        tkhd.type = "free"


def test_places_count_from_the_start_of_the_file(moov):
    data = build([make_box("free", data=b"1234"), moov])
    read = parse(data, offset=100)[1]
    mdhd = read.find("trak[2]/mdia/mdhd")
    assert read.offset == 112
    assert data[mdhd.offset - 100 :][4:8] == b"mdhd"
    assert mdhd.stop - mdhd.offset == mdhd.size == len(build(mdhd))


def test_replacing_rows_takes_their_count_along():
    stts = make_box("stts", entries=[(1, 512), (2, 1024)])
    longer = stts.replace(entries=np.append(stts["entries"], stts["entries"]))
    assert longer["entry_count"] == 4
    assert parse_box(build(longer)) == longer
    wrong = stts.replace(entries=[(1, 1)], entry_count=3)
    with pytest.raises(BuildError, match="entry_count is not the number of rows"):
        build(wrong)


def test_replacing_children_takes_their_count_along():
    stsd = make_box("stsd", children=[make_box("avc1"), make_box("hvc1")])
    assert stsd["entry_count"] == 2
    assert stsd.replace(children=stsd.children[:1])["entry_count"] == 1


def test_flags_and_versions_bring_and_take_fields():
    tfhd = make_box("tfhd", flags=0x8, track_ID=1, default_sample_duration=512)
    assert "default_sample_size" not in tfhd
    wider = tfhd.replace(flags=0x18, default_sample_size=7)
    assert (wider["default_sample_duration"], wider["default_sample_size"]) == (512, 7)
    assert "default_sample_duration" not in wider.replace(flags=0)
    run = make_box("trun", version=1, flags=0x800, samples=[(-5,)])
    with pytest.raises(BuildError, match="does not fit its column"):
        run.replace(version=0)
    assert run.replace(samples=[(5,)]).replace(version=0)["samples"].tolist() == [(5,)]


def test_flags_bring_and_take_columns():
    run = make_box("trun", flags=0x100, samples=[(512,), (513,)])
    wider = run.replace(flags=0x300)
    assert wider["samples"].tolist() == [(512, 0), (513, 0)]
    assert wider.replace(flags=0x200)["samples"].tolist() == [(0,), (0,)]
    bare = run.replace(flags=0)
    assert (bare["sample_count"], len(bare["samples"])) == (2, 0)
    assert bare.replace(flags=0x200)["samples"].tolist() == [(0,), (0,)]
    assert bare.replace(sample_count=3)["sample_count"] == 3
    with pytest.raises(LimitExceeded, match="too many rows"):
        bare.replace(sample_count=1 << 32 - 1, flags=0x200)
    widened = make_box("tfra", entries=[(1, 2, 3, 4, 5)]).replace(length_size_of_traf_num=3)
    assert build(widened)[-6:].hex() == "000000030405"


def test_a_field_that_is_not_there():
    with pytest.raises(BuildError, match="no field sequence") as caught:
        make_box("mfhd", sequence=1)
    assert caught.value.expected == "version, flags, sequence_number"
    with pytest.raises(BuildError, match="no field sequence"):
        make_box("mfhd").replace(sequence=1)
    with pytest.raises(BuildError, match="no field other"):
        make_box("qxyz", data=b"").replace(other=1)
    with pytest.raises(BuildError, match="not declared"):
        make_box("qxyz", other=1)


@pytest.mark.parametrize(
    ("code", "fields", "complaint"),
    [
        ("mfhd", {"sequence_number": -1}, "sequence_number"),
        ("mfhd", {"sequence_number": 1.5}, "sequence_number"),
        ("mfhd", {"version": 256}, "version"),
        ("mfhd", {"flags": 1 << 24}, "version, flags"),
        ("ftyp", {"major_brand": "iso"}, "four letters"),
        ("ftyp", {"compatible_brands": ("isom", "x" * 5)}, "four letters"),
        ("frma", {"data_format": "€uro"}, "data_format"),
        ("tenc", {"default_KID": b"short"}, "wrong number of bytes"),
        ("mvhd", {"matrix": (1, 2)}, "wrong length"),
        ("elng", {"extended_language": "a\0b"}, "zero byte"),
        ("avcC", {"lengthSizeMinusOne": 4}, "does not fit"),
        ("avcC", {"numOfSequenceParameterSets": 1, "sequenceParameterSets": ()}, "wrong length"),
        ("pssh", {"Data": 5}, "Data"),
        ("stz2", {"field_size": 8, "sample_count": 1, "entry_size": [256]}, "does not fit"),
        ("stz2", {"field_size": 8, "sample_count": 2, "entry_size": [1]}, "wrong length"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_name(code, fields, complaint):
    with pytest.raises(BuildError, match=complaint) as caught:
        build(make_box(code, **fields))
    assert caught.value.path.startswith(code)


WIDE = [("sample_count", "<i8"), ("sample_delta", "<i8")]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([(1 << 32, 1)], "do not fit"),
        ([(1,)], "do not fit"),
        ([(1.5, 1)], "do not fit"),
        ([(-1, 1)], "do not fit"),
        ([1, 2], "do not fit"),
        (np.zeros(1, [("sample_count", "<i8"), ("delta", "<i8")]), "other columns"),
        (np.array([(1 << 32, 1)], WIDE), "its column"),
    ],
)
def test_rows_that_do_not_fit(rows, complaint):
    with pytest.raises(BuildError, match=complaint):
        make_box("stts", entries=rows)


def test_rows_of_the_machine_s_own_order_are_taken():
    rows = np.array([(3, 512)], [("sample_count", "<i8"), ("sample_delta", "<u2")])
    assert make_box("stts", entries=rows) == make_box("stts", entries=[(3, 512)])


def test_bits_and_narrow_columns_do_not_overflow():
    with pytest.raises(BuildError, match="does not fit its bits"):
        build(make_box("sidx", references=[(2, 0, 0, 0, 0, 0)]))
    tfra = make_box("tfra", length_size_of_traf_num=2, entries=[(0, 0, 1 << 24, 1, 1)])
    with pytest.raises(BuildError, match="24 bits"):
        build(tfra)


def test_equality_is_that_of_the_bytes(moov):
    again = parse_box(build(moov), offset=500)
    assert again == moov
    assert again != moov.replace(children=moov.children[1:])
    one = make_box("trun", flags=0x200, samples=[(1,)])
    assert one != one.replace(samples=[(2,)])
    assert one != one.replace(flags=0x100)
    assert one != "trun"
    assert make_box("free", data=b"1") == parse_box(build(make_box("free", data=b"1")))
    assert make_box("ssix") != make_box("ssix", subsegments=({"ranges": ()},))
    with pytest.raises(TypeError):
        hash(one)


def test_boxes_print_what_they_hold(moov):
    assert repr(moov).startswith("Box('moov', children=(mvhd trak trak trak), at 0, ")
    trun = make_box("trun", flags=0x201, samples=[(1,), (2,)])
    assert repr(trun) == (
        "Box('trun', version=0, flags=0x201, sample_count=2, data_offset=0, samples=<2 rows>)"
    )
    assert "data=<17 bytes>" in repr(make_box("qxyz", data=bytes(17)))
    assert "data=b'abcdefghijklmnop'" in repr(make_box("qxyz", data=b"abcdefghijklmnop"))
    assert "data=b'ab'" in repr(parse_box(build(make_box("free", data=b"ab"))))
    assert "trailing=4 bytes" in repr(moov.replace(trailing=bytes(4)))
    assert "entry_size=<2 numbers>" in repr(
        make_box("stz2", field_size=8, sample_count=2, entry_size=[1, 2])
    )
    assert "…" in repr(make_box("ftyp", compatible_brands=("isom",) * 20))


def test_a_box_written_by_hand_needs_no_layout():
    mfhd = Box("mfhd", {"version": 0, "flags": 0, "sequence_number": 7})
    assert parse_box(build(mfhd))["sequence_number"] == 7
    with pytest.raises(BuildError, match="sequence_number"):
        build(Box("mfhd", {"version": 0, "flags": 0}))
    with pytest.raises(BuildError, match="four letters"):
        build(Box("mfh", {"data": b""}))


def test_rows_are_not_changed_in_place():
    (stts,) = parse(build(make_box("stts", entries=[(1, 512)])))
    with pytest.raises(ValueError, match="read-only"):
        stts["entries"]["sample_delta"] = 1
