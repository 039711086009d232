"""What HTTP answers mean, decided without a network: the rare forms that our server cannot give."""

import pytest

from fragdex.errors import RangeIgnored, SourceChanged, SourceError
from fragdex.sources.answers import BodyPart, BrokenAnswer, FirstAnswer, PastTheEnd


@pytest.fixture
def seen():
    return FirstAnswer("movie.mp4")


def part(first, last, total, **fields):
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return 206, {"content-range": f"bytes {first}-{last}/{total}", **named}


def test_last_modified_stands_in_for_an_etag(seen):
    seen.check(*part(0, 9, 100, last_modified="Sat, 01 Jan 2022 00:00:00 GMT"), 0, 10)
    seen.check(*part(0, 9, 100, last_modified="Sat, 01 Jan 2022 00:00:00 GMT"), 0, 10)
    seen.check(*part(0, 9, 100), 0, 10)
    with pytest.raises(SourceChanged, match="Last-Modified"):
        seen.check(*part(0, 9, 100, last_modified="Sun, 02 Jan 2022 00:00:00 GMT"), 0, 10)


def test_an_etag_decides_where_there_is_one(seen):
    # servers behind one name often disagree in the date of a copy
    seen.check(*part(0, 9, 100, etag='"1"', last_modified="then"), 0, 10)
    assert seen.check(*part(0, 9, 100, etag='"1"', last_modified="now"), 0, 10).length == 10
    # and proxies weaken tags
    assert seen.check(*part(0, 9, 100, etag='W/"1"'), 0, 10).length == 10


def test_a_total_told_late_is_taken_and_held_to(seen):
    seen.check(*part(0, 9, "*"), 0, 10)
    assert seen.size is None
    seen.check(*part(0, 9, 100), 0, 10)
    with pytest.raises(SourceChanged):
        seen.check(*part(0, 9, 101), 0, 10)


def test_an_answer_may_be_shorter_but_never_elsewhere_or_longer(seen):
    assert seen.check(*part(10, 14, 100), 10, 20) == BodyPart(0, 5, whole=False)
    for first, last in [(9, 19), (11, 19), (10, 20)]:
        with pytest.raises(SourceError, match="other bytes"):
            seen.check(*part(first, last, 100), 10, 20)


@pytest.mark.parametrize(
    "text", ["", "bytes */100", "bytes 9-0/100", "bytes 0-9/5", "pages 0-9/100"]
)
def test_a_206_must_say_what_it_holds(seen, text):
    with pytest.raises(SourceError, match="which bytes"):
        seen.check(206, {"content-range": text}, 0, 10)


@pytest.mark.parametrize("length", ["", "-5", "5.0", "٥", "9" * 5000])
def test_a_length_that_is_none_is_not_believed(seen, length):
    with pytest.raises(RangeIgnored):
        seen.check(200, {"content-length": length}, 0, 10)
    assert seen.size is None


def test_416_without_a_total(seen):
    with pytest.raises(PastTheEnd):
        seen.check(416, {}, 5, 10)
    assert seen.size is None
    with pytest.raises(PastTheEnd):
        seen.check(416, {}, 0, 10)
    assert seen.size == 0


def test_416_with_another_total(seen):
    seen.check(*part(0, 9, 100), 0, 10)
    with pytest.raises(SourceChanged):
        seen.check(416, {"content-range": "bytes */50"}, 60, 70)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0),
        ("", None),
        ("-1", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        ("9" * 99, None),
    ],
)
def test_retry_after(seen, text, seconds):
    with pytest.raises(BrokenAnswer) as raised:
        seen.check(503, {"retry-after": text}, 0, 10)
    assert raised.value.after_s == seconds
