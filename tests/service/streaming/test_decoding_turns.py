"""Pictures are made a few at a time; tenants take turns, and who waits holds no thread."""

import asyncio

import pytest

from fragdex.errors import Unavailable
from fragdex.service.streaming import derivatives
from fragdex.service.streaming.derivatives import DecodingTurns


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_tenant_with_many_requests_does_not_keep_others_waiting():
    async def tried():
        turns, order, ends = DecodingTurns(), [], {}

        async def one(name):
            async with turns.turn(name[0]):
                order.append(name)
                ends[name] = asyncio.get_running_loop().create_future()
                await ends[name]

        tasks = [asyncio.ensure_future(one(name)) for name in ("a1", "a2", "a3", "a4", "b1")]
        await settled()
        # alone, a tenant has all there is
        assert order == ["a1", "a2"]
        ends["a1"].set_result(None)
        await settled()
        assert order == ["a1", "a2", "b1"]
        for name in ("a2", "b1"):
            ends[name].set_result(None)
        await settled()
        assert order[3:] == ["a3", "a4"]
        for name in ("a3", "a4"):
            ends[name].set_result(None)
        await asyncio.gather(*tasks)
        assert not turns._waiting
        assert not turns._running.total()

    asyncio.run(tried())


def test_too_many_are_asked_to_come_again_and_who_goes_away_leaves_room(monkeypatch):
    monkeypatch.setattr(derivatives, "MOST_WAITING", 2)

    async def tried():
        turns, ended = DecodingTurns(), asyncio.Event()

        async def one():
            async with turns.turn("a"):
                await ended.wait()

        tasks = [asyncio.ensure_future(one()) for _ in range(4)]
        await settled()
        with pytest.raises(Unavailable):
            await one()
        # one that runs, and one that waits
        for task in (tasks[0], tasks[3]):
            task.cancel()
        await settled()
        assert turns._running.total() == 2
        ended.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not turns._running.total()
        assert not turns._waiting

    asyncio.run(tried())
