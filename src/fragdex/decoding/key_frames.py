"""Key frames alone: of each, the bytes of its own sample are read and decoded, and no others."""

from __future__ import annotations

from fragdex.byterange import ByteRange
from fragdex.decoding.pictures import is_much_smaller
from fragdex.decoding.video_track import Picture, VideoTrack
from fragdex.errors import NoSyncSample, SourceChanged, TruncatedInput, UnverifiedSync
from fragdex.indexing.access import CannotTell, SampleBytes, access_of, every_sample
from fragdex.seeking.model import Index
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike, exact_time, floor_ticks
from fragdex.seeking.track import Track
from fragdex.sources import SourceLike

FIRST_BYTES = 128 << 10
"""Bytes of a fragment that are read with its moof, where the index holds no samples."""
MOST_SAMPLE = 256 << 20
"""Bytes of a sample; a picture of 8192 × 8192 at 16 bits has more only if it is not compressed."""
EARLIER = 2
"""Sync samples before the nearest one, tried where it gives no picture."""


def nearest_sync(track: Track, time: TimeLike) -> Hit:
    """The sync sample that is shown nearest to a time; of two as near, the earlier one.

    Raises: as `Track.seek`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> track = fragdex.index(movie(fragments=3, samples=5, fps=25)).track(1)
    >>> nearest_sync(track, 0.29).time.seconds, nearest_sync(track, 0.31).time.seconds
    (0.2, 0.4)
    """
    before = track.seek(time)
    target = floor_ticks(time, track.timescale, track.shift)
    after = _next_sync(track, target)
    if after is None or (before.cts <= target and target - before.cts <= after - target):
        return before
    return track.seek(track.presentation(after))


def _next_sync(track: Track, target: int) -> int | None:
    """Composition time of the first sync sample after a time, in ticks; None: there is none."""
    sync = track.sync_samples
    place = int(sync.cts.searchsorted(target, side="right"))
    if place:
        first, step, count = (
            int(column[place - 1]) for column in (sync.cts, sync.step, sync.count)
        )
        number = (target - first) // step + 1 if step > 0 else count
        if number < count:
            return first + number * step
    return int(sync.cts[place]) if place < len(sync) else None


class KeyFrameReader(VideoTrack):
    """Key frames of one track; whatever else the file holds is neither read nor decoded.

    Args:
        widest: pixels that the longer side of what is made of its pictures has at most; None: not
            known. Where that is a third of the picture's shorter side or less, edges of blocks are
            not smoothed, which nobody would see.
        And errors and what else is given as of `VideoTrack`.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> KeyFrameReader(fragdex.index(data), data, track=7)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no track 7: expected one of 1, found 7
    """

    def __init__(
        self,
        index: Index,
        source: SourceLike,
        *,
        track: int | None = None,
        init: bytes | None = None,
        widest: int | None = None,
    ) -> None:
        super().__init__(index, source, track=track, init=init)
        info = self.track.info
        shorter = min(info.width or 0, info.height or 0)
        if widest is not None and is_much_smaller((widest, widest), (shorter, shorter)):
            self._options = {"skip_loop_filter": "all"}
            self._context.options = {**self._context.options, **self._options}

    def near(self, time: TimeLike) -> Picture:
        """The key frame that is shown nearest to a time.

        Where it cannot be decoded, or is none whatever the file says, an earlier one.

        Raises:
            UndecodableMedia: neither it nor the ones before it can be decoded.
            NoSyncSample: there is none in the track.
            InexactIndex: neither the index nor the file tells the samples.
            ValueError: the time is NaN, or no time at all.
            And what reading the source raises.
        """
        hit = nearest = nearest_sync(self.track, time)
        for _ in range(EARLIER + 1):
            picture = self.of(hit)
            if picture is not None:
                return picture
            earlier = (hit.cts - 1 + self.track.shift) / self.track.timescale
            try:
                hit = self.track.seek(earlier, verified=True, source=self._ahead)
            except (NoSyncSample, UnverifiedSync, TruncatedInput, SourceChanged):
                break  # SourceChanged: the file is shorter than what the index describes
            if hit.clamped:
                break
        picture = self.of(nearest, believe=True)
        if picture is None:
            raise self._undecodable(float(exact_time(time)))
        return picture

    def of(self, hit: Hit, *, believe: bool = False) -> Picture | None:
        """The key frame of a seek; None where its sample is none, or is damaged or missing.

        Args:
            believe: decode what the file says is a key frame, whatever its bytes say.

        Raises: as `near`.
        """
        table = self._table(hit.fragment)
        places = ((table.cts == hit.cts) & table.sync).nonzero()[0]
        if not len(places):
            return None
        place = int(places[0])
        offset, size = int(table.offset[place]), int(table.size[place])
        if offset < 0 or not 0 < size <= MOST_SAMPLE:
            return None
        try:
            data = self._ahead.read(ByteRange.of(offset, size))
        except TruncatedInput:
            return None
        if not believe and not self._is_key(data):
            return None
        seconds = hit.time.seconds
        self._begins = True
        packet = self._packet(data, table, place, self._entry_of(hit.fragment, place))
        frames = self._frames(packet, seconds)
        frames += self._frames(None, seconds)
        return self._picture(hit.cts, frames[0]) if frames else None

    def _before_samples(self, row: int) -> None:
        if not self.track.has_samples:
            self._take_ahead(row, FIRST_BYTES, whole=False)

    def _is_key(self, data: bytes) -> bool:
        """Whether decoding can start at a sample, as far as its bytes say."""
        info = self.track.info
        if every_sample(info.kind, info.format, info.codec):
            return True
        try:
            return bool(
                access_of(SampleBytes.of(data), info.format, info.codec, info.nal_length_size)
            )
        except CannotTell:
            return True
