"""Players wait for what a growing film does not have yet (RFC 8216bis, 6.2.5)."""

import asyncio
import gc
import re
import threading
from itertools import pairwise

import pytest

import fragdex

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin import waiting  # noqa: E402
from fragdex.origin.titles import ServedFilm, Titles  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import serving  # noqa: E402
from origin.test_growing_films import FOR_EVER, append, quiet  # noqa: E402
from strategies.recordings import fragment_starts  # noqa: E402

WHOLE = movie(12, tracks=2, samples=10, fps=10)
STARTS = sorted(
    {
        int(at)
        for track in fragdex.index(WHOLE, exact=True).tracks
        for at in track.fragments.moof_offset
    }
)
LIST = "/live.mp4/hls/v1.m3u8"


@pytest.fixture
def path(tmp_path):
    """A film of six fragments of a second."""
    path = tmp_path / "live.mp4"
    path.write_bytes(WHOLE[: STARTS[6]])
    return path


def served(path, growing=FOR_EVER):
    return serving(Titles(path.parent, segment_duration=1, growing=growing))


def later(wait, *given):
    """Calls a function in a thread; join it for what it gives."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(wait(*given)))
    thread.start()
    return thread, answers


def reached(text):
    """Numbers of the segment and of the part that come next."""
    segments = re.findall(r"^[av]\d/\d+\.m4s$", text, re.MULTILINE)
    return len(segments), text.rpartition(".m4s\n")[2].count("#EXT-X-PART:")


def test_a_list_and_a_part_come_when_they_are_written(path):
    with served(path) as client:
        plain = client.get(LIST)
        assert plain.headers["cache-control"] == "public, max-age=1"
        assert "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES" in plain.text
        segment, part = reached(plain.text)
        hinted = re.search(r'PRELOAD-HINT:TYPE=PART,URI="(.+)"', plain.text)[1]
        wanted = [
            f"{LIST}?_HLS_msn={segment}&_HLS_part={part}",
            f"{LIST}?_HLS_msn={segment}",
            f"/live.mp4/hls/{hinted}",
        ]
        waiting_for = [later(client.get, address) for address in wanted]
        assert client.get(LIST).text == plain.text
        append(path, WHOLE[STARTS[6] : STARTS[8]])
        for thread, _ in waiting_for:
            thread.join()
        (by_part,), (by_segment,), (bytes_of_part,) = (answers for _, answers in waiting_for)
        assert {by_part.status_code, by_segment.status_code, bytes_of_part.status_code} == {200}
        assert reached(by_segment.text)[0] > segment
        assert hinted in by_part.text
        assert by_part.headers["cache-control"] == "public, max-age=6"
        assert client.get(f"/live.mp4/hls/{hinted}").content == bytes_of_part.content
        again = client.get(wanted[0]).text
        assert reached(again) >= reached(by_part.text)
    whole = fragdex.package(fragdex.index(WHOLE, exact=True), source=WHOLE, segment_duration=1)
    assert whole[hinted].read() == bytes_of_part.content


def test_a_title_is_made_by_one_thread_at_a_time(tmp_path):
    path, whole = tmp_path / "live.mp4", movie(40, tracks=2, samples=10, fps=10)
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    path.write_bytes(whole[: starts[6]])
    busy, most, over = threading.Semaphore(1), [], threading.Event()

    class Watched(Titles):
        def _made(self, *given):
            most.append(busy.acquire(blocking=False))
            try:
                return super()._made(*given)
            finally:
                if most[-1]:
                    busy.release()

    titles = Watched(tmp_path, segment_duration=1, growing=FOR_EVER)

    def look():
        while not over.is_set():
            titles.open(("live.mp4",))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for start, stop in pairwise(starts[6:]):
        append(path, whole[start:stop])
        titles.open(("live.mp4",))
    over.set()
    for thread in threads:
        thread.join()
    titles.close()
    assert len(most) > 10
    assert all(most), "two made it at once"


def test_what_a_film_was_is_not_kept_for_its_parts(tmp_path):
    path, whole = tmp_path / "live.mp4", movie(24, tracks=2, samples=10, fps=10)
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    path.write_bytes(whole[: starts[6]])
    parts = set()
    with served(path) as client:
        for start, stop in pairwise(starts[6:]):
            append(path, whole[start:stop])
            listed = re.findall(r'PART:.*URI="(.+?)"', client.get(LIST).text)
            for part in listed:  # the second time from what is prepared
                bytes_of_it = client.get(f"/live.mp4/hls/{part}").content
                assert client.get(f"/live.mp4/hls/{part}").content == bytes_of_it
            parts.update(listed)
        gc.collect()
        films = sum(type(one) is ServedFilm for one in gc.get_objects())
    assert len(parts) > 12
    assert films <= 4, "one for each time that it grew"


def test_early_segments_are_left_out_for_those_who_have_them(path):
    path.write_bytes(WHOLE)
    with served(path) as client:
        full = client.get(LIST).text
        update = client.get(f"{LIST}?_HLS_skip=YES").text
    head, _, rest = update.partition("#EXT-X-SKIP:SKIPPED-SEGMENTS=")
    count, _, rest = rest.partition("\n")
    assert full.startswith(head)
    assert full.endswith(rest)
    left = full[len(head) : -len(rest)]
    assert int(count) == len(re.findall(r"^v1/", left, re.MULTILINE)) > 0
    # six target durations stay
    assert sum(map(float, re.findall(r"#EXTINF:([\d.]+)", rest))) >= 6


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("_HLS_msn=x", "_HLS_msn: expected a whole number"),
        ("_HLS_msn=99", "_HLS_msn: expected at most"),
        ("_HLS_msn=5&_HLS_part=99", "_HLS_part: expected at most"),
        ("_HLS_msn=6&_HLS_part=3", "_HLS_part: expected at most 0"),
        ("_HLS_part=1", "expected _HLS_msn with it"),
        ("_HLS_skip=all", "_HLS_skip: expected YES or v2"),
    ],
)
def test_what_cannot_come_next_is_refused(path, query, says):
    with served(path) as client:
        assert reached(client.get(LIST).text)[0] == 5
        answer = client.get(f"{LIST}?{query}")
    assert (answer.status_code, answer.headers["cache-control"]) == (400, "no-store")
    assert says in answer.text


def test_nobody_waits_for_ever(path):
    with served(path) as client:
        segment, part = reached(client.get(LIST).text)
        answer = client.get(f"{LIST}?_HLS_msn={segment}&_HLS_part={part}")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "nothing was written for 3 s" in answer.text
        hinted = client.get(f"/live.mp4/hls/v1/part-{10**6}.m4s")
        assert hinted.status_code == 404


def test_the_end_wakes_all(path):
    with served(path) as client:
        segment, part = reached(client.get(LIST).text)
        addresses = [
            f"{LIST}?_HLS_msn={segment}&_HLS_part={part}",
            f"{LIST}?_HLS_msn={segment + 1}",
        ]
        waiting_for = [later(client.get, address) for address in addresses]
        quiet(path)
        for thread, _ in waiting_for:
            thread.join()
        # the last parts come first, and then that nothing comes after them
        (last,), (ended,) = (answers for _, answers in waiting_for)
        assert last.text + "#EXT-X-ENDLIST\n" == ended.text
        assert reached(last.text) == (segment + 1, 0)
        assert "#EXT-X-PRELOAD-HINT" not in ended.text
        # who is further behind is led to the end, too
        early = client.get(f"{LIST}?_HLS_msn={segment - 2}&_HLS_part=0").text
        assert reached(early) == (segment, 0)
        assert "#EXT-X-ENDLIST" not in early
        # nobody who has the ended list asks for more, and nobody is refused
        assert client.get(addresses[1]).status_code == 200


def test_who_waits_holds_no_thread_and_all_get_one_list(path):
    async def many(base, segment):
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits) as client:
            address = f"{LIST}?_HLS_msn={segment}"
            waiting_for = [asyncio.create_task(client.get(address)) for _ in range(150)]
            # answered while they wait, of which there are more than threads
            for _ in range(3):
                assert (await client.get(LIST)).status_code == 200
            assert not any(task.done() for task in waiting_for)
            append(path, WHOLE[STARTS[6] : STARTS[8]])
            return await asyncio.gather(*waiting_for)

    with serving(Titles(path.parent, segment_duration=1, growing=FOR_EVER)) as client:
        segment, _ = reached(client.get(LIST).text)
        answers = asyncio.run(many(str(client.base_url), segment))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1


def test_so_many_wait_and_no_more(path, monkeypatch):
    monkeypatch.setattr(waiting, "MOST_WAITING", 2)
    with served(path) as client:
        segment, _ = reached(client.get(LIST).text)
        address = f"{LIST}?_HLS_msn={segment}"
        answers = []
        threads = [later(client.get, address) for _ in range(3)]
        for thread, answer in threads:
            thread.join()
            answers += answer
    texts = [answer.text for answer in answers]
    assert {answer.status_code for answer in answers} == {503}
    assert sum("too many requests wait" in text for text in texts) == 1
