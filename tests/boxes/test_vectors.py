"""Bytes written by hand from the standards' syntax, held against the declarations both ways."""

import numpy as np
import pytest

from fragdex.boxes import build, make_box, parse_box

UNITY = (0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
MATRIX = "00010000 00000000 00000000 00000000 00010000 00000000 00000000 00000000 40000000"

# (code, parent, body as hex after the box header, fields; tables as lists of rows)
VECTORS = [
    (
        "ftyp",
        None,
        "69736f36 00000200 69736f36 6d703431",
        {"major_brand": "iso6", "minor_version": 512, "compatible_brands": ("iso6", "mp41")},
    ),
    (
        "mvhd",
        "moov",
        "00 000000 00000001 00000002 000003e8 00001388 00010000 0100 0000 00000000 00000000"
        + MATRIX
        + "00" * 24
        + "00000003",
        {
            "version": 0,
            "creation_time": 1,
            "modification_time": 2,
            "timescale": 1000,
            "duration": 5000,
            "rate": 0x10000,
            "volume": 0x100,
            "matrix": UNITY,
            "next_track_ID": 3,
        },
    ),
    (
        "mvhd",
        "moov",
        "01 000000 0000000000000001 0000000000000002 000003e8 0000000100000000 00010000 0100 0000"
        "00000000 00000000" + MATRIX + "00" * 24 + "00000003",
        {"version": 1, "duration": 1 << 32, "next_track_ID": 3},
    ),
    (
        "tkhd",
        "trak",
        "00 000007 00000000 00000000 00000002 00000000 00000064 00000000 00000000 ffff 0001 0100"
        "0000" + MATRIX + "05000000 02d00000",
        {
            "flags": 7,
            "track_ID": 2,
            "duration": 100,
            "layer": -1,
            "alternate_group": 1,
            "volume": 0x100,
            "width": 1280 << 16,
            "height": 720 << 16,
        },
    ),
    (
        "mdhd",
        "mdia",
        "00 000000 00000000 00000000 0000bb80 00000000 55c4 0000",
        {"timescale": 48000, "language": 0x55C4},
    ),
    (
        "hdlr",
        "mdia",
        "00 000000 00000000 76696465 00000000 00000000 00000000 566900",
        {"handler_type": "vide", "name": "Vi"},
    ),
    (
        "hdlr",
        "mdia",
        "00 000000 6d686c72 736f756e 6170706c 00000000 00000000 02 5669",
        {"handler_type": "soun", "counted_name": "Vi"},
    ),
    (
        "hdlr",
        "mdia",
        "00 000000 00000000 6d657461 00000000 00000000 00000000 566964",
        {"handler_type": "meta", "unterminated_name": "Vid"},
    ),
    (
        "elst",
        "edts",
        "00 000000 00000002 000001f4 ffffffff 0001 0000 00000000 00000400 0001 0000",
        {"entry_count": 2, "entries": [(500, -1, 1, 0), (0, 1024, 1, 0)]},
    ),
    (
        "elst",
        "edts",
        "01 000000 00000001 0000000100000000 ffffffffffffffff 0000 0000",
        {"entries": [(1 << 32, -1, 0, 0)]},
    ),
    ("url ", "dref", "00 000001", {"flags": 1}),
    ("url ", "dref", "00 000000 00", {"location": ""}),
    ("url ", "dref", "00 000000 612e6d7034 00", {"location": "a.mp4"}),
    (
        "stts",
        "stbl",
        "00 000000 00000001 00000018 00000200",
        {"entry_count": 1, "entries": [(24, 512)]},
    ),
    ("ctts", "stbl", "00 000000 00000001 00000001 ffffffff", {"entries": [(1, 0xFFFFFFFF)]}),
    ("ctts", "stbl", "01 000000 00000001 00000001 ffffffff", {"entries": [(1, -1)]}),
    ("stsc", "stbl", "00 000000 00000001 00000001 00000008 00000001", {"entries": [(1, 8, 1)]}),
    ("stsz", "stbl", "00 000000 00000000 00000002 00000010 00000011", {"entries": [(16,), (17,)]}),
    ("stz2", "stbl", "00 000000 000000 04 00000003 7f 10", {"entry_size": [7, 15, 1]}),
    ("stz2", "stbl", "00 000000 000000 10 00000002 0102 ffff", {"entry_size": [258, 65535]}),
    ("co64", "stbl", "00 000000 00000001 0000000100000000", {"entries": [(1 << 32,)]}),
    ("sdtp", "stbl", "00 000000 1b e4", {"entries": [(0, 1, 2, 3), (3, 2, 1, 0)]}),
    ("sbgp", "stbl", "00 000000 726f6c6c 00000001 00000005 00000001", {"entries": [(5, 1)]}),
    (
        "sgpd",
        "stbl",
        "01 000000 726f6c6c 00000002 00000001 ffff",
        {"grouping_type": "roll", "default_length": 2, "entries": ({"data": b"\xff\xff"},)},
    ),
    (
        "sgpd",
        "stbl",
        "02 000000 73656967 00000000 00000001 00000001 00000003 010203",
        {
            "default_group_description_index": 1,
            "entries": ({"description_length": 3, "data": b"\1\2\3"},),
        },
    ),
    (
        "csgp",
        "stbl",
        # pattern and count in 4 bits, indices in 4 bits: two patterns, of 2 and 1 indices
        "00 000000 726f6c6c 00000002 23 14 12 30",
        {"patterns": [(2, 3), (1, 4)], "sample_group_description_index": [1, 2, 3]},
    ),
    (
        "csgp",
        "stbl",
        # a type parameter; pattern in 8, count in 16, indices in 8 bits
        "00 000059 726f6c6c 00000007 00000001 02 0100 01 02",
        {
            "grouping_type_parameter": 7,
            "patterns": [(2, 256)],
            "sample_group_description_index": [1, 2],
        },
    ),
    (
        "subs",
        "stbl",
        "00 000000 00000001 00000001 0001 0010 02 01 00000003",
        {
            "entries": (
                {
                    "sample_delta": 1,
                    "subsamples": (
                        {
                            "subsample_size": 16,
                            "subsample_priority": 2,
                            "discardable": 1,
                            "codec_specific_parameters": 3,
                        },
                    ),
                },
            )
        },
    ),
    ("saiz", "traf", "00 000000 00 00000002 10 16", {"entries": [(16,), (22,)]}),
    (
        "saiz",
        "traf",
        "00 000001 63656e63 00000000 08 00000002",
        {"aux_info_type": "cenc", "default_sample_info_size": 8, "sample_count": 2},
    ),
    ("saio", "traf", "01 000000 00000001 0000000000000400", {"entries": [(1024,)]}),
    ("mehd", "mvex", "01 000000 0000000100000000", {"fragment_duration": 1 << 32}),
    (
        "trex",
        "mvex",
        "00 000000 00000001 00000001 00000200 00000000 01010000",
        {"track_ID": 1, "default_sample_duration": 512, "default_sample_flags": 0x01010000},
    ),
    (
        "tfhd",
        "traf",
        "00 00003b 00000001 0000000000001000 00000002 00000400 00000005 02000000",
        {
            "base_data_offset": 4096,
            "sample_description_index": 2,
            "default_sample_duration": 1024,
            "default_sample_size": 5,
            "default_sample_flags": 0x02000000,
        },
    ),
    ("tfdt", "traf", "01 000000 8000000000000000", {"baseMediaDecodeTime": 1 << 63}),
    (
        "trun",
        "traf",
        "01 000f05 00000002 fffffff8 02000000"
        "00000200 00000010 01010000 fffffe00  00000200 00000011 01010000 00000200",
        {
            "sample_count": 2,
            "data_offset": -8,
            "first_sample_flags": 0x02000000,
            "samples": [(512, 16, 0x01010000, -512), (512, 17, 0x01010000, 512)],
        },
    ),
    (
        "sidx",
        None,
        "00 000000 00000001 00000400 00000000 00000000 0000 0002"
        "80000040 00000800 00000000  00000041 00000800 90000007",
        {
            "reference_ID": 1,
            "timescale": 1024,
            "reference_count": 2,
            "references": [(1, 64, 2048, 0, 0, 0), (0, 65, 2048, 1, 1, 7)],
        },
    ),
    (
        "ssix",
        None,
        "00 000000 00000001 00000002 01 000100 02 000200",
        {
            "subsegments": (
                {"ranges": ({"level": 1, "range_size": 256}, {"level": 2, "range_size": 512})},
            )
        },
    ),
    (
        "tfra",
        "mfra",
        "00 000000 00000001 0000001b 00000001 00000200 00001000 0001 000002 00000003",
        {
            "length_size_of_traf_num": 1,
            "length_size_of_trun_num": 2,
            "length_size_of_sample_num": 3,
            "entries": [(512, 4096, 1, 2, 3)],
        },
    ),
    ("mfro", "mfra", "00 000000 00000040", {"size": 64}),
    (
        "prft",
        None,
        "01 000018 00000001 0000000000000005 0000000000000006",
        {"reference_track_ID": 1, "ntp_timestamp": 5, "media_time": 6},
    ),
    (
        "emsg",
        None,
        "00 000000 75726e00 7600 000003e8 00000001 00000002 00000003 ffff",
        {
            "scheme_id_uri": "urn",
            "value": "v",
            "presentation_time_delta": 1,
            "id": 3,
            "message_data": b"\xff\xff",
        },
    ),
    (
        "emsg",
        None,
        "01 000000 000003e8 0000000000000001 00000002 00000003 75726e00 7600",
        {"scheme_id_uri": "urn", "value": "v", "presentation_time": 1, "message_data": b""},
    ),
    (
        "leva",
        "mvex",
        "00 000000 02 00000001 80 726f6c6c  00000001 04 00000009",
        {
            "levels": (
                {
                    "track_ID": 1,
                    "padding_flag": 1,
                    "assignment_type": 0,
                    "grouping_type": "roll",
                },
                {"track_ID": 1, "padding_flag": 0, "assignment_type": 4, "sub_track_ID": 9},
            )
        },
    ),
    (
        "pssh",
        "moov",
        "01 000000" + "11" * 16 + "00000001" + "22" * 16 + "00000002 abcd",
        {"SystemID": b"\x11" * 16, "KIDs": (b"\x22" * 16,), "Data": b"\xab\xcd"},
    ),
    (
        "tenc",
        "schi",
        "01 000000 00 19 01 00" + "33" * 16 + "02 0102",
        {
            "default_crypt_byte_block": 1,
            "default_skip_byte_block": 9,
            "default_KID": b"\x33" * 16,
            "default_constant_IV": b"\1\2",
        },
    ),
    ("schm", "sinf", "00 000000 63626373 00010000", {"scheme_type": "cbcs"}),
    ("frma", "sinf", "61766331", {"data_format": "avc1"}),
    (
        "avcC",
        "avc1",
        "01 42 c0 1e ff e1 0002 6742 01 0001 68",
        {
            "lengthSizeMinusOne": 3,
            "sequenceParameterSets": (b"\x67\x42",),
            "pictureParameterSets": (b"\x68",),
        },
    ),
    (
        "avcC",
        "avc1",
        "01 64 00 1e ff e0 00 fd f8 f8 00",
        {"chroma_format": 1, "bit_depth_luma_minus8": 0, "sequenceParameterSetExts": ()},
    ),
    (
        "hvcC",
        "hvc1",
        "01 21 60000000 b00000000000 5d f000 fc fd f8 f8 0000 0f 01 a0 0001 0002 4001",
        {
            "general_tier_flag": 1,
            "general_profile_idc": 1,
            "general_profile_compatibility_flags": 0x60000000,
            "general_constraint_indicator_flags": 0xB00000000000,
            "general_level_idc": 93,
            "chroma_format_idc": 1,
            "numTemporalLayers": 1,
            "arrays": (
                {
                    "array_completeness": 1,
                    "reserved": 0,
                    "NAL_unit_type": 32,
                    "nalus": (b"\x40\x01",),
                },
            ),
        },
    ),
    (
        "av1C",
        "av01",
        "81 04 0c 00 0a0b",
        {
            "marker": 1,
            "version": 1,
            "seq_level_idx_0": 4,
            "chroma_subsampling_x": 1,
            "chroma_subsampling_y": 1,
            "configOBUs": b"\x0a\x0b",
        },
    ),
    (
        "vpcC",
        "vp09",
        "01 000000 00 1f 82 02 02 02 0000",
        {"profile": 0, "level": 31, "bitDepth": 8, "chromaSubsampling": 1, "colourPrimaries": 2},
    ),
    (
        "dvcC",
        "dvh1",
        "01 00 10 35 10000000" + "00" * 16,
        {
            "dv_profile": 8,
            "dv_level": 6,
            "rpu_present_flag": 1,
            "el_present_flag": 0,
            "bl_present_flag": 1,
            "dv_bl_signal_compatibility_id": 1,
        },
    ),
    ("dOps", "Opus", "00 02 0138 0000bb80 0000 00", {"OutputChannelCount": 2, "PreSkip": 312}),
    (
        "dOps",
        "Opus",
        "00 03 0000 0000bb80 fff0 01 02 01 000102",
        {"OutputGain": -16, "StreamCount": 2, "ChannelMapping": b"\0\1\2"},
    ),
    (
        "dfLa",
        "fLaC",
        "00 000000 80 000002 abcd",
        {
            "metadata_blocks": (
                {"LastMetadataBlockFlag": 1, "BlockType": 0, "BlockData": b"\xab\xcd"},
            )
        },
    ),
    (
        "dac3",
        "ac-3",
        "10 3d 40",
        {"fscod": 0, "bsid": 8, "bsmod": 0, "acmod": 7, "lfeon": 1, "bit_rate_code": 10},
    ),
    (
        "colr",
        "avc1",
        "6e636c78 0001 0001 0001 80",
        {"colour_type": "nclx", "colour_primaries": 1, "full_range_flag": 1},
    ),
    ("colr", "avc1", "70726f66 010203", {"colour_type": "prof", "ICC_profile": b"\1\2\3"}),
    ("btrt", "avc1", "00000001 00000002 00000003", {"avgBitrate": 3}),
    ("pasp", "avc1", "00000004 00000003", {"hSpacing": 4, "vSpacing": 3}),
    ("tref", "trak", "0000000c 63686170 00000003", {}),
    ("kind", "udta", "00 000000 75726e00 6d61696e00", {"schemeURI": "urn", "value": "main"}),
]


def row_tuples(value):
    if isinstance(value, np.ndarray):
        return [row.item() for row in value]
    return value


@pytest.mark.parametrize(
    ("code", "parent", "body", "fields"),
    VECTORS,
    ids=[f"{number}-{vector[0].strip()}" for number, vector in enumerate(VECTORS)],
)
def test_vector(code, parent, body, fields):
    content = bytes.fromhex(body)
    data = (8 + len(content)).to_bytes(4, "big") + code.encode() + content
    read = parse_box(data, parent, strict=True)
    assert {name: row_tuples(read[name]) for name in fields} == fields
    given = dict(read.fields)
    built = make_box(code, parent=parent, children=read.children, **given)
    assert build(built) == data
    wanted = {"flags": read.get("flags", 0), "version": read.get("version", 0)}
    named = fields | {name: wanted[name] for name in wanted if name in read}
    assert build(read.replace(**named)) == data


def test_an_elementary_stream_descriptor():
    data = bytes.fromhex(
        "00000032 65736473 00 000000"
        "03 80808021 0001 10 04 80808016 40 15 000000 0001f400 0001f400"  # ES, its config
        "05 808005 1190000000"  # AudioSpecificConfig, with a length of three bytes
        "06 01 02"
    )
    esds = parse_box(data, "mp4a", strict=True)
    stream = esds["ES"]
    assert (stream["tag"], stream["size_length"], stream["ES_ID"]) == (3, 4, 1)
    assert stream["streamPriority"] == 16
    config, sync = stream["descriptors"]
    assert (config["objectTypeIndication"], config["streamType"]) == (0x40, 5)
    assert config["descriptors"] == ({"tag": 5, "size_length": 3, "data": b"\x11\x90\0\0\0"},)
    assert sync == {"tag": 6, "size_length": 1, "data": b"\2"}
    assert build(esds) == data
