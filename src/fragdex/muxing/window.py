"""The bytes of a window for a decoder: a small MP4, an elementary stream, packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

import numpy as np

from fragdex.boxes import Box, parse
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange, Fetched, plan_reads
from fragdex.errors import BuildError, NoSyncSample, TruncatedInput
from fragdex.fragments.table import Bool, Int64, SampleTable
from fragdex.fragments.track_info import Movie
from fragdex.indexing.access import can_start, family_of
from fragdex.indexing.codecs import Missing, body, decoder_config
from fragdex.indexing.moov import plain_init
from fragdex.muxing.between import between
from fragdex.muxing.census import LeftOut
from fragdex.muxing.elementary_stream import annexb, obu, parameter_sets
from fragdex.muxing.kept import following
from fragdex.muxing.movie import described, traks_of
from fragdex.muxing.plan import Plan, PlannedTrack, one_source
from fragdex.muxing.progressive import clip_movie, unfit
from fragdex.seeking.model import Period
from fragdex.seeking.track import Track
from fragdex.seeking.window import Packet, Window
from fragdex.sources import Source

GAP: Final = 32 << 10
"""Bytes between samples of a remote file that are read for nothing rather than requested twice."""
LOCAL_GAP: Final = 4 << 10
LONGEST_READ: Final = 8 << 20
_UNUSED: Final = ("udta", "meta", "tref", "edts", "mvex", "iods")
"""Boxes of the video's moov that say nothing of these samples."""


Fetch = Callable[[], Fetched]
"""Reads the bytes of a window, or has read them."""


def _mp4(
    window: Window, source: Source, fetch: Fetch, *, keep_times: bool = False,
    init: bytes | None = None,
) -> bytes:  # fmt: skip
    boxes = _boxes(window, source, init)
    data = _data(window, source, fetch)
    return b"".join((_head(window, boxes, keep_times=keep_times)[0], *data))


def _head(
    window: Window, boxes: Sequence[Box], *, keep_times: bool = False
) -> tuple[bytes, list[Box]]:
    """The small file in front of the samples, and its ftyp and moov."""
    part, timescale = _part(window, keep_times), window.timescale
    obstacle = unfit([part], boxes)
    if obstacle:
        raise BuildError(f"a progressive file cannot hold this window: {obstacle}")
    start = Fraction(int(window.ticks[0]), timescale)
    kept = following([(start, start + Fraction(part.duration, timescale))])
    head, _, written = clip_movie(Plan((part,)), boxes, timescale, kept)
    return head, written


def _left_out(
    window: Window, source: Source, fetch: Fetch, *, init: bytes | None = None
) -> tuple[LeftOut, ...]:
    """What the small file lacks of the moov, and of what stands around the samples."""
    _, written = _head(window, _boxes(window, source, init))
    data = init or b"".join(source.read_many(window.init))
    track = window.track
    table = track.fragments
    ends = table.sample_start + table.sample_count
    rows = (table.sample_start <= window.samples.max()) & (ends > window.samples.min())
    stop = int((table.offset + table.size)[rows].max())
    part = ByteRange(int(table.offset[rows].min()), stop)
    movie = Movie(track.movie_timescale, 0, True, (track.info,))
    alone = Period(track.period, window.init, movie, (track,))
    besides = between(alone, source.read, remote=source.remote, part=part)
    plan = Plan((_part(window, keep_times=False),), between=besides)
    why = "a window is a small progressive file of the samples of one track"
    return plan.lacking(parse(plain_init(data)), written, why)


def _annexb(window: Window, source: Source, fetch: Fetch, *, init: bytes | None = None) -> bytes:
    info = window.track.info
    family = family_of(info.format)
    if family is None:
        raise BuildError(
            f"track {info.id} is {info.codec or info.format}, and Annex B is for AVC, HEVC and VVC",
            advice='ask for "mp4" or packets' if info.format != "av01" else "ask for obu",
        )
    size = 4 if info.nal_length_size is None else info.nal_length_size
    return annexb(_with_setup(window, source, fetch, init, parameter_sets), family, size)


def _obu(window: Window, source: Source, fetch: Fetch, *, init: bytes | None = None) -> bytes:
    info = window.track.info
    if info.format not in ("av01", "dav1"):
        raise BuildError(f"track {info.id} is {info.codec or info.format}, and OBUs are of AV1")

    def of_config(entry: Box) -> list[bytes]:
        box = entry.find("av1C")
        return [] if box is None else [body(box)[4:]]

    return obu(_with_setup(window, source, fetch, init, of_config))


def _packets(window: Window, source: Source, fetch: Fetch) -> list[Packet]:
    samples, scale, shift = _samples(window)
    data = _data(window, source, fetch)
    columns = (samples.dts * scale + shift, samples.cts * scale + shift, samples.duration * scale)
    rows = zip(*(c.tolist() for c in (*columns, _keys(window))), data, strict=True)
    return [Packet(*row) for row in rows]


def _configuration(
    window: Window, source: Source, fetch: Fetch, *, init: bytes | None = None
) -> bytes:
    entries = _entries(window, _boxes(window, source, init))
    entry = entries[0][int(entries[1][0]) - 1]
    for code in ("avcC", "hvcC", "vvcC", "av1C", "vpcC"):
        box = entry.find(code)
        if box is not None:
            return body(box)
    esds = entry.find("esds")
    try:
        return b"" if esds is None else decoder_config(body(esds)[4:])[2]
    except (Missing, IndexError) as error:
        raise BuildError(f"the esds of track {window.track.id} is damaged") from error


_FORMS: Final[dict[str, Callable[..., Any]]] = {
    "mp4": _mp4,
    "left_out": _left_out,
    "annexb": _annexb,
    "obu": _obu,
    "packets": _packets,
    "configuration": _configuration,
}


def window_form(name: str) -> Callable[..., Any]:
    """The function that makes a form of a window from the media."""

    def made(window: Window, source: Any, **options: Any) -> Any:
        with window.file.opened(source) as opened:
            fetch = partial(_fetched, [window], opened)
            return _FORMS[name](window, opened, fetch, **options)

    return made


def read_ahead(
    windows: Iterable[Window],
    source: Any = None,
    *,
    form: Literal["mp4", "annexb", "obu", "packets"] = "mp4",
    together: int = 4,
    **options: Any,
) -> Iterator[tuple[Window, Any]]:
    """Windows of one file with their bytes, read by a thread of its own ahead of their use.

    The windows of the next `together` are read at once, each by one request or less, while those
    before are decoded, so that the decoder seldom waits for them.

    Args:
        windows: of one index, in the order in which they are wanted. The next few are taken from it
            while others are read.
        source: the media, as of `Window.mp4`; an open `Source` is used by the thread until the
            iterator ends or is closed.
        form: what `Window.mp4`, `annexb`, `obu` or `packets` gives.
        together: windows that are read at once; twice as many are in memory.
        options: as of that form.

    Yields: each window and its bytes, in the given order.

    Raises: as that form, at the first window of those that were read together.
    """
    if together < 1:
        raise ValueError(f"together is 1 or more, not {together}")
    left = iter(windows)
    chosen = list(islice(left, together))
    if not chosen:
        return
    make = partial(_several, form=_FORMS[form], options=options)
    with (
        chosen[0].file.opened(source) as opened,
        ThreadPoolExecutor(1, "fragdex-windows") as reader,
    ):
        reading = reader.submit(make, chosen, opened)
        while chosen:
            following = list(islice(left, together))
            ready = list(zip(chosen, reading.result(), strict=True))
            if following:
                reading = reader.submit(make, following, opened)
            yield from ready
            chosen = following


def _several(
    windows: Sequence[Window], source: Source, form: Callable[..., Any], options: dict[str, Any]
) -> list[Any]:
    fetched = _fetched(windows, source)
    return [form(window, source, lambda: fetched, **options) for window in windows]


def _fetched(windows: Sequence[Window], source: Source) -> Fetched:
    """The bytes of windows, read in few requests."""
    gap = GAP if source.remote else LOCAL_GAP
    most = None if source.max_requests is None else source.max_requests - source.requests
    ranges = [part for window in windows for part in window.ranges]
    reads = plan_reads(ranges, max_gap=gap, max_size=LONGEST_READ, max_requests=most)
    pieces = source.read_many(reads)
    return Fetched({read.start: data for read, data in zip(reads, pieces, strict=True)})


def _data(window: Window, source: Source, fetch: Fetch) -> list[bytes]:
    """The bytes of each sample."""
    samples = window.track.samples.rows(window.samples)
    parts = fetch().parts(zip(samples.offset.tolist(), samples.size.tolist(), strict=True))
    data: list[bytes] = []
    for number, part in enumerate(parts):
        if part is None:
            raise TruncatedInput(
                f"{source.name} ends within sample {int(window.samples[number]) + 1} of track "
                f"{window.track.id}",
                offset=int(samples.offset[number]),
                expected=f"{int(samples.size[number])} bytes",
            )
        data.append(part)
    for number in window.starts.tolist():
        if not can_start(window.track.info, data[number]):
            raise NoSyncSample(
                f"no decoder can start at sample {int(window.samples[number]) + 1} of track "
                f"{window.track.id}, whatever its flags say",
                offset=int(samples.offset[number]),
                advice="make the window with verified=True",
            )
    return data


def _samples(window: Window) -> tuple[SampleTable, int, int]:
    """The samples; what their ticks are multiplied by, and what is added for presentation time."""
    track = window.track
    scale = window.timescale // track.timescale
    return track.samples.rows(window.samples), scale, round(track.shift * scale)


def _keys(window: Window) -> Bool:
    keys = np.zeros(len(window.samples), np.bool_)
    keys[window.starts] = True
    return keys


def _part(window: Window, keep_times: bool) -> PlannedTrack:
    """The samples on a timeline of their own, and an edit list that shows all of them."""
    samples, scale, shift = _samples(window)
    dts = (samples.dts - samples.dts[0]) * scale
    cts = (samples.cts - samples.dts[0]) * scale
    cts += max(0, -int((cts - dts).min()))  # players disagree about negative offsets
    duration = samples.duration * scale
    first, last = int(cts.min()), int((cts + np.maximum(duration, 1)).max())
    edits = [(last - first, first, Fraction(1))]
    if keep_times:
        shown = int(samples.cts.min()) * scale + shift
        if shown < 0:
            raise BuildError(
                "decoding begins with pictures that the video's edit list hides, before its time 0",
                advice="leave out keep_times; window.times has the times of the frames",
            )
        if shown:
            edits.insert(0, (shown, -1, Fraction(1)))
    times = {"dts": dts, "cts": cts, "duration": duration, "sync": _keys(window)}
    table = SampleTable.of(samples.columns() | times)
    return PlannedTrack(
        window.track,
        table,
        window.timescale,
        one_source(0, len(table)),
        tuple(edits),
        window.samples,
    )


# -- the initialization segment


def _parsed(track: Track) -> dict[bytes | None, list[Box]]:
    """Where parsed initialization segments are kept: None is that of the file."""
    return {}


def _boxes(window: Window, source: Source, init: bytes | None) -> list[Box]:
    """Ftyp and moov, with the description of this track alone."""
    parsed = window.track.derived(_parsed)
    if init not in parsed:
        if init is None and not window.init:
            raise BuildError(
                "there is no initialization segment, so a window could not be decoded",
                advice="give it with init=",
            )
        data = init or b"".join(source.read_many(window.init))
        if len(parsed) > 1:
            parsed.clear()
        parsed[init] = _pruned(parse(plain_init(data)), window.track.id)
    return parsed[init]


def _pruned(boxes: Sequence[Box], track_id: int) -> list[Box]:
    """Ftyp and moov with one trak, of whose tables only those stay that tell its sample entries."""
    own = traks_of(boxes).get(track_id)
    changes: dict[str, Callable[[Box], Box | Sequence[Box]]] = {
        f"{parent}{code}": lambda _: ()
        for parent in ("", "mdia/", "mdia/minf/")
        for code in _UNUSED
    }
    changes["mdia/minf/stbl"] = lambda stbl: stbl.replace(
        children=[one for one in stbl if one.type in ("stsd", "stsc")]
    )
    trak = [] if own is None else [with_changes(own, changes)]
    return [
        box.replace(children=[*box.find_all("mvhd"), *trak]) if box.type == "moov" else box
        for box in boxes
        if box.type in ("ftyp", "moov")
    ]


def _entries(window: Window, boxes: list[Box]) -> tuple[tuple[Box, ...], Int64]:
    """The sample entries of the track, and the number of that of each sample, from 1."""
    track = window.track
    trak = traks_of(boxes).get(track.id)
    stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
    if trak is None or stsd is None or not stsd.children:
        raise BuildError(f"the moov describes no samples of track {track.id}")
    numbers = described(track, trak, window.samples)
    if numbers.min() < 1 or numbers.max() > len(stsd.children):
        raise BuildError(f"track {track.id} has no sample entry {int(numbers.max())}")
    return tuple(stsd.children), numbers


def _with_setup(
    window: Window,
    source: Source,
    fetch: Fetch,
    init: bytes | None,
    of_entry: Callable[[Box], list[bytes]],
) -> list[tuple[bytes, list[bytes]]]:
    """The bytes of each sample; of sync samples, with what their sample entry sets up."""
    entries, numbers = _entries(window, _boxes(window, source, init))
    data = _data(window, source, fetch)
    setups = [of_entry(entry) for entry in entries]
    sync = window.track.samples.sync[window.samples].tolist()
    sync[0] = True
    return [
        (part, setups[number - 1] if key else [])
        for part, number, key in zip(data, numbers.tolist(), sync, strict=True)
    ]
