"""`fragdex.repair`: a file whose index is lost or wrong, and what can be made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np

from fragdex.boxes import Box, find, parse
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, Unprocessable
from fragdex.fragments.table import Int64, SampleTable
from fragdex.indexing.codecs import RATES
from fragdex.indexing.making import index, index_source, read_init
from fragdex.indexing.moov import plain_init
from fragdex.muxing.movie import traks_of
from fragdex.muxing.view import View
from fragdex.record import record
from fragdex.repairing.between import Between, pace_of
from fragdex.repairing.film import Bool, Recovered, film_view, from_zero, sample_ranges
from fragdex.repairing.fragment_order import orders_of
from fragdex.repairing.media_data import (
    Stretch,
    has_moov_in,
    may_hide_moov,
    opened_up,
    stretches_of,
    unique_ids,
    with_hidden_moov,
    with_right_header,
)
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.pattern import AAC_FRAME, Pattern, marks_open_pictures, pattern_of, syntax_of
from fragdex.repairing.rates import MOST_RATE, Rate, decided
from fragdex.repairing.stream import movie_of, rate_of_timestamps, rates_in, stream_in
from fragdex.repairing.syntax import Window
from fragdex.repairing.tables import (
    ENOUGH,
    Described,
    fit,
    is_wrapped,
    mended,
    other_shifts,
    proving,
    shift_of,
)
from fragdex.repairing.walk import FoundSamples, UnclaimedBytes, Walk, timed
from fragdex.seeking.model import Index
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceLike, SourceOptions, check_options, open_source

__all__ = ["Repair", "RepairedSpan", "RepairedTrack", "repair"]

Progress: TypeAlias = Callable[[int, int], object] | None
State: TypeAlias = Literal["proved", "guessed", "lost", "structure"]
BETWEEN: Final = "samples between others"
AFTER_SOUND: Final = "samples after sound that does not say where it ends"
SURE: Final = 0.9
"""Part of the samples that are where the tables say: nothing else is tried."""
MOST_MOVES: Final = 64
"""Shifts that are tried."""
MOST_SPANS: Final = 1 << 16
"""Spans that are listed; the rest of the file is in the last one."""


class RepairedSpan(NamedTuple):
    """Bytes of the source, and what became of them.

    Attributes:
        start, stop: of them (exclusive).
        state: `proved`: samples by their own syntax, each confirmed by what follows it; `guessed`:
            samples that only their neighbours delimit, at both ends or where they begin; `lost`: in
            no sample; `structure`: boxes.
        what: in words.
    """

    start: int
    stop: int
    state: State
    what: str

    @property
    def says_end(self) -> bool:
        """Whether its samples say where they end: all but those that only lie between others."""
        return self.state == "proved" or (self.state == "guessed" and self.what != BETWEEN)


@record(frozen=True, slots=True, eq=False)
class RepairedTrack:
    """A track of the repaired file.

    Attributes:
        id, kind, codec: as in the file that it is like.
        samples: how many were found.
        proved: how many of them by their own syntax, at both ends.
        seconds: how long they last.
    """

    id: int
    kind: str
    codec: str | None
    samples: int
    proved: int
    seconds: float
    _found: Recovered = field(repr=False)

    def table(self) -> SampleTable:
        """The samples, with their places in the source and their times."""
        return self._found.samples()


@record(frozen=True, slots=True, eq=False)
class Repair:
    """The samples found in a broken file, and the repaired file.

    Attributes:
        view: the repaired file; nothing of the source is copied.
        tracks: those of the repaired file.
        spans: for each byte of the source, in order, whether it is proved, guessed or lost.
        findings: guesses and losses, as sentences.
        size: bytes of the source.

    >>> import fragdex
    >>> mended = fragdex.repair("fixtures/cut-moov-last.mp4", "fixtures/moov-last.mp4")
    >>> mended.lost, mended.index().track(1).sample_count
    (0, 50)
    """

    view: View
    tracks: tuple[RepairedTrack, ...]
    spans: tuple[RepairedSpan, ...]
    findings: tuple[str, ...]
    size: int

    @property
    def lost(self) -> int:
        """Bytes of the source that are in no sample and no box."""
        return sum(span.stop - span.start for span in self.spans if span.state == "lost")

    def index(self, source: SourceLike | None = None) -> Index:
        """The index of the repaired file.

        Args:
            source: the broken file, if it has no name.
        """
        with self.view.as_source(source=source) as opened:
            return index(opened)


def repair(
    what: SourceLike,
    like: SourceLike | None = None,
    *,
    rate: Fraction | float | str | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[SourceOptions],
) -> Repair:
    """Find the samples of a file whose moov is lost, and describe the repaired file.

    Args:
        what: the broken file: path, bytes, seekable binary file, URL or an open `Source`. It is
            never written to.
        like: a good file from the same camera or recorder with the same settings, in any of these
            forms: it provides the codecs of the tracks, and the pattern of their times.
        rate: frames a second (25, "30000/1001"), if neither a good file nor the stream says it.
        progress: called with the number of bytes done, and of all bytes.
        options: passed on to `open_source`.

    Raises:
        Unprocessable: no sample was found, or it is unknown what to search for.
        SourceError: one of them could not be read.
        NotISOBMFF, TruncatedInput: the good file cannot be indexed.

    >>> import fragdex
    >>> mended = fragdex.repair("fixtures/cut-moov-last.mp4", "fixtures/moov-last.mp4")
    >>> [(track.codec, track.samples, track.proved) for track in mended.tracks]
    [('avc1.64000A', 50, 50), ('mp4a.40.2', 33, 33)]
    >>> mended.spans[-1]
    RepairedSpan(start=48, stop=5832, state='proved', what='samples')
    """
    check_options("fragdex.repair", options, ("like", "rate", "progress"))
    with ExitStack() as stack:
        source = _opened(stack, what, options)
        good = None if like is None else _opened(stack, like, options)
        speed = None if rate is None else Fraction(rate).limit_denominator(1 << 16)
        if speed is not None and not 0 < speed <= MOST_RATE:
            raise ValueError(f"rate is pictures a second, above 0 and at most {MOST_RATE}: {rate}")
        return _repair(source, good, speed, progress)


def _opened(stack: ExitStack, what: SourceLike, options: Any) -> Source:
    opened = open_source(what, **options)
    if opened is not what:
        stack.callback(opened.close)
    return opened


def _size_of(source: Source) -> int:
    if source.size is None:
        source.read_up_to(ByteRange(0, 16))
    if source.size is None:
        raise Unprocessable(f"the size of {source.name} is not known")
    return source.size


@record(frozen=True, slots=True)
class _Broken:
    """The broken file, its stretches, and whom progress is reported to."""

    source: Source
    size: int
    stretches: list[Stretch]
    progress: Progress

    def has(self, kind: str) -> bool:
        """Whether there is a box of this type."""
        return any(one.kind == kind for one in self.stretches)

    def view(self, tracks: Sequence[Recovered], boxes: Sequence[Box], moov: Box) -> View:
        """The repaired file: its own ftyp, or else that of `boxes`, goes in front."""
        source = self.source
        ftyp: list[Box] = [box for box in boxes if box.type == "ftyp"]
        for one in self.stretches:
            if one.kind == "ftyp" and one.stop - one.start < 4096:
                ftyp = list(parse(source.read(ByteRange(one.start, one.stop))))
                break
        info = FileInfo(source.name, self.size, None, source.etag, source.mtime_ns)
        return film_view(tracks, ftyp, moov, info)


def _count(repaired: Repair) -> int:
    return sum(track.samples for track in repaired.tracks)


def _repair(
    source: Source, good: Source | None, rate: Fraction | None, progress: Progress
) -> Repair:
    size = _size_of(source)
    file = _Broken(source, size, stretches_of(source, size), progress)
    inside = opened_up(source, file.stretches)
    if inside is None:
        return _repair_in(file, good, rate)
    fragments = replace(file, stretches=inside)
    try:
        whole = _repair_in(file, good, rate)
    except Unprocessable:
        return _repair_in(fragments, good, rate)
    if not whole.findings:
        return whole  # its moov says all
    return max(whole, _repair_in(fragments, good, rate), key=_count)


def _repair_in(file: _Broken, good: Source | None, rate: Fraction | None) -> Repair:
    """The file of which these are the stretches, repaired."""
    source = file.source
    if may_hide_moov(file.stretches):
        walked = None if good is None else _by_walk_alone(file, good)
        if walked is not None and not _may_hold_moov(source, walked):
            return walked
        searched = with_hidden_moov(source, file.stretches)
        if walked is not None and searched == file.stretches:
            return walked
        file = replace(file, stretches=searched)
    own = _Model.of_broken(file)
    model = own if good is None else _Model.of(good)
    by_tables = own
    if by_tables is None and good is not None and model is not None and file.has("moof"):
        by_tables = model.with_segments(source, good)
    if by_tables is not None and any(track.sample_count for track in by_tables.tracks):
        repaired = _by_tables(file, by_tables)
        if repaired is not None and by_tables is own and _is_short(own):
            repaired = _longer(repaired, file, own)
        if repaired is not None:
            return repaired
    if model is None:
        return _by_stream(file, rate)
    return _by_walk(file, model, good or source)


def _index(source: Source, init: bytes | None = None) -> Index:
    """All samples of a moov as one movie: where clocks begin again, repair continues."""
    moov = None if init is None else read_init(init)
    return index_source(source, moov, exact=True, partial=True, parts_clocks=False)


@record(frozen=True, slots=True)
class _Model:
    """A moov that says what tracks there are."""

    index: Index
    boxes: Sequence[Box]
    moov: Box

    @classmethod
    def of(cls, source: Source) -> _Model:
        reference = _index(source)
        if not reference.periods or not reference.periods[0].init:
            raise Unprocessable("the good file has no moov")
        init = plain_init(b"".join(source.read(part) for part in reference.periods[0].init))
        boxes = parse(init)
        moov = find(boxes, "moov")
        if moov is None:
            raise Unprocessable("the good file has no moov")
        return cls(reference, boxes, moov)

    @classmethod
    def of_broken(cls, file: _Broken) -> _Model | None:
        """The moov of the broken file; None: it has none that can be read."""
        if not file.has("moov"):
            return None
        source = file.source
        try:
            right = with_right_header(source, file.size, list(file.stretches))
            reference = cls.of(source if right is None else right.as_source(source=source))
        except (FormatError, Unprocessable):
            return None
        return reference if reference.tracks else None

    def with_segments(self, source: Source, good: Source) -> _Model | None:
        """This moov with the segments of a file that has none; None: they do not fit."""
        try:
            init = b"".join(good.read(part) for part in self.index.periods[0].init)
            reference = _index(source, init)
        except FormatError:
            return None
        model = replace(self, index=reference)
        return model if reference.periods and not model.unknown else None

    @property
    def tracks(self) -> Sequence[Track]:
        """Those that the moov describes: fragments may name others."""
        known = traks_of(self.boxes)
        return [track for track in self.index.periods[0].tracks if track.id in known]

    @property
    def unknown(self) -> list[int]:
        """The track_IDs of fragments that the moov does not describe."""
        known = traks_of(self.boxes)
        return [track.id for track in self.index.periods[0].tracks if track.id not in known]

    def trak(self, track: Track) -> Box:
        return traks_of(self.boxes)[track.id]


SHORT: Final = frozenset({"chunks-without-samples", "samples-without-chunk"})
"""Findings of tables that end before the samples do."""


def _is_short(own: _Model) -> bool:
    known = any(finding.code in SHORT for finding in own.index.findings)
    return known or not all(track.sample_count for track in own.tracks)


def _longer(repaired: Repair, file: _Broken, own: _Model) -> Repair:
    """What the tables say, or what the media data do where that is more."""
    try:
        walked = _by_walk(file, own, file.source)
    except Unprocessable:
        return repaired
    is_more = _count(walked) > _count(repaired) and walked.lost <= repaired.lost
    return walked if is_more else repaired


def _by_walk_alone(file: _Broken, good: Source) -> Repair | None:
    """The file by its media data, read once; None: there are fragments, or no samples."""
    model = _Model.of(good)
    if file.has("moof"):
        return None
    try:
        return _by_walk(file, model, good)
    except Unprocessable:
        return None


def _may_hold_moov(source: Source, walked: Repair) -> bool:
    """Whether there may be a moov after all: it is in no sample that says where it ends."""
    if len(walked.spans) >= MOST_SPANS:
        return True
    others = (
        ByteRange(one.start, one.stop)
        for one in walked.spans
        if one.state in ("lost", "guessed") and not one.says_end
    )
    return has_moov_in(source, walked.size, others)


def _by_tables(file: _Broken, own: _Model) -> Repair | None:
    """The file as its own moov says, repaired; None: its samples are elsewhere."""
    source, size, stretches = file.source, file.size, file.stretches
    described = []
    for track in own.tracks:
        if track.sample_count:
            trak = own.trak(track)
            syntax = syntax_of(track, trak, source, tried=False)
            if isinstance(syntax, NalUnits):
                syntax.open_sync = marks_open_pictures(syntax, track, source)
            pattern = pattern_of(track, trak)
            described.append(Described(pattern, syntax, timecode=_rate_of_timecode(own)))
    orders = orders_of([one.pattern for one in described], source)
    described = [one._replace(order=order) for one, order in zip(described, orders, strict=True)]
    window = Window(source, size)
    wrapped = is_wrapped(described, size)
    best, shift = _best_move(described, window, stretches)
    shifts = [shift]
    if (best < SURE or shift) and not wrapped:
        starts = [one.start for one in stretches if one.kind in ("mdat", "")]
        shifts += other_shifts(described, window, shift, starts)
        best = fit(described, window, *shifts)
    if proving(described) and best < ENOUGH and not wrapped:
        return None
    result = mended(described, window, shifts, wrapped)
    if not result.tracks:
        return None
    recovered = from_zero(result.tracks)
    view = file.view(recovered, own.boxes, own.moov)
    tracks = tuple(
        _track(one, proved) for one, proved in zip(recovered, result.proved, strict=True)
    )
    samples = [
        _Samples(one.offset, one.size, np.full(len(one.offset), proved > 0), BETWEEN)
        for one, proved in zip(result.tracks, result.proved, strict=True)
    ]
    spans = _spans(file, samples, result.lost)
    # the track_IDs of fragments are what their moofs name: none is changed
    moov = next((one for one in stretches if one.kind == "moov"), None)
    renumbered = [] if moov is None or file.has("moof") else unique_ids(source, moov)
    if renumbered:
        result.findings.append(f"{len(renumbered)} tracks had the track_ID of another, or none")
    result.findings.extend(
        f"fragments of track {number} are left out: no moov describes it" for number in own.unknown
    )
    several = len(own.index.periods)
    if several > 1:
        result.findings.append(f"the file holds {several} movies: the first one is repaired")
    findings = [*result.findings, *(str(finding) for finding in own.index.findings)]
    return Repair(view, tracks, tuple(spans), tuple(findings), size)


def _rate_of_timecode(own: _Model) -> Rate | None:
    """Frames a second of the first timecode track (QuickTime, timecode sample description)."""
    for trak in traks_of(own.boxes).values():
        stsd = trak.find("mdia/minf/stbl/stsd")
        for entry in stsd.children if stsd is not None else ():
            if entry.type == "tmcd" and "frame_duration" in entry and entry["frame_duration"]:
                rate = Fraction(int(entry["timescale"]), int(entry["frame_duration"]))
                return Rate(rate, "timecodes") if 1 <= rate <= MOST_RATE else None
    return None


def _best_move(
    described: Sequence[Described], window: Window, stretches: Sequence[Stretch]
) -> tuple[float, int]:
    """Bytes by which all samples lie after what the tables say, and how many do so."""
    best, shift = fit(described, window, 0), 0
    if best >= SURE:
        return best, shift
    moves = []
    for one in stretches:
        if one.kind in ("moov", "free"):
            moves += [one.stop - one.start, one.start - one.stop]
        elif one.kind in ("mdat", ""):
            move = shift_of(described, window, one.start)
            moves += [] if move is None else [move]
    for move in moves[:MOST_MOVES]:
        part = fit(described, window, move)
        if part > best:
            best, shift = part, move
    return best, shift


def _by_walk(file: _Broken, model: _Model, good: Source) -> Repair:
    """The file as its media data say."""
    source = file.source
    findings: list[str] = []
    patterns: list[Pattern] = []
    lanes: list[FoundSamples] = []
    bare = not any(track.sample_count for track in model.tracks)
    for track in sorted(model.tracks, key=lambda one: one.kind != "video"):
        if not track.sample_count and not bare and good is not source:
            continue
        trak = model.trak(track)
        syntax = syntax_of(track, trak, good, tried=bool(track.sample_count))
        if isinstance(syntax, str) and good is source:
            syntax = syntax_of(track, trak, good, tried=False)  # its own tables are wrong
        if isinstance(syntax, str):
            findings.append(f"track {track.id} ({track.codec or track.info.format}): {syntax}")
        elif isinstance(syntax, Between) and any(not o.syntax.delimited for o in lanes):
            findings.append(f"track {track.id}: only one track may be without ends of its samples")
        else:
            patterns.append(pattern_of(track, trak))
            lanes.append(FoundSamples(syntax))
    if not lanes:
        raise Unprocessable(
            f"no track can be looked for: {'; '.join(findings) or 'the good file has no samples'}"
        )
    pace = None
    for pattern, lane in zip(patterns, lanes, strict=True):
        if lane is lanes[0] or patterns[0].track.kind != "video":
            continue  # the pictures are what others are ahead of
        if isinstance(lane.syntax, Between):
            pace = pace_of(pattern.track, patterns[0].track)
    lost = _walk(file, Walk(lanes, pace))
    for pattern, lane in zip(patterns, lanes, strict=True):
        if isinstance(lane.syntax, NalUnits) and pattern.steady and pattern.duration:
            clock = rate_of_timestamps(source, lane.syntax, lane)
            value = Fraction(pattern.track.timescale, pattern.duration)
            if clock is not None:
                of_good = Rate(value, "the times of the good file")
                findings += decided([of_good, clock], is_given=True)[1]
    return _made(file, model.boxes, patterns, lanes, lost, findings)


def _by_stream(file: _Broken, rate: Fraction | None) -> Repair:
    """The pictures of a file and the sound between them, as they say of themselves."""
    stream = stream_in(file.source, file.stretches)
    if stream is None:
        raise Unprocessable(
            "nothing says which codecs the tracks have: there are no parameter sets among samples",
            advice="give a good file from the same camera: like=",
        )
    lanes = stream.lanes()
    lost = _walk(file, Walk(lanes, others=stream.sound is None))
    pictures, payloads, *sound = lanes
    if not stream.pictures.sets:
        raise Unprocessable(
            "no picture is whole, so nothing says which codecs the tracks have",
            advice="give a good file from the same camera: like=",
        )
    unknown = sum(one.stop - one.start for one in lost if not one.lasts)
    given = [] if rate is None else [Rate(rate, "the arguments")]
    rates = rates_in(file.source, stream, lanes, lost)
    taken, findings = decided([*given, *rates], is_given=bool(given))
    sound_codec, kind = stream.sound, None
    if sound_codec is not None and len(pictures.offset):
        pace = taken * len(sound[0].offset) / len(pictures.offset)
        kind = (sound_codec.index_at(pace), sound_codec.configuration)
        findings.append(
            f"no good file says what the sound is: AAC at {RATES[kind[0]]:,} Hz fits its frames"
        )
        seen = len(pictures.offset) / taken
        heard = Fraction(len(sound[0].offset) * AAC_FRAME, RATES[kind[0]])
        if abs(heard - seen) > max(Fraction(1), seen / 20):
            findings.append(
                f"sound lasts {float(heard):.1f} s and the pictures {float(seen):.1f} s: it may be"
                " that of several tracks, or the rate is wrong"
            )
    if unknown:
        findings.append(
            f"{unknown:,} bytes between samples are not searched: no good file says what they are"
        )
    lost += [
        UnclaimedBytes(at, at + length, "telemetry (GPMF)", False)
        for at, length in zip(payloads.offset, payloads.size, strict=True)
    ]
    # only now: parameter sets may come late
    boxes, patterns = movie_of(stream.pictures, taken, kind)
    return _made(file, boxes, patterns, [pictures, *sound], lost, findings)


def _walk(file: _Broken, walk: Walk) -> list[UnclaimedBytes]:
    report = file.progress or (lambda done, size: None)
    for stretch in file.stretches:
        if stretch.kind in ("mdat", ""):
            window = Window(file.source, stretch.stop, cut=stretch.cut)
            for at in walk.over(window, stretch.start):
                report(at, file.size)
    report(file.size, file.size)
    return walk.lost


def _made(
    file: _Broken,
    boxes: Sequence[Box],
    patterns: Sequence[Pattern],
    lanes: Sequence[FoundSamples],
    lost: Sequence[UnclaimedBytes],
    findings: list[str],
) -> Repair:
    """The repaired file of what a walk found."""
    present = [n for n, lane in enumerate(lanes) if len(lane.offset)]
    if not present:
        raise Unprocessable(
            "no sample like those of the good file was found",
            advice="give a file from the same camera with the same settings: like=",
        )
    findings += (
        f"track {pattern.track.id}: no sample was found"
        for number, pattern in enumerate(patterns)
        if number not in present
    )
    recovered = timed([patterns[n] for n in present], [lanes[n] for n in present])
    findings += _doubts(recovered, [lanes[n] for n in present], lost)
    moov = find(boxes, "moov")
    assert moov is not None  # without one there is no pattern
    view = file.view(recovered, boxes, moov)
    samples = [_samples_of(one, lanes[n]) for one, n in zip(recovered, present, strict=True)]
    tracks = tuple(
        _track(one, int(those.proved.sum()))
        for one, those in sorted(
            zip(recovered, samples, strict=True), key=lambda pair: pair[0].pattern.track.id
        )
    )
    spans = tuple(_spans(file, samples, lost))
    return Repair(view, tracks, spans, tuple(findings), file.size)


class _Samples(NamedTuple):
    """Where samples of a track are, which of them are proved, and what the others are."""

    offset: Int64
    size: Int64
    proved: Bool
    guess: str


def _samples_of(recovered: Recovered, lane: FoundSamples) -> _Samples:
    proved = np.frombuffer(bytes(lane.proved), np.bool_)
    guess = AFTER_SOUND if lane.syntax.delimited else BETWEEN
    return _Samples(recovered.offset, recovered.size, proved, guess)


def _track(recovered: Recovered, proved: int) -> RepairedTrack:
    track = recovered.pattern.track
    seconds = recovered.end / track.timescale if track.timescale else 0.0
    return RepairedTrack(
        track.id, track.kind, track.codec, recovered.count, proved, seconds, recovered
    )


def _doubts(
    recovered: Sequence[Recovered], lanes: Sequence[FoundSamples], lost: Sequence[UnclaimedBytes]
) -> list[str]:
    doubts = []
    for one, lane in zip(recovered, lanes, strict=True):
        name = f"track {one.pattern.track.id}"
        if not one.pattern.steady:
            doubts.append(
                f"{name}: durations vary in the good file, so each sample is assumed to last"
                f" {one.pattern.duration} ticks"
            )
        guessed = lane.proved.count(0)
        if not lane.syntax.delimited:
            doubts.append(f"{name}: where its samples lie is taken from those around them")
        elif guessed:
            doubts.append(
                f"{name}: {guessed:,} of its samples follow sound that does not say where it ends,"
                " and may begin in it"
            )
    holes = [one for one in lost if one.lasts]
    if holes:
        size = sum(one.stop - one.start for one in holes)
        doubts.append(
            f"{size:,} bytes in {len(holes):,} place{'s' * (len(holes) > 1)} are in no sample; the"
            " video continues after"
            " the time that they would take"
        )
    return doubts


def _spans(
    file: _Broken, samples: Iterable[_Samples], lost: Sequence[UnclaimedBytes]
) -> list[RepairedSpan]:
    """What became of each byte: what a span says first is not said again."""
    marks: list[RepairedSpan] = []
    columns: dict[tuple[State, str], list[tuple[Int64, Int64]]] = {}
    for offset, length, proved, guess in samples:
        columns.setdefault(("proved", "samples"), []).append((offset[proved], length[proved]))
        columns.setdefault(("guessed", guess), []).append((offset[~proved], length[~proved]))
    for (state, what), ranges in columns.items():
        start, length = sample_ranges(ranges)
        ends = start + length
        for low, high in zip(start[:MOST_SPANS].tolist(), ends[:MOST_SPANS].tolist(), strict=True):
            marks.append(RepairedSpan(low, high, state, what))
    marks += [RepairedSpan(one.start, one.stop, "lost", one.why) for one in lost[:MOST_SPANS]]
    marks += [
        RepairedSpan(one.start, one.stop, "structure", one.kind)
        for one in file.stretches
        if one.kind not in ("mdat", "")
    ]
    spans: list[RepairedSpan] = []
    at = 0
    for span in sorted(marks):
        if span.start > at:
            spans.append(RepairedSpan(at, span.start, "lost", "in no sample"))
        if span.stop > at:
            spans.append(span._replace(start=max(at, span.start)))
            at = span.stop
    if at < file.size:
        spans.append(RepairedSpan(at, file.size, "lost", "in no sample"))
    return spans
