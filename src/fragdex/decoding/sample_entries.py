"""What an initialization segment says of a track: sample entries, and what sets up decoders."""

from __future__ import annotations

import numpy as np

from fragdex.boxes import Box, build, find, find_all, parse
from fragdex.errors import InexactIndex, UndecodableMedia
from fragdex.formats.clip_samples import described
from fragdex.fragments.table import FragmentFlags, Int64
from fragdex.indexing.samples import read_moof
from fragdex.seeking.track import TrackIndex
from fragdex.sources import Source

__all__ = ["TrackSetup"]

_CONFIGURATIONS = ("avcC", "hvcC", "vvcC", "av1C", "vpcC", "esds", "mvcC", "lhvC")


class TrackSetup:
    """What an initialization segment says of a track.

    Attributes:
        init: ftyp and moov.
        track: track_ID.
        several: whether it has more than one sample entry.

    >>> TrackSetup(b"", 1).of_decoder(1)
    b''
    """

    def __init__(self, init: bytes, track: int) -> None:
        self.init, self.track = init, track
        self._boxes = parse(init)
        has_moov = find(self._boxes, "moov") is not None
        traks = find_all(self._boxes, "moov/trak") if has_moov else ()
        self._trak = next((trak for trak in traks if _id(trak) == track), None)
        self._stsd = None if self._trak is None else self._trak.find("mdia/minf/stbl/stsd")
        self.several = self._stsd is not None and len(self._stsd.children) > 1
        self._of_decoder: dict[int, bytes] = {}

    def entries(self, track: TrackIndex, count: int, source: Source) -> Int64 | None:
        """sample_description_index of each sample, in decode order; None: there is one entry.

        Of entries that are equal to decoders, that of the first. Where a track has several and its
        samples are in fragments, every moof is read: the index does not say (tfhd, ISO/IEC
        14496-12, 8.8.7).

        Args:
            track: of an index that has its samples.
            count: how many there are.
            source: the file.

        Raises:
            InexactIndex: the moofs have other samples than the index.
            And what reading the source raises.
        """
        if not self.several:
            return None
        found = self.entries_of(track, 0, len(track.fragments), source)
        if len(found) != count:
            raise InexactIndex(
                f"the moofs have {len(found)} samples of track {self.track}, the index {count}",
                advice="build the index again",
            )
        return None if (found == found[:1]).all() and found[:1] == [1] else found

    def entries_of(self, track: TrackIndex, start: int, stop: int, source: Source) -> Int64:
        """The same of the samples of rows of the fragment table, up to and without `stop`."""
        table = track.fragments.rows(slice(start, stop))
        if self._trak is None or not self.several:
            return np.ones(int(table.sample_count.sum()), np.int64)
        virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
        parts = []
        if virtual.any():
            rows = table.rows(virtual)
            first, count = int(rows.sample_start[0]), int(rows.sample_count.sum())
            parts.append(described(self._trak, first + np.arange(count)))
        trexs = (box for box in find_all(self._boxes, "moov/mvex/trex") if "track_ID" in box)
        trex = next((box for box in trexs if box["track_ID"] == self.track), None)
        default = 1 if trex is None else int(trex["default_sample_description_index"])
        offsets = table.moof_offset[~virtual].tolist()
        parts += [_of_moof(read_moof(source, offset), self.track, default) for offset in offsets]
        found: Int64 = np.concatenate(parts) if parts else np.ones(0, np.int64)
        numbers, place = np.unique(found, return_inverse=True)
        first_of: dict[bytes, int] = {}
        same = [first_of.setdefault(self.of_decoder(n), n) for n in numbers.tolist()]
        chosen: Int64 = np.array(same, np.int64)[place]
        return chosen

    def decode_alike(self, one: int, other: int) -> bool:
        """Whether what one entry sets up decodes the samples of the other, too.

        They have the same configuration (avcC, hvcC and so on), and differ in what is shown:
        colours, the shape of pixels. Where samples that refer to others change their entry, the
        decoder goes on.
        """
        sets = [self._configuration(entry) for entry in (one, other)]
        return bool(sets[0]) and sets[0] == sets[1]

    def _configuration(self, entry: int) -> list[bytes]:
        if self._stsd is None or not 1 <= entry <= len(self._stsd.children):
            return []
        boxes = self._stsd.children[entry - 1].children
        return [self.init[box.offset : box.stop] for box in boxes if box.type in _CONFIGURATIONS]

    def of_decoder(self, entry: int) -> bytes:
        """What sets up the decoder of a sample entry: equal for tracks that may share decoders.

        All that FFmpeg takes for a decoder, and no lengths and rates, which each film has its own
        of: brands, matrices, the size shown, the handler, the sample entry without its btrt.
        """
        if entry not in self._of_decoder:
            self._of_decoder[entry] = self._decoder_bytes(entry)
        return self._of_decoder[entry]

    def init_of(self, entry: int) -> bytes:
        """The initialization segment with one sample entry of the track alone.

        Raises:
            UndecodableMedia: there is no such entry.
        """
        return b"".join(
            build(_only(box, self.track, entry)) if box.type == "moov" else build(box)
            for box in self._boxes
        )

    def _decoder_bytes(self, entry: int) -> bytes:
        trak, stsd = self._trak, self._stsd
        hdlr, tkhd = (None if trak is None else trak.find(path) for path in ("mdia/hdlr", "tkhd"))
        mvhd, ftyp = (find(self._boxes, path) for path in ("moov/mvhd", "ftyp"))
        if (
            stsd is None or hdlr is None or tkhd is None or mvhd is None
            or not 1 <= entry <= len(stsd.children)
        ):  # fmt: skip
            return self.init
        chosen = stsd.children[entry - 1]
        start, parts = chosen.offset, []
        for rates in (child for child in chosen.children if child.type == "btrt"):
            parts.append(self.init[start : rates.offset])
            start = rates.stop
        parts.append(self.init[start : chosen.stop])
        parts += [self.init[box.offset : box.stop] for box in (hdlr, ftyp) if box is not None]
        shown = (*(tkhd.get(name) for name in ("matrix", "width", "height")), mvhd.get("matrix"))
        return b"".join((*parts, repr(shown).encode()))


def _only(moov: Box, track_id: int, entry: int) -> Box:
    path = ("mdia", "minf", "stbl", "stsd")

    def changed(box: Box, names: tuple[str, ...]) -> Box:
        if not names:
            if not 1 <= entry <= len(box.children):
                raise UndecodableMedia(f"track {track_id} has no sample entry {entry}")
            return box.replace(children=[box.children[entry - 1]], entry_count=1)
        children = [changed(b, names[1:]) if b.type == names[0] else b for b in box.children]
        return box.replace(children=children)

    children = [
        changed(box, path) if box.type == "trak" and _id(box) == track_id else box
        for box in moov.children
    ]
    return moov.replace(children=children)


def _of_moof(data: bytes, track_id: int, default: int) -> Int64:
    parts = [np.ones(0, np.int64)]
    for traf in find_all(parse(data), "moof/traf"):
        tfhd = traf.find("tfhd")
        if tfhd is None or tfhd.get("track_ID") != track_id:
            continue
        entry = tfhd.get("sample_description_index") or default
        runs = (box for box in traf.children if box.type == "trun")
        count = sum(int(trun.get("sample_count") or 0) for trun in runs)
        parts.append(np.full(count, entry, np.int64))
    return np.concatenate(parts)


def _id(trak: Box) -> int:
    tkhd = trak.find("tkhd")
    return int(tkhd["track_ID"]) if tkhd is not None and "track_ID" in tkhd else 0
