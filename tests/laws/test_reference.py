"""The index says of every sample what a slow and plain reader of the standard says."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import LimitExceeded
from fragdex.indexing.samples import MAX_WITHOUT_BYTES
from laws import brute, reference
from oracle.media_files import fixture_files, init_of
from strategies.files import files

FILES = fixture_files()

# Refused as a whole: there is no moov, and nothing but media data, so no track has a sample.
REFUSED = {"cut-in-moov.mp4", "cut-moov-last.mp4"}
# The same of the shared corpus: an mdat of 7 GB of which 84 bytes are there, a moov cut within.
REFUSED_OF_CORPUS = {"fq__size64", "mp4ff__init_truncated.mp4"}


def ours(data, init=b"", *, strict=False):
    """The samples of each track of each period, of all that is there."""
    index = fragdex.index(data, exact=True, strict=strict, partial=True, init=init or None)
    return brute.samples_of_moovs(index)


def theirs(data, init=b"", *, strict=False):
    """The same from the plain reader."""
    periods = reference.read(data, init, repair=not strict)
    return [{key: brute.placed(samples) for key, samples in p.items()} for p in periods]


@pytest.mark.parametrize("name", FILES)
def test_every_fixture(name):
    data, init = FILES[name].read_bytes(), init_of(name)
    for strict in (True, False):
        if name in REFUSED:
            with pytest.raises(fragdex.FragdexError):
                ours(data, init, strict=strict)
            assert not any(any(tracks.values()) for tracks in theirs(data, init))
        else:
            assert ours(data, init, strict=strict) == theirs(data, init, strict=strict)


@pytest.mark.corpus
def test_every_file_of_the_corpus(corpus):
    compared = 0
    for path in sorted(corpus.glob("*__*")):
        data = path.read_bytes()
        if path.name in REFUSED_OF_CORPUS:
            with pytest.raises(fragdex.FragdexError):
                ours(data)
            continue
        for strict in (True, False):
            periods = ours(data, strict=strict)
            assert periods == theirs(data, strict=strict), path.name
            compared += sum(len(samples) for tracks in periods for samples in tracks.values())
    assert compared > 5000


@given(files())
def test_every_file_that_can_be_made(film):
    assert ours(film.data) == theirs(film.data)
    assert ours(film.data, strict=True) == theirs(film.data, strict=True)


@given(files())
def test_the_plain_reader_knows_what_was_written(film):
    true = [
        {
            **{track.id: [] for track in (period.moov.tracks if period.moov else ())},
            **{key: brute.placed(samples) for key, samples in period.samples.items()},
        }
        for period in film.periods
    ]
    assert theirs(film.data) == true


MOOFS = [
    (name, place)
    for name, path in FILES.items()
    if name.startswith("made/")
    for box in fragdex.boxes.parse(path.read_bytes())
    if box.type == "moof"
    for place in range(box.offset + box.header_size, box.offset + box.size)
]


@given(st.sampled_from(MOOFS), st.integers(0, 255))
def test_one_byte_of_a_moof_changed_is_read_alike_or_noted(where, value):
    name, place = where
    data = bytearray(FILES[name].read_bytes())
    data[place] = value
    data, init = bytes(data), init_of(name)
    assume(not is_damaged(data, init))
    alike_or_too_many(data, init)


def is_damaged(data, init):
    """Whether a fragment breaks the rules: the plain reader does not know how to leave it out."""
    index = fragdex.index(data, exact=True, partial=True, init=init or None)
    return any(finding.code.startswith("damaged") for finding in index.findings)


def alike_or_too_many(data, init):
    """Both say the same, or no bytes stand for the samples of a track, and there are very many."""
    try:
        samples = ours(data, init)
    except LimitExceeded:
        with contextlib.suppress(reference.TooManySamples):
            tracks = [track for period in theirs(data, init) for track in period.values()]
            assert max(map(len, tracks)) > MAX_WITHOUT_BYTES
    else:
        assert samples == theirs(data, init)


@pytest.mark.parametrize("count", [0, 1, 2**16, 2**18 - 1, 2**18 + 999, 2**24, 2**31, 2**32 - 1])
@pytest.mark.parametrize("run", [0, 1])
def test_a_run_may_claim_any_number_of_samples(run, count):
    name = "made/trex-defaults.mp4"
    data = bytearray(FILES[name].read_bytes())
    at = [found.start() for found in re.finditer(b"trun", data)][run] + 8
    data[at : at + 4] = count.to_bytes(4, "big")
    data, init = bytes(data), init_of(name)
    assert is_damaged(data, init) == (count >= 2**31)
    if count < 2**31:
        alike_or_too_many(data, init)


def test_the_plain_reader_owes_nothing_to_the_library():
    text = Path(reference.__file__).read_text("utf-8")
    assert "import fragdex" not in text
    assert "from fragdex" not in text
    assert "numpy" not in text


@pytest.mark.parametrize("kind", [b"tkhd", b"stsz"])
def test_no_track_is_dropped_silently(kind):
    """A version that the standard does not know makes a box unreadable, not the file perfect."""
    data = bytearray(FILES["made/stsz-constant.mp4"].read_bytes())
    data[data.index(kind) + 4] = 200
    index = fragdex.index(bytes(data), exact=True)
    assert not any(track.sample_count for track in index.tracks)
    assert index.findings
