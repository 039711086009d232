"""MP4Box.js lists the same samples as the index.

What it does to every file alike is undone by oracle/mp4box_agreement.py. What is left is listed
here by file and track, with the clause that settles it (docs/disagreements.md says more), and held
to be exactly that: an exception that MP4Box.js no longer needs fails as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fragdex
from oracle.media_files import an_init_for, fixture_files, init_of
from oracle.mp4box_agreement import by_the_standard, disagreements
from oracle.packet_agreement import samples_by_track

FILES = fixture_files()
Said = dict[str, Any]
Asked = Callable[..., list[Said]]

# What it says otherwise; clauses without a name are of ISO/IEC 14496-12.
EXCEPTIONS: dict[tuple[str, int], str] = {
    # tfxd gives the time, PIFF 1.1, 5.2.22; there is no tfdt (8.8.12). It counts from 0.
    ("piff.ismv", 2): "dts cts",
    ("piff-encrypted.ismv", 2): "dts cts",
    ("piff-lookahead.ismv", 2): "dts cts",
    ("smooth-fragment.m4s", 1): "dts cts",
    ("smooth-fragment-info.m4s", 1): "dts cts",
    ("made/piff-live.ismv", 1): "dts cts",
    # A traf without runs: duration-is-empty (8.8.7.1) and tfdt (8.8.12) move time on.
    ("made/empty-duration.mp4", 1): "dts cts",
    # A run may have no samples (8.8.8.1); it makes the next positions "not a number".
    ("made/empty-runs.mp4", 1): "offset",
    # first_sample_flags and a column of flags, which 8.8.8.1 forbids; it takes the column.
    ("made/first-flags.mp4", 1): "sync",
    # No tfdt: time goes on behind the samples of the moov (8.8.12). It begins at 0 again.
    ("made/hybrid.mp4", 2): "dts cts",
    # An odd number of 4-bit sizes ends in half an empty byte (8.7.3.3.2). It makes a sample of it.
    ("made/stz2-4.mp4", 1): "samples",
    # 64 bits of time (8.8.12.2) do not fit a JavaScript number: all samples get the same.
    ("made/tfdt-negative.mp4", 1): "dts cts",
    # An unsigned offset of 2^31 or more, where version 1 was meant (8.8.8.2).
    ("made/trun-v0-wide.mp4", 1): "cts",
}
# tfxd again.
CORPUS_EXCEPTIONS = {("shaka-packager__BigBuckBunny_10s.ismv", 2): "dts cts"}

# What MP4Box.js finds no moov in, and we nothing to index or nothing to compare.
NOT_OPENED = {"still.avif"}
NOT_OPENED_AND_REFUSED = {"cut-in-moov.mp4", "cut-moov-last.mp4"}
CORPUS_NOT_OPENED = {"fq__emsg.mp4", "fq__tfxd_tfrf.mp4"}
CORPUS_NOT_OPENED_AND_REFUSED = {"fq__size64", "mp4ff__init_truncated.mp4"}


def index_of(path: Path, init: bytes) -> fragdex.Index:
    """What the standard's rule says, without repairs, of all that is there."""
    return fragdex.index(path, exact=True, strict=True, partial=True, init=init or None)


def compared(path: Path, init: bytes, dump: Said) -> tuple[dict[int, set[str]], Counter[str]]:
    """The columns of each track that differ, and how many tracks and samples were compared."""
    ours = samples_by_track(index_of(path, init))
    theirs, counts = by_the_standard(dump)
    for row in (row for rows in theirs.values() for row in rows):
        if row[0] is not None:
            row[0] -= len(init)
    assert ours.keys() == theirs.keys()
    counts["tracks"] += len(ours)
    counts["samples"] += sum(len(samples) for samples in ours.values())
    return {track: disagreements(ours[track], theirs[track]) for track in ours}, counts


def asked(ask: Asked, files: dict[str, tuple[Path, bytes]], scratch: Path) -> dict[str, Said]:
    """What MP4Box.js says of each file, read behind its initialization segment."""
    wanted = []
    for number, (path, init) in enumerate(files.values()):
        (scratch / str(number)).write_bytes(init)
        wanted.append([scratch / str(number), path])
    return dict(zip(files, ask(*wanted), strict=True))


@pytest.fixture(scope="module")
def said(ask_mp4box: Asked, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    files = {name: (path, init_of(name)) for name, path in FILES.items()}
    return asked(ask_mp4box, files, tmp_path_factory.mktemp("inits"))


@pytest.mark.parametrize("name", sorted(FILES.keys() - NOT_OPENED - NOT_OPENED_AND_REFUSED))
def test_samples_agree(name: str, said: dict[str, Said]) -> None:
    assert said[name]["opened"]
    differing, _ = compared(FILES[name], init_of(name), said[name])
    for track, columns in differing.items():
        assert columns == set(EXCEPTIONS.get((name, track), "").split()), f"track {track}"


@pytest.mark.parametrize("name", sorted(NOT_OPENED))
def test_what_it_does_not_open_has_no_samples(name: str, said: dict[str, Said]) -> None:
    assert not said[name]["opened"]
    assert not samples_by_track(index_of(FILES[name], b""))


@pytest.mark.parametrize("name", sorted(NOT_OPENED_AND_REFUSED))
def test_what_it_does_not_open_is_refused(name: str, said: dict[str, Said]) -> None:
    assert not said[name]["opened"]
    with pytest.raises(fragdex.FragdexError):
        index_of(FILES[name], b"")


def test_enough_was_compared_and_each_habit_is_seen(said: dict[str, Said]) -> None:
    counts: Counter[str] = Counter()
    for name in FILES.keys() - NOT_OPENED - NOT_OPENED_AND_REFUSED:
        counts += compared(FILES[name], init_of(name), said[name])[1]
    assert counts["tracks"] > 250
    assert counts["samples"] > 10_000
    # A habit that is seen nowhere any more need not be undone.
    assert min(counts[habit] for habit in ("ends", "tfdt", "runs", "bases")) > 0
    assert len(EXCEPTIONS) <= 0.05 * counts["tracks"]


def test_the_page_names_every_exception(root: Path) -> None:
    page = (root / "docs" / "disagreements.md").read_text("utf-8")
    _, _, section = page.partition("## What MP4Box.js does to every file")
    for name, _ in [*EXCEPTIONS, *CORPUS_EXCEPTIONS]:
        assert f"`{name}`" in section


@pytest.mark.corpus
def test_samples_of_the_corpus_agree(corpus: Path, ask_mp4box: Asked, tmp_path: Path) -> None:
    files = {}
    for path in sorted(corpus.glob("*__*")):
        if path.name not in CORPUS_NOT_OPENED_AND_REFUSED:
            ids = [t.id for t in index_of(path, b"").tracks if not t.timescale]
            init = an_init_for(corpus / "fq__dash_video_init.mp4", ids) if ids else b""
            files[path.name] = (path, init)
    answers = asked(ask_mp4box, files, tmp_path)
    differing = {}
    counts: Counter[str] = Counter()
    for name, (path, init) in files.items():
        assert answers[name]["opened"] == (name not in CORPUS_NOT_OPENED)
        columns, more = compared(path, init, answers[name])
        differing |= {(name, track): one for track, one in columns.items() if one}
        counts += more
    assert differing == {key: set(what.split()) for key, what in CORPUS_EXCEPTIONS.items()}
    assert counts["samples"] > 4_000


@pytest.mark.corpus
def test_what_it_does_not_open_of_the_corpus_is_refused(corpus: Path, ask_mp4box: Asked) -> None:
    for name in sorted(CORPUS_NOT_OPENED_AND_REFUSED):
        assert not ask_mp4box([corpus / name])[0]["opened"]
        with pytest.raises(fragdex.FragdexError):
            index_of(corpus / name, b"")
