"""Views while what they are read from breaks off: right bytes or an error, never wrong bytes."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import fragdex
from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged, SourceError, SourceNotFound
from fragdex.muxing.kinds import described
from fragdex.testing import Faults, RangeServer, movie

pytest.importorskip("httpx")

CLIENTS = 64
FAULTS = {
    "connections are dropped": Faults(drop_connections=True),
    "bodies break off": Faults(short_answers=700),
    "requests are refused": Faults(status=503, times=40),
    "answers are of other places": Faults(misplaced=5),
    "the tag changes": Faults(changing_etag=True),
    "the length changes": Faults(changing_length=True),
    "answers are shorter than asked": Faults(partial_answers=300),
    "ranges are ignored": Faults(ignore_range=True),
    "no place is named": Faults(no_content_range=True),
    "several ranges are damaged": Faults(several_damaged=9),
}


def outcomes(view, whole, url):
    """What 64 clients get that each read a few random ranges at the same time."""

    def client(number):
        generator = random.Random(number)
        kinds = []
        with fragdex.open_source(url, retries=0) as source:
            for _ in range(3):
                low = generator.randrange(view.size)
                part = ByteRange(low, min(view.size, low + generator.choice((1, 300, 20_000))))
                try:
                    data = view.read(part, source=source)
                except SourceError as error:
                    kinds.append(type(error))
                else:
                    assert data == whole[part.start : part.stop]
                    kinds.append(bytes)
        return kinds

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [one for kinds in pool.map(client, range(CLIENTS)) for one in kinds]


@pytest.mark.parametrize("fault", FAULTS)
def test_random_ranges_while_the_server_breaks_off(fault):
    data = movie(60, tracks=2, samples=25, fragmented=False)
    with RangeServer({"/movie.mp4": data}) as server:
        view = fragdex.view(fragdex.index(server.url, exact=True))
        whole = view.read(source=data)
        server.faults = FAULTS[fault]
        results = outcomes(view, whole, server.url)
        assert len(results) == 3 * CLIENTS
        if FAULTS[fault].drop_connections or FAULTS[fault].changing_etag:
            assert {*results} - {bytes}  # what lies in made bytes alone is right
        server.faults = Faults()
        assert set(outcomes(view, whole, server.url)) == {bytes}


@pytest.mark.parametrize("kind", ["fragmented", "faststart", "clip", "timeline"])
def test_a_file_that_is_replaced_or_vanishes_gives_no_bytes(kind):
    data, other = (movie(20, samples=25, fps=fps, fragmented=False) for fps in (25, 24))
    assert len(data) == len(other)
    with RangeServer({"/movie.mp4": data}) as server:
        view = described(fragdex.index(server.url, exact=True), kind)
        whole = view.read()
        assert whole == view.read(source=data)
        media = ByteRange(view.size - 900, view.size)
        server.content = {"/movie.mp4": other}
        with pytest.raises(SourceChanged):
            view.read(media)
        server.content = {"/other.mp4": data}
        with pytest.raises(SourceNotFound):
            view.read(media)
