"""How a film is stored: container, codecs, quality, and what of it goes together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, get_args

from fragdex.rendering.stills import Still

SOFTEST: Final = -70.0
LOUDEST: Final = -5.0
"""LUFS that sound may be brought to."""

Image = Literal["png", "jpeg", "webp"]
"""What each picture of an archive may be."""

Color = Literal["bt709", "bt2020-pq"]
"""BT.709, or BT.2020 with the transfer of SMPTE ST 2084: pages are no brighter, at 203 cd/m² for
white (ITU-R BT.2408), and stand beside what is."""

_X26X_PRESETS: Final = (
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
)  # fmt: skip
_PLANAR: Final = (
    "yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "yuv444p10le",
)  # fmt: skip
_MP4, _MOV, _WEBM, _MKV, _ZIP = "mp4", "mov", "webm", "mkv", "zip"

CONTAINERS: Final[Mapping[str, str]] = {
    _MP4: "video/mp4",
    _MOV: "video/quicktime",
    _WEBM: "video/webm",
    _MKV: "video/x-matroska",
    "gif": "image/gif",
    "animated-webp": "image/webp",
    "zip": "application/zip",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
}
"""Containers of films, each with its media type. GIF and WebP are pictures that move, an archive
has a picture for each frame: silent. The last five hold the sound alone."""


@dataclass(frozen=True, slots=True)
class VideoCodec:
    """A codec of pictures.

    Attributes:
        encoder: FFmpeg's name of what encodes it.
        containers: that hold it.
        formats: pixel formats that it takes; the first unless another is asked for.
        clear: the one with transparency, or None.
        crf: least, usual and most of its scale of constant quality; None: it has none.
        presets: from the fastest on; preset: the usual one, or None.
        has_bit_rate: whether it can be held to one.
    """

    encoder: str
    containers: Sequence[str]
    formats: Sequence[str]
    clear: str | None = None
    crf: tuple[int, int, int] | None = None
    presets: Sequence[str] = ()
    preset: str | None = None
    has_bit_rate: bool = True


VIDEO_CODECS: Final[Mapping[str, VideoCodec]] = {
    "h264": VideoCodec(
        "libx264", (_MP4, _MOV, _MKV), _PLANAR, None, (0, 18, 51), _X26X_PRESETS, "veryfast"
    ),
    "hevc": VideoCodec(
        "libx265", (_MP4, _MOV, _MKV), _PLANAR, None, (0, 20, 51), _X26X_PRESETS, "veryfast"
    ),
    "av1": VideoCodec(
        "libsvtav1", (_MP4, _WEBM, _MKV), ("yuv420p", "yuv420p10le"), None, (1, 24, 63),
        tuple(str(n) for n in range(13, -1, -1)), "8",
    ),
    "vp9": VideoCodec(
        "libvpx-vp9", (_WEBM, _MKV, _MP4), ("yuv420p", "yuv422p", "yuv444p"), "yuva420p",
        (0, 20, 63), tuple(str(n) for n in range(8, -1, -1)), "4",
    ),
    "prores": VideoCodec(
        "prores_ks", (_MOV, _MKV), ("yuv422p10le", "yuv444p10le"), "yuva444p10le", None,
        ("proxy", "lt", "standard", "hq", "4444", "4444xq"), None, has_bit_rate=False,
    ),
    "ffv1": VideoCodec(
        "ffv1", (_MKV, _MOV), ("bgr0", "yuv420p", "yuv444p"), "bgra", has_bit_rate=False
    ),
}  # fmt: skip
"""Codecs of pictures by the name that people say."""

AUDIO_CODECS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "aac": ("aac", (_MP4, _MOV, _MKV, "m4a")),
    "opus": ("libopus", (_MP4, _WEBM, _MKV, "ogg")),
    "mp3": ("libmp3lame", (_MP4, _MOV, _MKV, "mp3")),
    "flac": ("flac", (_MP4, _MKV, "flac")),
    "pcm": ("pcm_s16le", (_MOV, _MKV, "wav")),
}
"""Codecs of sound: FFmpeg's name of what encodes it, and the containers that hold it."""

_USUAL: Final = {_MP4: ("h264", "aac"), _MOV: ("h264", "aac"), _WEBM: ("vp9", "opus"),
                 _MKV: ("h264", "aac")}  # fmt: skip
_OF_SOUND: Final = {"m4a": "aac", "mp3": "mp3", "wav": "pcm", "flac": "flac", "ogg": "opus"}
_OF_PICTURES: Final = (
    "codec", "crf", "bit_rate", "preset", "pixel_format", "gop", "transparency", "fragmented",
    "color",
)  # fmt: skip
_WITHOUT_BIT_RATE: Final = ("flac", "pcm")
_IMAGE: Final[Image] = "png"
_LIGHTLY: Final = {"png": 30}  # `Still.compression`: there are many of them
_QUALITIES: Final = {"png": False, "jpeg": True, "webp": True}
_GIF_FPS: Final = 50  # what lasts less than 20 ms lasts 100 ms in browsers
_MOST_BITS: Final = 2_000_000_000
_MOST_AUDIO_BITS: Final = 510_000
_LEAST_AUDIO_BITS: Final = 32_000
_HDR: Final = ("hevc", "av1", "prores")
_TEN_BITS: Final = "10le"
_PRORES_444: Final = ("4444", "4444xq")


@dataclass(frozen=True, slots=True)
class Film:
    """How a film is stored; what is None is what its container or codec usually has.

    Attributes:
        container: a name of `CONTAINERS`.
        codec: a name of `VIDEO_CODECS`; None in GIF and WebP, which have their own.
        crf: constant quality; what the numbers mean is the codec's matter, lower is better.
        bit_rate: of the pictures instead, bits a second.
        preset: of the codec's encoder; the profile of ProRes.
        pixel_format: FFmpeg's name of it.
        gop: frames from one key frame to the next; some 2 s.
        transparency: what the page leaves unpainted stays transparent, else it is white.
        audio: a name of `AUDIO_CODECS`; audio_bit_rate: bits a second.
        sound: False: none is kept, whatever the page plays.
        color: of the pictures, a name of `Color`; bt709.
        loudness: LUFS that the sound is brought to, as near as its true peak allows.
        fragmented: movie fragments (MP4), else one moov in front of the media.
        image: what each picture of an archive is: `png`, `jpeg` or `webp`; png.
        quality: of them, 1–100; png has none.

    >>> Film("webm").video.encoder, Film("webm").sound_codec
    ('libvpx-vp9', 'libopus')
    >>> Film("webm", codec="h264").check()
    Traceback (most recent call last):
    ...
    ValueError: codec: .webm holds av1, vp9, not h264
    """

    container: str = _MP4
    codec: str | None = None
    crf: int | None = None
    bit_rate: int | None = None
    preset: str | None = None
    pixel_format: str | None = None
    gop: int | None = None
    transparency: bool = False
    audio: str | None = None
    audio_bit_rate: int | None = None
    sound: bool = True
    fragmented: bool = False
    image: Image | None = None
    quality: int | None = None
    loudness: float | None = None
    color: Color | None = None

    @property
    def is_animation(self) -> bool:
        """Whether it consists of pictures: without sound, encoded when all of them are there."""
        return self.container not in _USUAL and not self.is_sound

    @property
    def is_sound(self) -> bool:
        """Whether it is the sound alone: no picture is taken."""
        return self.container in _OF_SOUND

    @property
    def still(self) -> Still:
        """How each picture of an archive is stored."""
        image = self.image or _IMAGE
        still = Still(image, compression=_LIGHTLY.get(image), transparency=self.transparency)
        return still if self.quality is None else replace(still, quality=self.quality)

    @property
    def is_isobmff(self) -> bool:
        """Whether its file consists of boxes, of which an index is made."""
        return self.container in (_MP4, _MOV, "m4a")

    @property
    def video(self) -> VideoCodec:
        """Its codec; of an animation the one of its slices, which loses nothing; not of sound."""
        return VIDEO_CODECS[self.video_name]

    @property
    def video_name(self) -> str:
        """The name of that codec."""
        if self.is_sound:
            return ""
        return "ffv1" if self.is_animation else self.codec or _USUAL[self.container][0]

    @property
    def sound_codec(self) -> str | None:
        """What encodes its sound; None: it has none."""
        if self.is_animation or not self.sound:
            return None
        return AUDIO_CODECS[self.audio or self._usual_audio][0]

    @property
    def format(self) -> str:
        """The pixel format of what is encoded."""
        video = self.video
        if self.transparency and video.clear is not None:
            return video.clear
        if self.pixel_format is None and self.preset in _PRORES_444:
            return "yuv444p10le"
        if self.pixel_format is None and self.is_pq:
            return next(name for name in video.formats if name.endswith(_TEN_BITS))
        return self.pixel_format or video.formats[0]

    @property
    def is_pq(self) -> bool:
        """Whether its colours are those of BT.2020 with PQ."""
        return self.color == "bt2020-pq"

    @property
    def is_plain(self) -> bool:
        """Whether it is encoded as films are where nobody asks for more."""
        return self.video_name == "h264" and not (
            self.preset or self.bit_rate or self.pixel_format or self.crf is not None
        )

    @property
    def _usual_audio(self) -> str:
        if self.is_sound:
            return _OF_SOUND[self.container]
        if self.video_name in ("prores", "ffv1") and self.container in (_MOV, _MKV):
            return "pcm"
        return _USUAL[self.container][1]

    def check(self, fps: Fraction | None = None) -> None:
        """Refuse what does not go together.

        Args:
            fps: frames a second, where they are known.

        Raises:
            ValueError: its message begins with the name of the attribute, or with fps.
        """
        if self.container not in CONTAINERS:
            raise ValueError(f"container: {', '.join(CONTAINERS)} are known")
        if self.container == _ZIP:
            self._check_archive()
        elif self.image is not None or self.quality is not None:
            name = "quality" if self.image is None else "image"
            raise ValueError(f"{name}: does not apply to {self.container}")
        if self.is_animation:
            self._check_animation()
            if fps is not None and self.container == "gif" and fps > _GIF_FPS:
                raise ValueError(
                    f"fps: a GIF has at most {_GIF_FPS}; players slow down faster ones"
                )
            return
        if self.is_sound:
            self._check_alone()
            return
        if self.codec is not None and self.codec not in VIDEO_CODECS:
            raise ValueError(f"codec: {', '.join(VIDEO_CODECS)} are known")
        if self.container not in self.video.containers:
            fit = ", ".join(n for n, c in sorted(VIDEO_CODECS.items()) if self._fits(c.containers))
            raise ValueError(f"codec: .{self.container} holds {fit}, not {self.video_name}")
        self._check_quality()
        self._check_pixels()
        self._check_sound()
        if self.gop is not None and not 1 <= self.gop <= MAX_FPS * 60:
            raise ValueError(f"gop: 1 to {MAX_FPS * 60} frames")
        if self.fragmented and self.container != _MP4:
            raise ValueError("fragmented: is for .mp4")

    def _check_animation(self) -> None:
        for name in ("codec", "crf", "bit_rate", "preset", "pixel_format", "gop", "audio",
                     "audio_bit_rate", "fragmented", "loudness", "color"):  # fmt: skip
            if getattr(self, name):
                raise ValueError(f"{name}: does not apply to {self.container}")

    def _check_alone(self) -> None:
        for name in _OF_PICTURES:
            if getattr(self, name) not in (None, False):
                raise ValueError(f"{name}: .{self.container} has no pictures")
        if not self.sound:
            raise ValueError(f"sound: .{self.container} has nothing else")
        self._check_sound()

    def _check_archive(self) -> None:
        image = self.image or _IMAGE
        if image not in _QUALITIES:
            raise ValueError(f"image: {', '.join(_QUALITIES)} are known")
        if self.quality is not None:
            if not _QUALITIES[image]:
                raise ValueError(f"quality: {image} has none")
            if not 1 <= self.quality <= 100:
                raise ValueError("quality: 1 to 100")
        if self.transparency and image == "jpeg":
            raise ValueError("transparency: jpeg has none; png and webp do")

    def _check_quality(self) -> None:
        name, video = self.video_name, self.video
        if self.crf is not None:
            if video.crf is None:
                raise ValueError(f"crf: {name} has none")
            if not video.crf[0] <= self.crf <= video.crf[2]:
                raise ValueError(f"crf: {video.crf[0]} to {video.crf[2]} with {name}")
            if self.bit_rate is not None:
                raise ValueError("crf: does not go together with bit_rate")
        if self.bit_rate is not None:
            if not video.has_bit_rate:
                raise ValueError(f"bit_rate: {name} has none")
            if not 1000 <= self.bit_rate <= _MOST_BITS:
                raise ValueError(f"bit_rate: 1000 to {_MOST_BITS} bits a second")
        if self.preset is not None and self.preset not in video.presets:
            known = ", ".join(video.presets) or "none"
            raise ValueError(f"preset: {name} has {known}")

    def _check_pixels(self) -> None:
        name, video = self.video_name, self.video
        self._check_color()
        if self.transparency:
            if video.clear is None:
                fit = ", ".join(n for n, c in VIDEO_CODECS.items() if c.clear)
                # hevc could have some: the x265 that comes with PyAV is built without
                raise ValueError(f"transparency: {name} has none here; {fit} do")
            if name == "vp9" and self.container == _MP4:
                raise ValueError("transparency: .mp4 has none; .webm, .mkv and .mov do")
            if self.preset is not None and name == "prores" and self.preset not in _PRORES_444:
                raise ValueError(f"transparency: is for prores {' and '.join(_PRORES_444)}")
            if self.pixel_format not in (None, video.clear):
                raise ValueError(f"pixel_format: {video.clear} with transparency")
        elif self.pixel_format is not None and self.pixel_format not in video.formats:
            raise ValueError(f"pixel_format: {name} has {', '.join(video.formats)}")
        if name == "prores" and self.preset is not None and self.pixel_format is not None:
            is_444 = self.preset in _PRORES_444
            if is_444 != (self.pixel_format != "yuv422p10le"):
                raise ValueError(f"pixel_format: prores {self.preset} has another")

    def _check_color(self) -> None:
        if self.color not in (None, *get_args(Color)):
            raise ValueError(f"color: {', '.join(get_args(Color))} are known")
        if not self.is_pq:
            return
        if self.video_name not in _HDR:
            raise ValueError(f"color: bt2020-pq is for {', '.join(_HDR)}")
        if self.transparency:
            raise ValueError("color: bt2020-pq does not go together with transparency")
        if not self.format.endswith(_TEN_BITS):
            raise ValueError("pixel_format: bt2020-pq has 10 bits, such as yuv420p10le")

    def _check_sound(self) -> None:
        if self.audio is not None and self.audio not in AUDIO_CODECS:
            raise ValueError(f"audio: {', '.join(AUDIO_CODECS)} are known")
        if not self.sound:
            asked = (self.audio, self.audio_bit_rate, self.loudness)
            if any(value is not None for value in asked):
                raise ValueError("audio: there is no sound")
            return
        if self.loudness is not None and not SOFTEST <= self.loudness <= LOUDEST:
            raise ValueError(f"loudness: {SOFTEST:g} to {LOUDEST:g} LUFS")
        name = self.audio or self._usual_audio
        if not self._fits(AUDIO_CODECS[name][1]):
            fit = ", ".join(n for n, (_, held) in sorted(AUDIO_CODECS.items()) if self._fits(held))
            raise ValueError(f"audio: .{self.container} holds {fit}, not {name}")
        if self.audio_bit_rate is not None:
            if name in _WITHOUT_BIT_RATE:
                raise ValueError(f"audio_bit_rate: {name} has none")
            if not _LEAST_AUDIO_BITS <= self.audio_bit_rate <= _MOST_AUDIO_BITS:
                raise ValueError(
                    f"audio_bit_rate: {_LEAST_AUDIO_BITS} to {_MOST_AUDIO_BITS} bits a second"
                )

    def _fits(self, containers: Sequence[str]) -> bool:
        return self.container in containers


MAX_FPS: Final = 120

# Rates that are written with two or three digits and mean a thousandth less than whole (SMPTE).
_NTSC: Final = {round(1000 * n / 1.001): Fraction(1000 * n, 1001) for n in (24, 30, 48, 60, 120)}
RATE: Final = "[0-9]{1,6}(?:/[1-9][0-9]{0,4})?"
"""What a rate looks like that is written out."""

_RATE: Final = re.compile(RATE)


def rate_of(value: float | str) -> Fraction:
    """Frames a second, exactly.

    >>> rate_of(29.97), rate_of("30000/1001"), rate_of(25), rate_of(12.5)
    (Fraction(30000, 1001), Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))

    Raises:
        ValueError: no rate, or none between 1 and 120.
    """
    if isinstance(value, str):
        if not _RATE.fullmatch(value):
            raise ValueError("a number, or a fraction such as 30000/1001, is expected")
        rate = Fraction(value)
    elif isinstance(value, int):
        rate = Fraction(value)
    else:
        near = min(_NTSC, key=lambda thousandths: abs(thousandths - 1000 * value))
        rate = _NTSC[near] if abs(near - 1000 * value) < 6 else Fraction(str(value))
        rate = rate.limit_denominator(1001)
    if not 1 <= rate <= MAX_FPS:
        raise ValueError(f"frames a second are 1 to {MAX_FPS}")
    return rate
