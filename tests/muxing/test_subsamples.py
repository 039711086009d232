"""What is said of the parts of samples (subs) is in progressive copies, with the same samples."""

from __future__ import annotations

from pathlib import Path

import pytest

import fragdex
from fragdex.boxes import Box, build, make_box, parse
from fragdex.testing import edit

FIXTURES = Path(__file__).parents[2] / "fixtures"
SOURCE = (FIXTURES / "faststart.mp4").read_bytes()
SAMPLES = (0, 3, 4, 11, 30)


def with_subsamples() -> bytes:
    """The film with two parts named of some pictures, its moov behind its media."""
    entries, before = [], -1
    for number in SAMPLES:
        parts = [
            {
                "subsample_size": size,
                "subsample_priority": number,
                "discardable": 0,
                "codec_specific_parameters": 0,
            }
            for size in (2, 3)
        ]
        entries.append({"sample_delta": number - before, "subsamples": parts})
        before = number
    subs = make_box("subs", entries=entries)

    def changed(box: Box) -> Box:
        if box.type == "stbl":
            return box.replace(children=[*box.children, subs])
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    parts, late = [], b""
    for box in parse(SOURCE):
        if box.type == "moov":
            first = box.find("trak")
            children = [changed(one) if one is first else one for one in box.children]
            late = build(box.replace(children=children))
            parts.append(build(make_box("free", data=bytes(box.size - 8))))
        else:
            parts.append(SOURCE[box.offset : box.offset + box.size])
    return b"".join([*parts, late])


def named(data: bytes) -> dict[int, list[tuple[int, int]]]:
    """Sample → priority and size of its parts."""
    moov = next(box for box in parse(data) if box.type == "moov")
    subs = moov.find_all("trak")[0].find("mdia/minf/stbl/subs")
    found, number = {}, -1
    for entry in subs["entries"] if subs is not None else ():
        number += entry["sample_delta"]
        found[number] = [
            (one["subsample_priority"], one["subsample_size"]) for one in entry["subsamples"]
        ]
    return found


@pytest.mark.parametrize("kind", ["clip", "faststart"])
def test_copies_of_everything_say_the_same(kind: str) -> None:
    data = with_subsamples()
    made = fragdex.clip(data) if kind == "clip" else fragdex.view(data, kind)
    assert named(made.read()) == named(data) == {n: [(n, 2), (n, 3)] for n in SAMPLES}
    assert not any("subs" in one for one in made.findings)


def test_a_clip_speaks_of_its_own_samples() -> None:
    data = with_subsamples()
    copy = fragdex.clip(data, 0.3, 1.0).read()
    own = named(copy)
    first = sizes(data).index(sizes(copy)[0])
    count = len(sizes(copy))
    assert own == {n - first: [(n, 2), (n, 3)] for n in SAMPLES if first <= n < first + count}
    assert own


def sizes(data: bytes) -> list[bytes]:
    table = fragdex.index(data, exact=True).track(1).samples
    places = zip(table.offset.tolist(), table.size.tolist(), strict=True)
    return [data[at : at + size] for at, size in places]


def named_in_fragments(data: bytes) -> dict[int, list[tuple[int, int]]]:
    """The same of the fragments of track 1."""
    found: dict[int, list[tuple[int, int]]] = {}
    first = 0
    for moof in parse(data):
        for traf in moof.find_all("traf") if moof.type == "moof" else ():
            if traf.find("tfhd")["track_ID"] != 1:
                continue
            subs, number = traf.find("subs"), first - 1
            for entry in subs["entries"] if subs is not None else ():
                number += entry["sample_delta"]
                found[number] = [
                    (one["subsample_priority"], one["subsample_size"])
                    for one in entry["subsamples"]
                ]
            first += sum(trun["sample_count"] for trun in traf.find_all("trun"))
    return found


def test_fragments_say_the_same_and_tables_of_them_again() -> None:
    data = with_subsamples()
    view = fragdex.view(data)
    made = view.read()
    wanted = named(data)
    assert named_in_fragments(made) == wanted
    for kind in ("faststart", "fragmented", "tracks"):
        again = fragdex.view(made, kind)
        assert not [one for one in (*view.findings, *again.findings) if "subs" in one]
        copy = again.read()
        assert (named_in_fragments(copy) if kind == "fragmented" else named(copy)) == wanted
    clip = fragdex.clip(made, at_key_frame=True)
    assert named_in_fragments(clip.read()) == wanted
    for source in (data, made):
        package = fragdex.package(source)
        assert not [one for one in package.findings if "subs" in one]
        name = package.title.renditions[0].name
        starts = package.title.renditions[0].made.time.tolist()
        parts = [package[f"{name}/{time}.m4s"].read() for time in starts]
        assert named_in_fragments(b"".join(parts)) == wanted


def test_a_clip_in_fragments_speaks_of_its_own_samples() -> None:
    data = with_subsamples()
    copy = fragdex.clip(data, 0.3, 1.0, at_key_frame=True).read()
    own, parts = named_in_fragments(copy), sizes(copy)
    first = sizes(data).index(parts[0])
    kept = [n for n in SAMPLES if first <= n < first + len(parts)]
    assert own == {n - first: [(n, 2), (n, 3)] for n in kept} != {}


def test_a_timeline_says_the_same_of_each_file() -> None:
    data = with_subsamples()
    fragments = fragdex.view(data).read()
    count = len(sizes(data))
    for pair in ((data, data), (data, fragments), (fragments, SOURCE)):
        view = fragdex.join(pair)
        wanted = {n: [(n, 2), (n, 3)] for n in SAMPLES}
        more = {} if pair[1] is SOURCE else {n + count: parts for n, parts in wanted.items()}
        assert named_in_fragments(view.read()) == wanted | more
        assert not [one for one in view.findings if "subs" in one]


def test_what_the_second_file_alone_says_is_named() -> None:
    tagged = (FIXTURES / "tags.mp4").read_bytes()
    plain = edit(fragdex.view(tagged).read(), "moov/udta", lambda _: None)
    view = fragdex.join([plain, tagged])
    assert any(one.what.startswith("meta") for one in view.findings)
