"""HLS and DASH from the indexes of files, made when they are asked for; nothing is stored.

Each video and audio track is a rendition whose segments stand on their own. Playlists, manifest
and segments come from one table, so that what they say of each other is true to the tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from fragdex.errors import BuildError
from fragdex.formats.subsegments import period_of
from fragdex.seeking.model import FragmentIndex
from fragdex.seeking.origin import SourceInfo
from fragdex.seeking.times import TimeLike
from fragdex.views import manifest, playlists
from fragdex.views.init_segment import descriptions_of
from fragdex.views.media import Media, media_of
from fragdex.views.renditions import Rendition, Title, uneven
from fragdex.views.segmentation import cut, reference
from fragdex.views.segments import seconds_of
from fragdex.views.view import View
from fragdex.views.view_sources import Sources

__all__ = ["MANIFEST", "MULTIVARIANT", "Package", "package"]

MULTIVARIANT: Final = "master.m3u8"
MANIFEST: Final = "manifest.mpd"
HLS: Final = "application/vnd.apple.mpegurl"
DASH: Final = "application/dash+xml"
PACKAGED: Final = ("video", "audio")


class Package:
    """The files of a title in HLS and DASH, by their names; made by `package`.

    Names are `master.m3u8`, `manifest.mpd`, and for each rendition `NAME.m3u8`, `NAME/init.mp4`,
    `NAME/TIME.m4s` for the segment that begins at TIME ticks, and for video
    `NAME-iframes.m3u8`.

    Attributes:
        title: the renditions.
        sources: the files, as their indexes know them.
        findings: what keeps players from changing between renditions, as sentences.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(8, samples=5, fps=5)
    >>> made = package(fragdex.index(data), source=data)
    >>> list(made)[:4]
    ['master.m3u8', 'manifest.mpd', 'v1.m3u8', 'v1-iframes.m3u8']
    >>> made["v1/init.mp4"].read()[4:8]
    b'ftyp'
    """

    def __init__(self, title: Title, sources: Sequence[SourceInfo], recipe: Any) -> None:
        self.title, self.sources, self._recipe = title, tuple(sources), recipe

    @property
    def findings(self) -> tuple[str, ...]:
        """What keeps players from changing between renditions."""
        return self._uneven

    @cached_property
    def _uneven(self) -> tuple[str, ...]:
        return uneven(self.title.of("video"))

    @cached_property
    def _renditions(self) -> dict[str, Rendition]:
        return {one.name: one for one in self.title.renditions}

    def __iter__(self) -> Iterator[str]:
        """The names of all files: first those that players ask for first."""
        yield from (MULTIVARIANT, MANIFEST)
        for one in self.title.renditions:
            yield f"{one.name}.m3u8"
            if playlists.has_iframes(one):
                yield f"{one.name}-iframes.m3u8"
            yield f"{one.name}/init.mp4"
            yield from (f"{one.name}/{segment.time}.m4s" for segment in one.segments)

    def __getitem__(self, name: str) -> View:
        """A file as a view.

        Raises:
            KeyError: the title has no such file.
        """
        if name == MULTIVARIANT:
            return self._text(HLS, name, lambda: playlists.multivariant(self.title))
        if name == MANIFEST:
            return self._text(DASH, name, lambda: manifest.write(self.title))
        head, _, tail = name.partition("/")
        if tail:
            return self._media(head, tail)
        bare = head.removesuffix(".m3u8")
        one = self._renditions.get(bare.removesuffix("-iframes"))
        if one is None or bare == head:
            raise KeyError(name)
        if bare.endswith("-iframes"):
            if not playlists.has_iframes(one):
                raise KeyError(name)
            return self._text(HLS, name, lambda: playlists.iframes(one))
        return self._text(HLS, name, lambda: playlists.media(one))

    def _media(self, rendition: str, name: str) -> View:
        one = self._renditions.get(rendition)
        if one is None:
            raise KeyError(f"{rendition}/{name}")
        recipe = [self._recipe, rendition]
        if name == "init.mp4":
            init = one.made.init
            return View(one.made.media_type, [one.source], [recipe, name], [len(init)], _only(init))
        stem = name.removesuffix(".m4s")
        segment = one.at(int(stem)) if stem != name and stem.isascii() and stem.isdigit() else None
        if segment is None or str(segment.time) != stem:
            raise KeyError(f"{rendition}/{name}")
        return one.made.view(segment.number, one.source, recipe)

    def _text(self, media_type: str, name: str, write: Callable[[], bytes]) -> View:
        text = write()
        return View(media_type, self.sources, [self._recipe, name], [len(text)], _only(text))


def package(
    indexes: FragmentIndex | Iterable[FragmentIndex],
    *,
    source: Any = None,
    seconds: TimeLike | None = 4,
    tracks: Iterable[int] | None = None,
) -> Package:
    """A title in HLS (RFC 8216) and DASH (ISO/IEC 23009-1), with nothing stored.

    Args:
        indexes: of one file, or of several that are renditions of one title. Each video and audio
            track is a rendition.
        source: the media, in any form that `fragdex.open_source` takes, one for each index; None:
            the files that they were made from. Only their moovs are read here.
        seconds: wanted length of a segment; None: one for each sync sample. Segments begin at
            sync samples of the video, audio is cut at the nearest access unit.
        tracks: track ids; None: all video and audio.

    Raises:
        ValueError: a length is none.
        BuildError: there is no video and no audio, or a track cannot be made into fragments; the
            message says why.
        NoSyncSample: a track has no sync sample.
        InexactIndex: an index does not know its samples.
        SourceError: a source cannot be read, or changed since it was indexed.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(4, tracks=2)
    >>> made = package(fragdex.index(data), source=data)
    >>> [one.name for one in made.title.renditions]
    ['v1', 'a1']
    """
    given = [indexes] if isinstance(indexes, FragmentIndex) else list(indexes)
    length = seconds_of(seconds)
    several = source if isinstance(source, (list, tuple)) or source is None else [source]
    wanted = None if tracks is None else set(tracks)
    found: list[tuple[Media, bytes, SourceInfo]] = []
    with Sources([index.source for index in given], several) as sources:
        for number, index in enumerate(given):
            period = period_of(index, None)
            init = b"".join(sources.source(number).read(part) for part in period.init)
            for track in period.tracks:
                if track.kind not in PACKAGED or not track.timescale or track.sample_count == 0:
                    continue
                if wanted is None or track.id in wanted:
                    media = media_of(track, size=index.source.size)
                    found.append((media, init, index.source))
    if not found:
        raise BuildError("there are no samples of video or audio to package")
    ids = [one.track.id for one, _, _ in found]
    recipe = ["package", "all" if length is None else str(length), ids]
    return Package(Title(tuple(_renditions(found, length))), [i.source for i in given], recipe)


def _renditions(
    found: Sequence[tuple[Media, bytes, SourceInfo]], length: Fraction | None
) -> Iterator[Rendition]:
    lead = reference([media for media, _, _ in found])
    begins = min(
        Fraction(max(int(media.presentation.min()), 0), media.track.timescale)
        for media, _, _ in found
    )
    names: set[str] = set()
    for kind in PACKAGED:
        mine = [one for one in found if one[0].track.kind == kind]
        for number, (media, init, source) in enumerate(mine, 1):
            # video has its own key frames; all else follows the first video
            pace = [media] if kind == lead.track.kind else [lead, media]
            edges = cut(pace, length, pace[0])[-1]
            described = descriptions_of(init, media)
            title = _title(media, number)
            while title in names:
                title += f" ({number})"
            names.add(title)
            yield Rendition(
                f"{kind[0]}{number}",
                title,
                source,
                media,
                init,
                _without_empty(edges),
                begins,
                described,
            )


def _without_empty(edges: Any) -> Any:
    """Cuts between which there is a sample: a playlist names no segment without one."""
    return np.unique(edges)


def _title(media: Media, number: int) -> str:
    info = media.track.info
    if info.title:
        return info.title
    if media.track.kind == "video":
        return f"{info.width}x{info.height}" if info.width and info.height else f"video {number}"
    return info.language or f"audio {number}"


def _only(data: bytes) -> Callable[[int], list[bytes]]:
    return lambda _: [data]
