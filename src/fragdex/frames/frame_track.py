"""A track of pictures that is open: its source, samples, numbers and decoders."""

from __future__ import annotations

from fragdex.decoding.open_track import TrackSetup, decodable
from fragdex.decoding.video_track import chosen_track
from fragdex.errors import InexactIndex, UndecodableMedia
from fragdex.fragments.table import SampleTable
from fragdex.frames.decode_runs import Coding
from fragdex.frames.decoders import DecoderPool, Decoders
from fragdex.indexing.access import can_start
from fragdex.indexing.making import index as index_of
from fragdex.indexing.making import index_source, read_init
from fragdex.indexing.moov import plain_init
from fragdex.indexing.reading import Head
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import Numbering, Order, SyncStarts, reorder_depth
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.track import Track
from fragdex.sources import Source


class FrameTrack:
    """A track of pictures that is open.

    Attributes:
        source: read by one thread at a time.
        samples: all of them, in decode order.
        numbering: which of them are frames.

    Args:
        index: of it; None: it is made.
        track: track_ID, or a track of the index; None: the first with pictures.
        period: number of the period, in a file of several.
        init: the initialization segment; None: that of the file.
        pool: where its decoders wait.

    Raises:
        TrackNotFound, UndecodableMedia, MissingExtra: as `VideoTrack`.
        SourceChanged: the index is of another file.
        And what indexing and reading the source raise.
    """

    def __init__(
        self,
        source: Source,
        index: Index | None,
        track: int | Track | None,
        *,
        period: int | None,
        init: bytes | None,
        order: Order,
        hidden: bool,
        pool: DecoderPool,
        device: str | None = None,
        stays: bool = False,
    ) -> None:
        self.source = source
        head = Head()
        if index is None:
            known = None if init is None else read_init(init)
            index = index_source(source, known, exact=True, partial=True, head=head)
        elif index.complete:
            index.file.refuse_other(
                source.name, size=source.size, etag=source.etag, identity=source.identity
            )
            if index.file.grows_as is None:
                source.expect(index.file.size, index.file.etag)
        self._period = period
        if not isinstance(track, Track):
            index = self._of_period(index)
        chosen = track if isinstance(track, Track) else chosen_track(index, track)
        if not chosen.has_clear_samples:
            raise UndecodableMedia(f"the pictures of track {chosen.id} are encrypted")
        self.index, self.track = decodable(index, chosen, source, init)
        self.samples = self._all_samples(init)
        if init is None:
            init = head.read_again(source, self.index.periods[self.track.period].init)
        init = plain_init(init)
        setup = TrackSetup(init, self.track.id)
        entries = setup.entries(self.track, len(self.samples), source)
        info = self.track.info
        self.decoders = Decoders(
            setup,
            self.track.codec,
            pool,
            several=entries is not None,
            depth=reorder_depth(self.samples.cts),
            device=device,
            stays=stays,
        )
        self.coding = Coding(
            info.format, info.nal_length_size, self.samples.cts, self.samples.sync, entries
        )
        size = source.size if source.size is not None else self.index.file.size
        self.numbering = Numbering(self.track, self.samples, size=size, order=order, hidden=hidden)
        self.starts = SyncStarts(self.samples)

    def go_on(self, source: Source) -> None:
        """Read from here: the same file, opened again."""
        was = self.source
        if self.index.complete:
            FileInfo(was.name, was.size, None, was.etag, was.mtime_ns).refuse_other(
                source.name, size=source.size, etag=source.etag, mtime_ns=source.mtime_ns
            )
            source.expect(was.size, was.etag)
        self.source = source

    def is_access(self, data: bytes | None) -> bool:
        """Whether decoding can begin at a sample, as far as its bytes say."""
        return data is not None and can_start(self.track.info, data)

    def _of_period(self, index: Index) -> Index:
        several = self._period is not None and len(index.periods) > 1
        return index.of_period(self._period or 0) if several else index

    def _all_samples(self, init: bytes | None) -> SampleTable:
        try:
            if self.track.has_samples:
                return self.track.samples
            raise InexactIndex("the samples are read from the open source")
        except InexactIndex:
            self.index = self._of_period(index_of(self.source, exact=True, init=init))
            self.track = self.index.periods[self.track.period].track(self.track.id)
            return self.track.samples
