"""What is declared is analysed when it is needed: once, whoever needs it, and all of it can be."""

import threading

import pytest
from fastapi.exceptions import FastAPIError

from fragdex.service.app import ROUTERS
from fragdex.service.web import documents
from fragdex.service.web.fields import ApiModel
from fragdex.service.web.routing import ApiRoute, HeadRoute


def count():
    """Takes nothing."""
    return 0


def test_every_route_can_be_analysed():
    """Those of the document are analysed for its test too; these are all of them."""
    for router in (*ROUTERS, documents.router):
        for route in router.routes:
            route.analyse()
            assert route.dependant.call is route.endpoint


def test_a_route_that_cannot_be_analysed_says_so_every_time():
    def takes(lock: threading.Lock) -> None:
        """Takes what FastAPI knows nothing of."""

    route = HeadRoute("/a", takes)
    for _ in range(2):
        with pytest.raises(FastAPIError):
            route.analyse()


def test_a_route_is_analysed_once_by_threads_that_need_it_at_once(monkeypatch):
    analysed = []
    handler = HeadRoute.get_route_handler
    monkeypatch.setattr(
        HeadRoute,
        "get_route_handler",
        lambda route: analysed.append(route) or handler(route),
    )
    route = HeadRoute("/a", count)
    ready, analyses = threading.Barrier(8), []

    def ask():
        ready.wait()
        analyses.append((route.app, route.dependant))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert analysed == [route]
    assert analyses == [(route.app, route.dependant)] * 8


def test_looking_whether_a_route_matches_analyses_nothing():
    route = ApiRoute("/a/{id}", count)
    scope = {"type": "http", "method": "GET", "path": "/a/1", "headers": []}
    assert route.matches(scope)[1]["path_params"] == {"id": "1"}
    assert route.path_format == "/a/{id}"
    assert "dependant" not in route.__dict__
    assert not hasattr(route, "nothing")


def test_a_model_is_made_by_threads_that_need_it_at_once():
    class Inner(ApiModel):
        number: int

    class Outer(ApiModel):
        inner: list[Inner]

    ready, contents = threading.Barrier(8), []

    def use():
        ready.wait()
        contents.append(Outer.model_validate({"inner": [{"number": "1"}]}).model_dump())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contents == [{"inner": [{"number": 1}]}] * 8
