"""Videos beyond the service, named by https URLs that the operator allows, read by ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np

import fragdex
from fragdex import ByteRange, Index, Source
from fragdex.errors import InvalidRequest, SourceChanged, SourceError, Unprocessable
from fragdex.lru_cache import SingleFlightCache
from fragdex.rendering.page_media.opening import OutsideSource
from fragdex.rendering.site import Blocked
from fragdex.rendering.web import AllowedHosts
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX, sampled
from fragdex.service.indexing.isolated import in_turn, run_in_child
from fragdex.views.media import Media
from fragdex.views.package import Package
from fragdex.views.renditions import Rendition
from fragdex.views.segmentation import cut
from fragdex.views.view import View

SCRUB: Final = "scrub"
"""The rendition of key frames alone, for small pictures while scrubbing."""
_SCRUB_SECONDS: Final = 30
_IN_MEMORY: Final = 16
_HEAD: Final = ByteRange(0, 16)

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class RemoteTitle:
    """A video beyond the service.

    Attributes:
        url: where it is.
        index: of it, every sample known.
        open: opens it.
    """

    url: str
    index: Index
    open: Callable[[], Source]

    @cached_property
    def package(self) -> Package:
        """Its tracks as renditions; raises as `fragdex.package`."""
        with self.open() as source:
            return fragdex.package(self.index, source=source)

    @cached_property
    def renditions(self) -> dict[str, Rendition]:
        """By their names: those of `package`, and `scrub` where there is video."""
        renditions = {one.name: one for one in self.package.title.renditions}
        video = self.package.title.of("video")
        return renditions | ({SCRUB: _key_frames_of(video[0])} if video else {})

    def part(self, rendition: str, number: int | None) -> View:
        """A segment, by its number from 1; None: the initialization segment.

        Raises:
            KeyError: there is no such rendition or segment.
        """
        one = self.renditions[rendition]
        recipe = ["remote", rendition]
        if number is None:
            init = one.made.init
            return View(
                one.made.media_type, [one.source], [recipe, "init"], [len(init)], lambda _: [init]
            )
        if not 1 <= number <= len(one.segments):
            raise KeyError(number)
        return one.made.view(number - 1, one.source, recipe)

    @contextmanager
    def sources(self) -> Iterator[list[Any]]:
        """The video, open."""
        with self.open() as source:
            yield [source]


class RemoteTitles(SingleFlightCache[RemoteTitle]):
    """The remote videos that a process keeps; a video that changed is indexed again."""

    def __init__(self) -> None:
        super().__init__("the file at this URL")
        self._hosts: AllowedHosts | None = None

    def use(
        self,
        context: ServiceContext,
        tenant_id: str,
        url: str,
        do: Callable[[RemoteTitle], Found],
    ) -> Found:
        """What comes of the video at a URL; done again, once, where the video has changed.

        Raises:
            InvalidRequest: the URL may not be requested.
            Unprocessable: it cannot be read, or packaged.
            FragdexError: as `do`, `run_isolated` and `SingleFlight.do`.
        """
        if self._hosts is None:
            settings = context.settings
            self._hosts = AllowedHosts(settings.render_hosts, max_bytes=settings.max_outside_bytes)
        hosts = self._hosts
        try:
            hosts.check(url)
        except Blocked as error:
            raise InvalidRequest(error.reason, pointer="url") from None

        def make() -> RemoteTitle:
            return _made(context, tenant_id, hosts, url)

        try:
            for _ in range(2):
                # among the tenant's own: videos of one wait for its turn
                title = self.get_once(url, _IN_MEMORY, make, among=tenant_id)
                try:
                    return do(title)
                except SourceChanged:
                    self.drop(url)
            raise Unprocessable("the media change while they are read")
        except Blocked as error:
            raise Unprocessable(f"the media cannot be read: {error.reason}") from None
        except SourceError as error:
            raise Unprocessable(f"the media cannot be read: {error.message}") from error


def _made(context: ServiceContext, tenant_id: str, hosts: AllowedHosts, url: str) -> RemoteTitle:
    def opened() -> Source:
        source = OutsideSource(hosts, url)
        source.max_bytes = context.settings.max_outside_bytes
        return source

    with opened() as source:
        source.read_up_to(_HEAD)  # tells size and entity tag
        size, etag = source.size, source.etag
    if size is None:
        raise Unprocessable("the media cannot be read: the server does not tell their size")

    with OwnFolder() as folder, in_turn(tenant_id):
        path = folder / INDEX
        run_in_child(opened, size, sampled, {INDEX: path}, name=url, etag=etag)
        return RemoteTitle(url, fragdex.open_index(path), opened)


def _key_frames_of(rendition: Rendition) -> Rendition:
    """A rendition of the key frames alone, each shown until the next one."""
    media = rendition.media
    shown = media.presentation
    numbers = np.flatnonzero(media.samples.sync)
    rises = np.diff(np.maximum.accumulate(shown[numbers]), prepend=shown[numbers[0]] - 1) > 0
    numbers = numbers[rises]
    times = shown[numbers]
    hidden = max(0, -int(times[0]))
    alone = Media(
        media.track,
        media.source,
        media.samples.rows(numbers),
        times,
        times + hidden,
        np.diff(times, append=max(media.end, int(times[-1]) + 1)),
        hidden,
        media.end,
        finer=media.finer,
    )
    described = rendition.descriptions
    return replace(
        rendition,
        name=SCRUB,
        title=SCRUB,
        media=alone,
        cuts=cut([alone], Fraction(_SCRUB_SECONDS))[0],
        descriptions=None if described is None else described[numbers],
    )
