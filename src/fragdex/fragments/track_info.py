"""What a moov says of the movie and its tracks, as plain values (ISO/IEC 14496-12, 8.2 to 8.8)."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Final, Literal, TypeAlias, get_args

from fragdex.fragments.table import FAR
from fragdex.record import record


@record(frozen=True, slots=True)
class Colour:
    """What the numbers of a picture mean: code points of ISO/IEC 23091-2.

    Attributes:
        primaries: colour_primaries; 1: BT.709, 9: BT.2020.
        transfer: transfer_characteristics; 16: PQ (SMPTE ST 2084), 18: HLG (BT.2100).
        matrix: matrix_coefficients.
        full_range: whether 0 is black; None where the file does not say (QuickTime's nclc).
    """

    primaries: int
    transfer: int
    matrix: int
    full_range: bool | None = None

    @property
    def dynamic_range(self) -> str | None:
        """PQ or HLG; None: standard, or not said."""
        return {16: "PQ", 18: "HLG"}.get(self.transfer)


@record(frozen=True, slots=True)
class MasteringDisplay:
    """The display that the pictures were mastered on (SMPTE ST 2086; mdcv, SmDm).

    Attributes:
        primaries: x and y of red, green and blue (CIE 1931).
        white_point: x and y.
        max_luminance, min_luminance: cd/m2.
    """

    primaries: tuple[float, ...]
    white_point: tuple[float, ...]
    max_luminance: float
    min_luminance: float


@record(frozen=True, slots=True)
class ContentLight:
    """The brightest pixel and frame (CTA-861.3; clli, CoLL), in cd/m2."""

    max_content: int
    max_frame_average: int


@record(frozen=True, slots=True)
class DolbyVision:
    """A Dolby Vision configuration (dvcC, dvvC, dvwC).

    Attributes:
        profile, level: as in the codec string.
        compatibility: dv_bl_signal_compatibility_id: what the base layer is without Dolby Vision;
            0: nothing, 1: HDR10, 2: SDR, 4: HLG.
    """

    profile: int
    level: int
    compatibility: int


@record(frozen=True, slots=True)
class Chapter:
    """A chapter of a Nero chapter list (chpl).

    Attributes:
        start: in units of 100 ns of the presentation.
        title: as the file has it.
    """

    start: int
    title: str

    @property
    def seconds(self) -> float:
        """Where it starts."""
        return self.start / 10_000_000


@record(frozen=True, slots=True)
class Edit:
    """One entry of an edit list (ISO/IEC 14496-12, 8.6.6).

    Attributes:
        duration: in ticks of the movie's timescale; 0 in a fragmented file: all that follows.
        media_time: in ticks of the track's timescale; -1: an empty edit, nothing is shown.
        rate: playback rate; 1 unless a file says otherwise.
    """

    duration: int
    media_time: int
    rate: float = 1.0


@record(frozen=True, slots=True)
class Segment:
    """A stretch of the presentation that an edit fills with media (ISO/IEC 14496-12, 8.6.6).

    Attributes:
        start, stop: seconds of the presentation, exact; stop is exclusive, None: all that follows.
        media_time: shown at `start`, in ticks of the track's timescale.
        rate: media seconds for each second; 0: one picture stands still.
    """

    start: Fraction
    stop: Fraction | None
    media_time: int
    rate: Fraction = Fraction(1)

    def media_stop(self, timescale: int) -> int | None:
        """Media ticks from which on nothing of it is shown; None: it shows all that follows.

        A duration counts in the movie's timescale: it is rounded to the track's ticks, halves up,
        as FFmpeg does, so that a rest of a tick shows no further sample.
        """
        if self.stop is None:
            return None
        if not self.rate:  # one picture stands still
            return self.media_time + 1
        return self.media_time + floor((self.stop - self.start) * self.rate * timescale + HALF)


HALF: Final = Fraction(1, 2)


@record(frozen=True, slots=True)
class Encryption:
    """How the samples of a track are protected (ISO/IEC 23001-7, 8).

    Attributes:
        scheme: four-letter scheme type such as `cenc` or `cbcs`; `piff` for PIFF's own boxes.
        default_kid: key identifier as 32 hex digits, or None.
        iv_size: bytes of the initialization vector of each sample; 0: a constant one.
        descriptions: numbers from 1 of the sample entries that are encrypted, where others are
            clear; none: all are. `Track.is_encrypted` says it of samples.
    """

    scheme: str
    default_kid: str | None
    iv_size: int | None
    descriptions: tuple[int, ...] = ()


@record(frozen=True, slots=True)
class SampleDefaults:
    """A trex: what holds for samples where neither trun nor tfhd says otherwise (8.8.3)."""

    duration: int
    size: int
    flags: int


TrackKind: TypeAlias = Literal["video", "audio", "text", "metadata", "timecode", "hint", "other"]
KINDS: Final[tuple[TrackKind, ...]] = get_args(TrackKind)
KINDS_OF_HANDLERS: Final[dict[str, TrackKind]] = {
    "vide": "video",
    "auxv": "video",
    "pict": "video",
    "soun": "audio",
    "text": "text",
    "sbtl": "text",
    "subt": "text",
    "subp": "text",
    "clcp": "text",
    "meta": "metadata",
    "tmcd": "timecode",
    "hint": "hint",
}
"""Handler type of the hdlr (ISO/IEC 14496-12, 8.4.3) to the kind of a track; others are OTHER."""
OTHER: Final[TrackKind] = "other"


_VISION_CODES: Final = {
    "avc1": "dva1", "avc3": "dvav", "hvc1": "dvh1", "hev1": "dvhe", "av01": "dav1",
}  # fmt: skip


@record(frozen=True, slots=True)
class TrackInfo:
    """What the moov says of one track.

    Attributes:
        id: track_ID.
        handler: four-letter handler type (`vide`, `soun`, …), or "" without a moov.
        kind: video, audio, text, metadata, timecode, hint or other.
        timescale: ticks a second; 0: unknown.
        format: code of the first sample entry, with the original one for protected tracks.
        codec: RFC 6381 codec string, or None where there is none.
        media_duration: mdhd's duration in ticks; 0 is usual in fragmented files.
        width, height: coded picture size in pixels of the first sample entry, or None.
        channel_count, sample_rate, sample_size: of the first audio sample entry, or None;
            Hz for the rate, bits for the size. The configuration of the decoder goes before the
            entry's own fields: many writers leave those at 2 channels.
        language: ISO 639-2 code, or None where it is undetermined.
        edits: the edit list in file order.
        encryption: of the first sample entry that is encrypted, or None for a clear track.
        defaults: the trex, or None where the movie has none for this track.
        nal_length_size: bytes of the length in front of each NAL unit, for AVC, HEVC and VVC.
        extended_language: BCP 47 tag of an elng box, or None.
        title: of the track, from its user data (name, or QuickTime's ©nam), or None.
        enabled: whether the track is meant to be played by default (tkhd).
        alternate_group: tracks of one group, unless 0, are alternatives to each other (tkhd).
        rotation: degrees clockwise that pictures are turned by to be shown (tkhd's matrix): 0,
            90, 180, 270; None where the matrix does something else, such as shearing.
        mirrored: left and right change places, after pictures are turned.
        auxiliary: why the track is not presented by itself, as a sentence: it has the alpha or
            depth, thumbnails or chapters of another track, or it is disabled while another is
            not (8.3.2), to which it is no alternative; else None.
        joint_objects: objects that E-AC-3 carries in addition to its channels (JOC), or None.
        pixel_aspect: width and height of a pixel (pasp), or None: square, or not said.
        colour: from colr, vpcC or the parameter sets, or None; `dynamic_range` says PQ or HLG.
        mastering_display, content_light: HDR metadata of mdcv and clli (SmDm, CoLL), or None.
        dolby_vision: from dvcC, dvvC or dvwC, or None.
        declared_bit_rate, declared_peak_bit_rate: bits a second that btrt or esds declare, or
            None; `Track.rates` counts them.
        chapter_tracks: track_IDs of tracks whose samples name chapters of this one (tref, chap).
    """

    id: int
    handler: str
    kind: str
    timescale: int
    format: str
    codec: str | None
    media_duration: int = 0
    width: int | None = None
    height: int | None = None
    channel_count: int | None = None
    sample_rate: int | None = None
    sample_size: int | None = None
    language: str | None = None
    edits: tuple[Edit, ...] = ()
    encryption: Encryption | None = None
    defaults: SampleDefaults | None = None
    nal_length_size: int | None = None
    extended_language: str | None = None
    title: str | None = None
    enabled: bool = True
    alternate_group: int = 0
    rotation: int | None = 0
    pixel_aspect: tuple[int, ...] | None = None
    colour: Colour | None = None
    mastering_display: MasteringDisplay | None = None
    content_light: ContentLight | None = None
    dolby_vision: DolbyVision | None = None
    declared_bit_rate: int | None = None
    declared_peak_bit_rate: int | None = None
    chapter_tracks: tuple[int, ...] = ()
    mirrored: bool = False
    auxiliary: str | None = None
    joint_objects: int | None = None

    @property
    def dynamic_range(self) -> str | None:
        """SDR, HLG or PQ of what any decoder shows; None: not known.

        By the colours, or where they say nothing by what Dolby Vision says of its base layer.
        """
        transfer = 2 if self.colour is None else self.colour.transfer
        if transfer != 2 or self.dolby_vision is None:  # 2: not said
            return None if self.colour is None else self.colour.dynamic_range or "SDR"
        return {0: "PQ", 1: "PQ", 2: "SDR", 4: "HLG"}.get(self.dolby_vision.compatibility)

    @property
    def supplemental_codec(self) -> tuple[str, str] | None:
        """Codec string and brand of Dolby Vision over a base layer that other decoders show.

        None: there is none, or the codec itself is Dolby Vision.
        """
        vision, code = self.dolby_vision, _VISION_CODES.get(self.format)
        if vision is None or code is None:
            return None
        is_hlg = self.colour is None or self.colour.transfer in (2, 18)
        brand = {1: "db1p", 2: "db2g", 4: "db4h" if is_hlg else "db4g"}.get(vision.compatibility)
        if brand is None:
            return None
        return f"{code}.{vision.profile:02}.{vision.level:02}", brand

    @classmethod
    def unknown(cls, track_id: int) -> TrackInfo:
        """A track met in a fragment without any moov: its id is all that is known."""
        return cls(track_id, "", "other", 0, "", None)

    def shift(self, movie_timescale: int) -> Fraction:
        """Ticks to add to a composition time to get the presentation time (8.6.6).

        Leading empty edits delay, the first other edit names the media time that is shown first.
        Later edits do not move it. A shift of 2^62 ticks or more is no claim but damage, and counts
        as 0.
        """
        delay = media_time = 0
        for edit in self.edits:
            if edit.media_time >= 0:
                media_time = edit.media_time
                break
            delay += edit.duration
        shift = _ticks(delay * self.timescale, movie_timescale) - media_time
        return shift if abs(shift) < FAR else Fraction(0)

    def segments(self, movie_timescale: int) -> tuple[Segment, ...]:
        """What the whole edit list presents, in order of time; empty without an edit list.

        An edit without a duration, or in a movie without a timescale, holds to the end.
        """
        segments: list[Segment] = []
        start = Fraction(0)
        if any(max(edit.media_time, edit.duration) >= FAR for edit in self.edits):
            return ()  # damage, as for `shift`
        for edit in self.edits:
            timed = edit.duration > 0 and movie_timescale > 0
            stop = start + Fraction(edit.duration, movie_timescale) if timed else None
            if edit.media_time >= 0:
                segments.append(Segment(start, stop, edit.media_time, Fraction(edit.rate)))
                if stop is None:
                    break
            start = start if stop is None else stop
        return tuple(segments)


def _ticks(delay: int, movie_timescale: int) -> Fraction:
    """A delay that is counted in both timescales; none where that of the movie is not known."""
    return Fraction(delay, movie_timescale) if movie_timescale else Fraction(0)


@record(frozen=True, slots=True)
class Movie:
    """One moov: its timescale and its tracks.

    Attributes:
        timescale: ticks a second of mvhd and of edit durations; 0: unknown.
        duration: mvhd's duration in those ticks, or mehd's where it is there.
        fragmented: whether an mvex announces fragments.
        tracks: in file order.
        chapters: of a Nero chapter list (chpl), in file order.
    """

    timescale: int
    duration: int
    fragmented: bool
    tracks: tuple[TrackInfo, ...]
    chapters: tuple[Chapter, ...] = ()


DESCRIPTION: Final = "stsd"
"""The type of runs of samples of fragments that use one sample description."""


@record(frozen=True, slots=True)
class SampleGroup:
    """A run of samples in an access-point group (ISO/IEC 14496-12, 10.1 and 10.4).

    Or, where a track has several sample descriptions and fragments, or some of them are encrypted
    and others not, a run that uses one of them.

    Attributes:
        grouping_type: `rap ` (open-GOP access point) or `roll` (pre-roll), with the space; `stsd`:
            the sample description.
        sample_start: number of the first sample in the track.
        sample_count: samples in the run.
        value: roll_distance in samples for `roll`; num_leading_samples for `rap ` (0: unknown);
            sample_description_index for `stsd` (8.8.7).
    """

    grouping_type: str
    sample_start: int
    sample_count: int
    value: int


# Languages by their tags (BCP 47) and by the three letters of MP4 (ISO 639-2/T).
_CODES: Final = """
ar=ara bg=bul ca=cat cs=ces cy=cym da=dan de=deu el=ell en=eng es=spa et=est eu=eus fa=fas fi=fin
fr=fra ga=gle gl=glg he=heb hi=hin hr=hrv hu=hun hy=hye id=ind is=isl it=ita ja=jpn ka=kat ko=kor
la=lat lt=lit lv=lav mk=mkd ms=msa nl=nld no=nor pl=pol pt=por ro=ron ru=rus sk=slk sl=slv sq=sqi
sr=srp sv=swe sw=swa ta=tam te=tel th=tha tr=tur uk=ukr ur=urd vi=vie zh=zho
"""
_LETTERS: Final = dict(pair.split("=") for pair in _CODES.split())
_BIBLIOGRAPHIC: Final = """
baq=eu chi=zh cze=cs dut=nl fre=fr geo=ka ger=de gre=el ice=is mac=mk may=ms per=fa rum=ro slo=sk
alb=sq arm=hy wel=cy
"""
_TAGS: Final = {letters: tag for tag, letters in _LETTERS.items()} | dict(
    pair.split("=") for pair in _BIBLIOGRAPHIC.split()
)


def three_letters(tag: str | None) -> str | None:
    """The ISO 639-2 code of a tag's language; None: there is none."""
    letters = (tag or "").split("-")[0].lower()
    letters = _LETTERS.get(letters, letters)
    return letters if len(letters) == 3 and letters.isascii() and letters.isalpha() else None


def language_tag(code: str | None) -> str | None:
    """The shortest tag of a language, as BCP 47 wants it (RFC 5646, 2.2.1)."""
    if code is None:
        return None
    first, dash, rest = code.partition("-")
    return _TAGS.get(first.lower(), first) + dash + rest
