"""Whole renders are cut by budget: pixels of all frames together, and time of work."""

from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from fragdex.errors import InvalidRequest, PageFailed
from fragdex.rendering.browser.model import PageFacts
from fragdex.rendering.pool import ChildPool, PageSource
from fragdex.service.records.tables import render_parts, renders
from fragdex.service.renders import slices, worker
from service.serving import API, serving

HD = 1920 * 1080


@pytest.fixture
def served(tmp_path):
    with serving(
        tmp_path, max_render_pixel_frames=100 * HD, max_render_work_seconds=10, max_render_ms=60_000
    ) as served:
        yield served


def ask(served, **fields):
    body = {"html": "<p>", "width": 1920, "height": 1080, "fps": 25, **fields}
    return served.client.post(f"{API}/renders", json=body)


def row_of(served, answer):
    with served.context.database.read() as connection:
        mine = renders.c.id == answer.json()["id"]
        return connection.execute(sa.select(renders).where(mine)).one()


def test_a_film_of_too_many_pixels_is_refused_with_both_numbers(served):
    assert ask(served, duration_ms=4000).status_code == 201  # 100 frames
    refused = ask(served, duration_ms=4040)
    assert refused.status_code == 422
    problem = refused.json()
    assert problem["limit"] == 100 * HD
    assert f"{HD} × 101 = {101 * HD}" in problem["detail"]
    assert "/duration_ms" in refused.text
    # fewer pixels, or fewer frames a second: the same length does not matter
    assert ask(served, duration_ms=8000, width=960).status_code == 201
    assert ask(served, duration_ms=8000, fps=12).status_code == 201
    assert ask(served, duration_ms=8000, to_ms=4000).status_code == 201
    assert ask(served, from_ms=10_000, to_ms=14_040).status_code == 422
    assert ask(served, duration_ms=2000, scale=1.5).status_code == 422
    assert ask(served, duration_ms=16_000, scale=0.5).status_code == 201
    assert ask(served, duration_ms=None).status_code == 201
    assert ask(served, duration_ms=None, fps=None, output={"container": "png"}).status_code == 201


def test_a_film_that_is_too_long_is_told_how_long_it_was_to_be(served):
    refused = ask(served, duration_ms=60_001, fps=1, width=2, height=2)
    assert refused.status_code == 422
    assert refused.json()["limit"] == 60_000
    assert "60001" in refused.json()["detail"]


@pytest.mark.parametrize(("duration_ms", "allowed"), [(4000, True), (4040, False)])
def test_what_the_page_decides_is_held_to_the_same_budget(
    served, monkeypatch, duration_ms, allowed
):
    row = row_of(served, ask(served, width=None, height=None, duration_ms=None))
    facts = PageFacts(1920, 1080, duration_ms, False, "", True)
    monkeypatch.setattr(ChildPool, "look", lambda *_, **__: facts)
    workspace = PageSource("", site=None)
    if allowed:
        assert slices.part(served.context, row, workspace, lambda: None).frames == 100
        return
    with pytest.raises(InvalidRequest, match="over the limit"):
        slices.part(served.context, row, workspace, lambda: None)


def test_work_on_a_render_ends_with_its_budget(served):
    context = served.context
    row = row_of(served, ask(served, duration_ms=4000))
    job = SimpleNamespace(check=lambda: None)

    def spend(**seconds):
        with context.database.write() as connection:
            number = connection.scalar(sa.select(sa.func.count()).select_from(render_parts))
            new = {"render_id": row.id, "number": number, "first": number, "stop": number + 1}
            connection.execute(render_parts.insert().values(**new, seconds=seconds))

    worker._Budget(context, job, row).check()
    spend(start=1.0, capture=4.0, encode=100.0)  # encoding goes on beside the rest
    spend()
    worker._Budget(context, job, row).check()
    spend(replay=5.5)
    with pytest.raises(PageFailed, match="more than 10 s of work"):
        worker._Budget(context, job, row).check()
