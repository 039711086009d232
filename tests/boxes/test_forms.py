"""The forms in which boxes are written: sizes, ends, and what QuickTime files do otherwise."""

import struct

import pytest

from fragdex.boxes import Box, build, make_box, parse, parse_box
from fragdex.errors import BuildError, MalformedBox


def box(code, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), code) + body


def full(code, *parts):
    return box(code, bytes(4), *parts)


def test_a_large_size_comes_back():
    data = struct.pack(">I4sQ", 1, b"mdat", 20) + b"abcd"
    (mdat,) = parse(data)
    assert (mdat.size_form, mdat.header_size, bytes(mdat["data"])) == ("large", 16, b"abcd")
    assert build(mdat) == data


def test_the_large_form_can_be_chosen():
    moof = make_box("moof", size_form="large", children=[make_box("mfhd")])
    assert build(moof)[:4] == b"\0\0\0\1"
    assert build(moof)[8:16] == (32).to_bytes(8, "big")


def test_size_zero_reaches_to_the_end_and_only_last():
    data = box(b"free") + struct.pack(">I4s", 0, b"mdat") + b"abc"
    _, mdat = parse(data)
    assert (mdat.size_form, mdat.size) == ("to_end", 11)
    assert build(parse(data)) == data
    with pytest.raises(MalformedBox, match="smaller than its header"):
        parse(box(b"moov", struct.pack(">I4s", 0, b"trak") + b"abc"))


def test_a_user_type_comes_back():
    user_type = bytes(range(16))
    data = box(b"uuid", user_type, b"payload")
    (uuid,) = parse(data)
    assert uuid["user_type"] == user_type.hex()
    assert uuid.header_size == 24
    assert bytes(uuid["data"]) == b"payload"
    assert build(uuid) == data
    with pytest.raises(BuildError, match="32 hex digits"):
        build(Box("uuid", {"user_type": "12", "data": b""}))


def test_a_declared_user_type_has_fields():
    tfxd = make_box("6d1d9b05-42d5-44e6-80e2-141daff757b2", version=1, fragment_duration=7)
    data = build(tfxd)
    assert len(data) == 8 + 16 + 4 + 16
    assert parse_box(data) == tfxd
    assert parse_box(data)["fragment_duration"] == 7


def test_payloads_are_views_of_the_input():
    data = bytearray(box(b"mdat", b"abcd"))
    (mdat,) = parse(data)
    data[8:] = b"efgh"
    assert bytes(mdat["data"]) == b"efgh"


def test_quicktime_ends_containers_with_zeros():
    data = box(b"moov", box(b"udta", box(b"name", b"a"), bytes(4)))
    udta = parse_box(data).find("udta")
    assert udta.trailing == bytes(4)
    assert udta.find("name")["name"] == "a"
    assert build(parse_box(data)) == data


def test_padding_with_zeros_is_no_box():
    data = box(b"moov", box(b"trak"), bytes(20))
    (moov,) = parse(data, strict=True)
    assert moov.trailing == bytes(20)
    assert build(moov) == data


HDLR = full(b"hdlr", bytes(4), b"mdir", bytes(12), b"\0")


def test_meta_is_a_full_box_in_iso_files():
    data = full(b"meta", HDLR, box(b"ilst"))
    meta = parse_box(data)
    assert (meta["version"], meta["flags"]) == (0, 0)
    assert [child.type for child in meta] == ["hdlr", "ilst"]
    assert build(meta) == data


def test_meta_is_a_plain_box_in_quicktime_files():
    data = box(b"meta", HDLR, box(b"ilst"))
    meta = parse_box(data)
    assert "version" not in meta
    assert [child.type for child in meta] == ["hdlr", "ilst"]
    assert build(meta) == data


def test_an_empty_meta():
    for data in (box(b"meta"), full(b"meta")):
        assert build(parse_box(data)) == data


def stsd(version, *entries):
    return box(b"stsd", struct.pack(">BxxxI", version, len(entries)), *entries)


def sound(code, version, *parts):
    start = bytes(6) + struct.pack(">HHHIHHhHI", 1, version, 0, 0, 2, 16, -2, 0, 48000 << 16)
    return box(code, start, *parts)


ESDS = full(b"esds", bytes([3, 3, 0, 1, 0]))
WAVE = box(b"wave", box(b"frma", b"mp4a"), box(b"mp4a", bytes(4)), ESDS, box(b"\0\0\0\0"))


def test_a_quicktime_sound_description_of_version_1():
    data = stsd(0, sound(b"mp4a", 1, struct.pack(">4I", 1024, 0, 0, 2), WAVE))
    read = parse_box(data)
    mp4a = read.children[0]
    assert mp4a["sound_description_v1"]["samplesPerPacket"] == 1024
    assert mp4a.find("wave/esds")["ES"]["ES_ID"] == 1
    assert mp4a.find("wave/mp4a")["reserved"] == 0
    assert build(read) == data


def test_a_quicktime_sound_description_of_version_2():
    extra = struct.pack(">IdIIIIII", 72, 96000.0, 6, 0x7F000000, 24, 12, 18, 1)
    data = stsd(0, sound(b"lpcm", 2, extra, full(b"chan", bytes(12))))
    lpcm = parse_box(data).children[0]
    description = lpcm["sound_description_v2"]
    assert struct.unpack(">d", description["audioSampleRate"].to_bytes(8, "big")) == (96000.0,)
    assert description["numAudioChannels"] == 6
    assert lpcm.find("chan")["mChannelDescriptions"] == ()
    assert build(parse_box(data)) == data


def test_an_iso_audio_sample_entry_of_version_1_has_no_more_bytes():
    srat = full(b"srat", struct.pack(">I", 192000))
    data = stsd(1, sound(b"mp4a", 1, srat, ESDS))
    mp4a = parse_box(data).children[0]
    assert mp4a["entry_version"] == 1
    assert "sound_description_v1" not in mp4a
    assert mp4a.find("srat")["sampling_rate"] == 192000
    assert build(parse_box(data)) == data


@pytest.mark.parametrize("sublayers", [1, 2, 6])
def test_levels_of_vvc_sublayers_are_told_where_there_are_several(sublayers):
    vvcc = make_box("vvcC", ptl_present_flag=1, num_sublayers=sublayers)
    assert ("ptl_sublayer_level_present_flags" in parse_box(build(vvcc))) is (sublayers > 1)


def test_a_sound_description_without_any_box():
    for extra in (b"", struct.pack(">4I", 1, 4, 4, 2)):
        data = stsd(0, sound(b"sowt", 1, extra))
        sowt = parse_box(data).children[0]
        assert ("sound_description_v1" in sowt) is bool(extra)
        assert build(parse_box(data)) == data


def test_a_code_means_other_things_in_other_places():
    cookie = struct.pack(">IBBBBBBHIII", 4096, 0, 16, 40, 10, 14, 2, 255, 0, 0, 44100)
    config = full(b"alac", cookie)
    data = stsd(0, sound(b"alac", 0, config))
    alac = parse_box(data).children[0]
    assert alac["channelcount"] == 2
    assert alac.find("alac")["sampleRate"] == 44100
    assert build(parse_box(data)) == data
    assert build(alac.children[0]) == config
    wave = parse_box(box(b"wave", box(b"frma", b"alac"), config, box(b"\0\0\0\0")), "alac")
    assert wave.find("alac")["sampleRate"] == 44100
    tref = parse_box(box(b"tref", box(b"tmcd", struct.pack(">I", 3))))
    assert tref.find("tmcd")["track_IDs"] == (3,)
