"""Films that begin clear and are encrypted then: each fragment names its sample description.

The index says which one each sample uses, so that every copy carries both.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

import fragdex
from fragdex.boxes import Box, build, find, make_box, parse, parse_box
from fragdex.errors import BuildError
from fragdex.fragments.track_info import DESCRIPTION

FIXTURES = Path(__file__).parents[2] / "fixtures"
ENCRYPTED = (FIXTURES / "frag-encrypted.mp4").read_bytes()
TWO_ENTRIES = (FIXTURES / "made" / "stsd-two-fragments.mp4").read_bytes()
CLEAR = {b"encv": b"avc1", b"enca": b"mp4a"}
SYSTEM = bytes.fromhex("edef8ba979d64acea3c827dcd51d21ed")
OF_KEYS = ("senc", "saiz", "saio")


def clear_lead(clear: int, default: int = 1, fragments: int = 1) -> bytes:
    """The encrypted film with a second sample entry, which is clear and that its first moofs name.

    Args:
        clear: number of the clear entry, 1 or 2.
        default: description that the trex boxes name.
        fragments: how many are clear.
    """

    def entries(stsd: Box) -> Box:
        (protected,) = stsd.children
        inside = [child for child in protected.children if child.type != "sinf"]
        plain = build(protected.replace(children=inside))
        plain = plain[:4] + CLEAR[plain[4:8]] + plain[8:]
        both = [plain, build(protected)] if clear == 1 else [build(protected), plain]
        body = struct.pack(">II", 0, 2) + b"".join(both)
        return parse_box(struct.pack(">I4s", 8 + len(body), b"stsd") + body)

    def changed(box: Box) -> Box:
        if box.type == "stsd":
            return entries(box)
        if box.type == "trex":
            return box.replace(default_sample_description_index=default)
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    parts = []
    seen = 0
    for box in parse(ENCRYPTED):
        if box.type in ("sidx", "mfra"):
            continue
        raw = ENCRYPTED[box.offset : box.offset + box.size]
        if box.type == "moov":
            system = make_box("pssh", SystemID=SYSTEM, Data=b"")
            moov = changed(box)
            raw = build(moov.replace(children=[*moov.children, system]))
        elif box.type == "moof":
            seen += 1
            is_clear = seen <= fragments
            raw = named(box, clear if is_clear else 3 - clear, default, is_clear)
        parts.append(raw)
    return b"".join(parts)


def named(moof: Box, number: int, default: int, is_clear: bool) -> bytes:
    """A moof whose trafs use a description; a clear one has nothing of keys."""
    trafs = []
    for traf in moof.find_all("traf"):
        children = []
        for child in traf.children:
            if child.type == "tfhd" and number != default:
                flags = child["flags"] | 2
                child = child.replace(flags=flags, sample_description_index=number)
            if not (is_clear and child.type in OF_KEYS):
                children.append(child)
        trafs.append(traf.replace(children=children))
    others = [child for child in moof.children if child.type != "traf"]
    grown = len(build(moof.replace(children=[*others, *trafs]))) - moof.size
    moved = []
    place = 8 + sum(child.size for child in others)
    for traf in trafs:
        at = place + 8
        children = []
        for child in traf.children:
            if child.type == "trun":
                child = child.replace(data_offset=child["data_offset"] + grown)
            children.append(child)
        # what decrypts the samples stands in the senc of the same traf
        for child in children:
            at += len(build(child))
            if child.type == "senc":
                senc = at - len(build(child)) + 16
        for row, child in enumerate(children):
            if child.type == "saio":
                children[row] = child.replace(entries=[(senc,)])
        moved.append(traf.replace(children=children))
        place += len(build(moved[-1]))
    return build(moof.replace(children=[*others, *moved]))


def used(index: fragdex.Index, track: int) -> list[tuple[int, int]]:
    """Samples and description of each run."""
    groups = index.track(track).groups
    return [(one.sample_count, one.value) for one in groups if one.grouping_type == DESCRIPTION]


def samples(data: bytes, track: int) -> list[str]:
    table = fragdex.index(data, exact=True).track(track).samples
    places = zip(table.offset.tolist(), table.size.tolist(), strict=True)
    return [hashlib.md5(data[at : at + size]).hexdigest() for at, size in places]


def keys(data: bytes, track: int) -> list[bytes]:
    """What decrypts the samples of a track, one after the other."""
    found = []
    for moof in parse(data):
        for traf in moof.find_all("traf") if moof.type == "moof" else ():
            if traf.find("tfhd")["track_ID"] != track or traf.find("senc") is None:
                continue
            senc = build(traf.find("senc"))
            found.append(senc[16:])
    return [b"".join(found)]


@pytest.mark.parametrize("fragments", [1, 2])
@pytest.mark.parametrize("clear", [1, 2])
@pytest.mark.parametrize("default", [1, 2])
def test_the_index_says_which_description_each_sample_uses(
    clear: int, default: int, fragments: int
) -> None:
    data = clear_lead(clear, default, fragments)
    index = fragdex.index(data)
    rows = index.track(1).fragments.sample_count.tolist()
    lead = sum(rows[:fragments])
    expected = [(lead, clear), (sum(rows) - lead, 3 - clear)]
    assert used(index, 1) == expected
    assert used(fragdex.open_index(index.export("fidx")), 1) == expected
    grown = fragdex.Indexer()
    grown.feed(data[:4000])
    grown.feed(data[4000:])
    assert used(grown.finish(), 1) == expected


@pytest.mark.parametrize("clear", [1, 2])
def test_every_copy_carries_both(clear: int) -> None:
    data = clear_lead(clear)
    made = {
        "fragments": fragdex.view(data, "fragmented").read(),
        "clip": fragdex.clip(data, 0, float("inf")).read(),
        "faststart": fragdex.view(data, "faststart").read(),
    }
    package = fragdex.package(data)
    for name, kind in (("v1", 1), ("a1", 2)):
        made[name] = b"".join(package[one].read() for one in package if one.startswith(f"{name}/"))
        track = fragdex.index(data).track(kind)
        copy = fragdex.index(made[name]).track(kind)
        assert copy.sample_count == track.sample_count
        # the muxer of this film wrote its vectors of sound several times
        assert kind == 2 or keys(made[name], kind) == keys(data, kind)
    for name in ("fragments", "clip", "faststart"):
        copy = fragdex.index(made[name], exact=True)
        assert samples(made[name], 1) == samples(data, 1), name
        assert used(copy, 1) == used(fragdex.index(data), 1), name
        assert keys(made[name], 1) == keys(data, 1), name
    assert b"ContentProtection" in package["manifest.mpd"].read()


def key_of_segments(playlist: str) -> list[str]:
    """The method in force for each segment; "": none was named."""
    methods, now = [], ""
    for line in playlist.splitlines():
        if line.startswith("#EXT-X-KEY:"):
            now = line.partition("METHOD=")[2].partition(",")[0]
        elif line and not line.startswith("#"):
            methods.append(now)
    return methods


@pytest.mark.parametrize("seconds", [None, 0.7, 60])
@pytest.mark.parametrize("fragments", [0, 1, 2])
@pytest.mark.parametrize("clear", [1, 2])
def test_a_segment_is_clear_or_encrypted_and_the_playlist_says_which(
    clear: int, fragments: int, seconds: float | None
) -> None:
    package = fragdex.package(clear_lead(clear, 1, fragments), segment_duration=seconds)
    assert b"ContentProtection" in package["manifest.mpd"].read()
    for one in package.title.renditions:
        text = package[f"{one.name}.m3u8"].read().decode()
        told = key_of_segments(text)
        init = package[f"{one.name}/init.mp4"].read()
        found = []
        for time in one.made.time.tolist():
            data = package[f"{one.name}/{time}.m4s"].read()
            trex = find(parse(init), "moov/mvex/trex")
            assert trex is not None
            default = trex["default_sample_description_index"]
            trafs = [traf for box in parse(data) for traf in box.find_all("traf")]
            values = {
                traf.find("tfhd").get("sample_description_index", default)
                for traf in trafs
                if traf.find("trun")["sample_count"]
            }
            assert len(values) == 1
            found.append("NONE" if values == {clear} else "SAMPLE-AES-CTR")
        assert told == found
        assert text.count("METHOD=NONE") == bool(fragments)


def test_an_unused_protected_description_names_no_key() -> None:
    package = fragdex.package(clear_lead(1, 1, 1000))
    assert b"ContentProtection" not in package["manifest.mpd"].read()
    assert "SAMPLE-AES" not in package["v1.m3u8"].read().decode()


def test_clear_descriptions_become_progressive() -> None:
    copy = fragdex.index(fragdex.view(TWO_ENTRIES, "faststart").read(), exact=True)
    assert copy.video.extent.is_virtual
    assert samples(fragdex.view(TWO_ENTRIES, "faststart").read(), 1) == samples(TWO_ENTRIES, 1)


def test_an_index_that_does_not_know_is_refused() -> None:
    index = fragdex.index(clear_lead(1))
    index.track(1).groups = ()
    with pytest.raises(BuildError, match="not in the index"):
        fragdex.view(index, "fragmented", source=clear_lead(1))
