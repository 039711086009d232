"""Renders of a service that works on them, and the numbers that are read off them."""

import io

import av

from fragdex.rendering.fields import rate_of
from rendering.frames.numbers import numbers_page, plane, read_rows
from service.working import Slices

SMALL = {"width": 320, "height": 180}


def numbers(fps=30):
    """A page that shows the number of each frame."""
    return numbers_page(rate_of(fps))


class Renderer(Slices):
    """Asks a service for renders."""

    family = "/renders"
    counted = "frames"

    def begin(self, html=None, site=None, **more):
        """The id of a render that is queued."""
        id = self.asked(html=html, **{**SMALL, **more})["id"]
        if site is not None:
            answer = self.client.post(self.path(f"/{id}/upload"), content=site)
            assert answer.status_code == 201, answer.text
        return id

    def rendered(self, *args, **more):
        """The record and the bytes of a render that is complete."""
        record = self.ended(self.begin(*args, **more))
        assert record["status"] == "complete", record
        answer = self.client.get(self.path(f"/{record['id']}.mp4"))
        assert answer.status_code == 200
        return record, answer.content


def numbers_of(film):
    """The numbers that the frames of a film show, by the page's clock."""
    with av.open(io.BytesIO(film)) as container:
        return [read_rows(plane(frame))[0] for frame in container.decode(video=0)]
