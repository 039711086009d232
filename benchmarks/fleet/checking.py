"""Whether a fleet has lost anything, or made anything wrong."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from members import Fleet
from orders import FPS, PATIENCE_S, Orders, frame_numbers, md5_of, words_of

import fragdex
from fragdex.client import NotFound, api

OVER = {"complete", "failed", "cancelled", "ready"}


def wait_for_all(orders: Orders) -> None:
    """Wait until no order is in progress, or nothing has moved for a long time."""
    left = {
        *((api.get_render, id) for id in orders.renders),
        *((api.get_transcription, id) for id in orders.transcriptions),
        *((api.get_file, id) for id, path in orders.files.items() if path.suffix == ".mp4"),
    }
    moved = time.monotonic()
    while left and time.monotonic() - moved < PATIENCE_S:
        for get, id in sorted(left, key=lambda one: one[1]):
            try:
                record: Any = orders.insist(lambda client, get=get, id=id: client.send(get(id)))
            except NotFound:
                left.discard((get, id))
                continue
            if record.status in OVER:
                left.discard((get, id))
                moved = time.monotonic()
        time.sleep(0.3)


def _bytes(orders: Orders, id: str, path: Path) -> bytes:
    """The bytes of a file, as a client receives them."""
    if path.suffix == ".png":
        return orders.insist(lambda client: client.send(api.download_image_file(id)))
    if path.suffix == ".vtt":
        return orders.insist(lambda client: client.send(api.download_caption_file(id)))
    # The samples as they came: tracks are other bytes where a worker had to make them, as of an
    # upload that ended while the store was away.
    request = api.get_file_faststart(id)
    with tempfile.TemporaryFile() as file:
        orders.insist(lambda client: client.download(request, file))
        file.seek(0)
        return file.read()


def _wanted(path: Path) -> bytes:
    """What `_bytes` has to be: of a film, all of its samples behind its moov."""
    if path.suffix != ".mp4":
        return path.read_bytes()
    return fragdex.view(path, "faststart").read()


def files(orders: Orders) -> tuple[list[str], list[str]]:
    """Acknowledged files that are lost, and those whose bytes are others."""
    lost, wrong = [], []
    for id, path in orders.files.items():
        try:
            data = _bytes(orders, id, path)
        except NotFound:
            lost.append(path.name)
            continue
        if md5_of(data) != md5_of(_wanted(path)):
            wrong.append(path.name)
    return lost, wrong


Faults = tuple[list[str], list[str]]
"""What is lost, and what is wrong."""


def _complete(
    orders: Orders, ids: Iterable[str], get: Callable[[str], Any], faults: Faults
) -> Iterator[tuple[str, Any]]:
    """The records of orders that were carried out, by their ids; the others become faults."""
    lost, wrong = faults
    for id in ids:
        request = get(id)
        try:
            record: Any = orders.insist(lambda client, request=request: client.send(request))
        except NotFound:
            lost.append(id)
            continue
        if record.status == "complete":
            yield id, record
        else:
            wrong.append(f"{id} is {record.status}: {record.problem}")


def renders(orders: Orders, duration_ms: int) -> Faults:
    """Renders that are lost, and those that failed or whose frames are others."""
    faults: Faults = [], []
    wanted = list(range(duration_ms * FPS // 1000))
    for id, record in _complete(orders, orders.renders, api.get_render, faults):
        request = api.download_render(id, "mp4")
        got = orders.insist(lambda client, request=request: client.send(request))
        if record.duration_ms != duration_ms or frame_numbers(got) != wanted:
            faults[1].append(f"{id} has other frames")
    return faults


def transcriptions(orders: Orders, words: list[tuple[str, int, int]]) -> Faults:
    """Transcriptions that are lost, and those that failed or whose words are others."""
    faults: Faults = [], []
    for id, _ in _complete(orders, orders.transcriptions, api.get_transcription, faults):
        request = api.download_transcription_json(id)
        got = orders.insist(lambda client, request=request: client.send(request))
        if words_of(got) != words:
            faults[1].append(f"{id} has other words")
    return faults


def store(fleet: Fleet) -> list[str]:
    """What `fragdex db check --contents` finds of the store."""
    done = fleet.run("db", "check", "--contents")
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()[-20:]
