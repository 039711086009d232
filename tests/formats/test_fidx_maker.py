"""Indexes made by make.js are those of the library, or it says what it does not decide.

One process of node makes those of many files.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from formats import fidx_programs as programs
from fragdex.errors import FragdexError
from fragdex.formats import fidx
from fragdex.indexing import beside
from fragdex.indexing.headers import code
from fragdex.testing import Faults, RangeServer, check_fidx_file, movie
from indexing.test_parallel import SIGNATURE, film, payloads, variable
from strategies.files import files

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
MAKER = programs.MODULE.with_name("make.js")
REFUSED = {
    "dash-segment-1.m4s": "there is no moov",
    "dash-segment-2.m4s": "there is no moov",
    "hls-segment-0.m4s": "there is no moov",
    "hls-segment-1.m4s": "there is no moov",
    "lldash-segment-1.m4s": "there is no moov",
    "segment.m4s": "there is no moov",
    "smooth-fragment-info.m4s": "there is no moov",
    "smooth-fragment.m4s": "there is no moov",
    "no-moov.mp4": "there is no moov",
    "still.avif": "there is no moov",
    "stsd-two-fragments.mp4": "fragments of a track with 2 sample entries",
    "two-inits.mp4": "a second moov",
    "two-moovs.mp4": "a second moov",
}
"""Fixtures that the library indexes and make.js does not, and what it says."""
OF_INFO = (
    *("handler", "kind", "timescale", "format", "media_duration", "edits", "defaults"),
    *("rotation", "mirrored", "enabled", "alternate_group"),
)
PROGRAM = ("node", Path(__file__).with_name("fidx_makes.mjs"))
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


def made_by_js(folder, wanted, form="bytes", program=PROGRAM):
    """What make.js says of paths: the bytes of a `.fidx`, or what it refused."""
    command = [*program, MAKER, folder, form]
    text = json.dumps([one if isinstance(one, dict) else str(one) for one in wanted])
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    replies = json.loads(done.stdout)
    return [
        one["refused"] if "refused" in one else (folder / f"{number}.fidx").read_bytes()
        for number, one in enumerate(replies)
    ]


def indexed(what):
    """What the library says: an index, or what it refused."""
    try:
        return fragdex.index(what, exact=True)
    except FragdexError as error:
        return error


def differences(index, other):
    """What two indexes say otherwise of where samples are and when they are shown."""
    if len(index.periods) != 1:
        return ["periods"]
    found = [
        (name, getattr(index, name), getattr(other, name))
        for name in ("complete", "resume_offset")
        if getattr(index, name) != getattr(other, name)
    ]
    if index.how.method != other.how.method or index.periods[0].init != other.periods[0].init:
        found.append(("how", index.how, other.how))
    if [one.id for one in index.tracks] != [one.id for one in other.tracks]:
        return [*found, "tracks"]
    for track, made in zip(index.tracks, other.tracks, strict=True):
        found += [
            (track.id, name, getattr(track.info, name), getattr(made.info, name))
            for name in OF_INFO
            if getattr(track.info, name) != getattr(made.info, name)
        ]
        for name in ("groups", "shift"):
            if getattr(track, name) != getattr(made, name):
                found.append((track.id, name, getattr(track, name), getattr(made, name)))
        if made.info.codec not in (None, track.info.codec):
            found.append((track.id, "codec", track.info.codec, made.info.codec))
        for name in ("width", "height") if track.info.kind == "video" else ():
            size = getattr(track.info, name)
            if size is not None and size != getattr(made.info, name):
                found.append((track.id, name, size, getattr(made.info, name)))
        for name in ("fragments", "sync_samples", "samples"):
            theirs, ours = getattr(track, name), getattr(made, name)
            for column, values in theirs.columns().items():
                if not np.array_equal(values, getattr(ours, column)):
                    found.append((track.id, name, column, values, getattr(ours, column)))
    return found


def check(name, expected, made):
    """Hold what was made of a file against the library."""
    if isinstance(made, dict):
        assert made["name"] == "IndexingError", (name, made["stack"])
        return
    assert not isinstance(expected, FragdexError), (name, expected)
    assert differences(expected, fidx.read(made)) == [], name


@pytest.fixture(scope="module")
def paths():
    """Every fixture that may hold media."""
    folders = (FIXTURES, FIXTURES / "made", FIXTURES / "vvc")
    every = sorted(path for folder in folders for path in folder.iterdir())
    return [one for one in every if one.is_file() and one.suffix not in (".py", ".json", ".md")]


@pytest.fixture(scope="module")
def expected_of(paths):
    """What the library says of each."""
    return [indexed(path) for path in paths]


@pytest.mark.parametrize("form", ["bytes", "blob"])
def test_the_tables_of_every_fixture_are_those_of_the_library(paths, expected_of, tmp_path, form):
    refused = {}
    replies = made_by_js(tmp_path, paths, form)
    for path, expected, made in zip(paths, expected_of, replies, strict=True):
        check(path.name, expected, made)
        if isinstance(made, dict) and not isinstance(expected, FragdexError):
            refused[path.name] = made["message"]
    assert refused.keys() == REFUSED.keys()
    assert all(REFUSED[name] in message for name, message in refused.items())


def test_what_is_made_conforms(paths, tmp_path):
    some = [path for path in paths if path.name not in REFUSED][::5]
    made = made_by_js(tmp_path, some)
    written = [number for number, one in enumerate(made) if isinstance(one, bytes)]
    assert len(written) > 25
    for number in written:
        assert check_fidx_file(tmp_path / f"{number}.fidx") == []


def test_samples_are_left_out_of_tracks_on_request(tmp_path):
    path = str(FIXTURES / "frag-cmaf.mp4")
    choices = ({"samples": False}, {"samples": ["audio"]})
    made = made_by_js(tmp_path, [{"path": path, "options": one} for one in choices])
    rows = [
        {track["info"]: track["tables"].get("samples") is not None for track in tracks}
        for tracks in (fidx_tracks(one) for one in made)
    ]
    assert list(rows[0].values()) == [False] * len(rows[0])
    assert sorted(rows[1].values()) == [False, True]


def test_segments_with_their_initialization_segment(tmp_path):
    pairs = [("dash-segment-1.m4s", "dash-init.mp4"), ("hls-segment-1.m4s", "hls-init.mp4")]
    pairs += [("lldash-segment-1.m4s", "lldash-init.mp4")]
    paths = [(str(FIXTURES / one), str(FIXTURES / init)) for one, init in pairs]
    wanted = [{"path": a, "options": {"init": b, "samples": True}} for a, b in paths]
    for (path, init), made in zip(paths, made_by_js(tmp_path, wanted), strict=True):
        assert isinstance(made, bytes), made
        check(path, fragdex.index(path, init=init, exact=True), made)


def fidx_tracks(data):
    size = int.from_bytes(data[24:32], "little")
    return json.loads(data[64 : 64 + size])["periods"][0]["tracks"]


def test_boxes_that_are_content_are_those_of_the_library():
    text = MAKER.with_name("fragments.js").read_text()
    block = re.search(r"STRUCTURE = new Set\(\[(.*?)\]\);", text, re.DOTALL)
    names = {name for words in re.findall(r'"([^"]+)"', block[1]) for name in words.split(" ")}
    names = {name for name in names if len(name) == 4}
    users = re.findall(r'"([0-9a-f]{32})"', text)
    from fragdex.boxes.tree import TREE

    known = {word for line in TREE.splitlines() for word in line.split(" : ")[0].split()}
    known = {word for word in known if len(word) == 4}
    assert names == {word for word in known if beside.says_more([code(word)], []) is False}
    assert users
    assert beside.says_more([], map(bytes.fromhex, set(users))) is False


@settings(max_examples=5)
@given(drawn=st.lists(files(several=False), min_size=10, max_size=20))
def test_files_of_any_shape(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("made")
    for number, one in enumerate(drawn):
        (folder / f"{number}.mp4").write_bytes(one.data)
    made = made_by_js(folder, [folder / f"{number}.mp4" for number in range(len(drawn))])
    for number, (one, found) in enumerate(zip(drawn, made, strict=True)):
        check(number, indexed(one.data), found)


def damaged(paths, count):
    """Files with changes inside of their structure, by the fuzzer's own hand."""
    sys.path.insert(0, str(ROOT / "fuzz"))
    try:
        from mutation import mutate_boxes, scramble
    finally:
        sys.path.pop(0)
    small = [path.read_bytes() for path in paths if path.stat().st_size < 40_000]
    for number in range(count):
        dice = random.Random(number)
        changed = dice.choice(small)
        for _ in range(dice.choice((1, 1, 2))):
            changed = mutate_boxes(
                changed, 60_000, dice, lambda data, _, dice=dice: scramble(data, dice)
            )
        yield changed


def test_damaged_files_are_refused_or_indexed_as_the_library_does(paths, tmp_path):
    changed = list(damaged(paths, 400))
    for number, data in enumerate(changed):
        (tmp_path / f"{number}.mp4").write_bytes(data)
    made = made_by_js(tmp_path, [tmp_path / f"{number}.mp4" for number in range(len(changed))])
    assert sum(isinstance(one, bytes) for one in made) > 100
    for number, (data, found) in enumerate(zip(changed, made, strict=True)):
        check(number, indexed(data), found)


def with_decoys(data):
    """The same boxes, with copies of a true moof and what looks like others as media."""
    changed = bytearray(data)
    at = data.index(b"moof", len(data) // 2) - 4
    fake = b"".join(n.to_bytes(4, "big") + SIGNATURE for n in (24, 40, 1 << 19, 3))
    filler = data[at : at + int.from_bytes(data[at : at + 4], "big")] + fake
    for start, stop in payloads(data):
        changed[start:stop] = (filler * (1 + (stop - start) // len(filler)))[: stop - start]
    return bytes(changed)


@pytest.mark.parametrize("several", [True, False])
def test_a_url_takes_as_few_requests_as_the_library(tmp_path, several):
    films = {
        "variable": film(variable(count=120)),
        "decoys": with_decoys(film(variable(count=120))),
        "two tracks": film(variable(count=120), tracks=2, mdats=2),
        "dense": movie(2_000, samples=1, fps=25),
        "progressive": movie(40, samples=250, fps=25, fragmented=False),
        "front": (FIXTURES / "faststart.mp4").read_bytes(),
        "moov-last": (FIXTURES / "moov-last.mp4").read_bytes(),
    }
    with ExitStack() as stack:
        faults = Faults(single_ranges=not several)
        servers = [stack.enter_context(RangeServer(one, faults=faults)) for one in films.values()]
        expected = [fragdex.index(server.url, exact=True) for server in servers]
        most = [len(server.requests) for server in servers]
        made = made_by_js(tmp_path, [server.url for server in servers], "url")
        both = [len(server.requests) for server in servers]
    for n, name in enumerate(films):
        assert isinstance(made[n], bytes), (name, made[n])
        check(name, expected[n], made[n])
        assert both[n] - most[n] <= 1.2 * most[n], (name, both[n] - most[n], most[n])


def test_a_server_with_faults_gives_an_error_or_the_same_tables(tmp_path):
    data = film(variable(count=60))
    expected = fragdex.index(data, exact=True)
    wrong = {
        "ignore_range": True, "changing_etag": True, "changing_length": True, "misplaced": 3,
        "no_content_range": True, "unknown_total": True, "short_answers": 9, "partial_answers": 9,
        "gzip": True, "status": 404, "drop_connections": True,
    }  # fmt: skip
    right = {"several_damaged": 5, "single_ranges": True, "etag": "none", "redirects": 2}
    cases = {"right": {}, **{f"{k}": {k: v} for k, v in {**wrong, **right}.items()}}
    # from the third request on, when several ranges may be asked for
    cases |= {f"later {k}": {k: v, "after": 2} for k, v in wrong.items()}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(RangeServer(data, faults=Faults(**one))) for one in cases.values()
        ]
        made = made_by_js(tmp_path, [one.url for one in servers], "url")
    for name, one in zip(cases, made, strict=True):
        if isinstance(one, bytes):
            assert differences(expected, fidx.read(one)) == [], name
        assert isinstance(one, bytes) or name.removeprefix("later ") in wrong, (name, one)
    refused = {name for name, one in zip(cases, made, strict=True) if isinstance(one, dict)}
    assert refused >= wrong.keys()


def box(kind, *content, long=None):
    """Bytes of a box; `long`: a 64-bit size that it claims."""
    body = b"".join(content)
    if long is not None:
        return b"\0\0\0\1" + kind + long.to_bytes(8, "big") + body
    return (8 + len(body)).to_bytes(4, "big") + kind + body


def hostile():
    """Files that claim much with few bytes."""
    film = movie(2, samples=4)
    at = film.index(b"moof") - 4
    init, stbl = film[:at], film.index(b"stsz")
    tfhd = box(b"tfhd", bytes(4), (1).to_bytes(4, "big"))
    huge = box(b"trun", bytes(4), (1 << 24).to_bytes(4, "big"))
    nested = b""
    for _ in range(3000):
        nested = box(b"traf", nested)
    whole = movie(40, samples=4, fragmented=False)
    sizes = whole.index(b"stsz")
    counted = b"stsz" + bytes(4) + b"\0\0\0\1" + b"\xff" * 4
    yield "runs without rows", init + box(b"moof", *[box(b"traf", tfhd, huge)] * 2000)
    yield "nested", init + box(b"moof", nested)
    yield "many boxes", init + box(b"moof", box(b"free") * 70_000)
    yield "many at the top", init + box(b"free") * 300_000
    yield "far", init + box(b"mdat", long=2**63 + 5)
    yield "far, and counted", init + box(b"mdat", long=2**53 - 1)
    yield "sizes", film[:stbl] + counted + film[stbl + 16 :]
    yield "equal sizes", whole[:sizes] + counted + whole[sizes + 16 :]
    yield "chunks", re.sub(rb"(?<=stco....)....", b"\xff" * 4, whole, count=1, flags=re.DOTALL)
    yield "too small", init + b"\0\0\0\7mdat"


def test_what_claims_much_costs_little(tmp_path):
    cases = dict(hostile())
    for number, data in enumerate(cases.values()):
        (tmp_path / f"{number}.mp4").write_bytes(data)
    paths = [tmp_path / f"{number}.mp4" for number in range(len(cases))]
    made = made_by_js(tmp_path, paths, program=("node", "--max-old-space-size=256", PROGRAM[1]))
    for name, data, one in zip(cases, cases.values(), made, strict=True):
        check(name, indexed(data), one)
    refused = dict(zip(cases, made, strict=True))
    assert "too many samples" in refused["runs without rows"]["message"]
    assert refused["runs without rows"]["path"] == "moof/traf/trun"
    assert refused["nested"]["message"].startswith("a box traf does not belong here")
    assert refused["nested"]["offset"] == cases["nested"].index(b"moof") + 12
