"""How a video or a still is stored: container, codecs, quality, and what of it goes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from fragdex.record import record
from fragdex.rendering.fields import MAX_FPS, declared, declared_fields

SOFTEST: Final = -70.0
LOUDEST: Final = -5.0
"""LUFS that sound may be brought to."""

Image = Literal["png", "jpeg", "webp"]
"""What each picture of an archive may be."""

Color = Literal["bt709", "bt2020-pq"]
"""BT.709, or BT.2020 with the transfer of SMPTE ST 2084: pages are no brighter, at 203 cd/m² for
white (ITU-R BT.2408), and fit next to what is."""

_X26X_PRESETS: Final = (
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
)  # fmt: skip
_PLANAR: Final = (
    "yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "yuv444p10le",
)  # fmt: skip
_MP4, _MOV, _WEBM, _MKV, _ZIP = "mp4", "mov", "webm", "mkv", "zip"


@record(frozen=True, slots=True, kw_only=True)
class Container:
    """A kind of file that renders become.

    Attributes:
        media_type: of the file.
        group: pictures and sound; pictures that move; a picture for each frame; sound; a picture.
        suffixes: of files that the command line takes for one.
        schema: the name of its settings in the service's interface; those alike share one.
        about: what it is, in a sentence.
        muxer: FFmpeg's name of what writes it; "": its own.
        is_isobmff: whether it consists of boxes.
        video, audio: its usual codecs; "": it has none.
        settings: fields of `Film` or `Still` that requests may set, besides video and audio.
        usual: what requests have where nobody sets it, and records tell.
        bounds: least and most of settings whose bounds are those of this container.
    """

    media_type: str
    group: Literal["film", "animation", "frames", "sound", "still"]
    suffixes: Sequence[str] = ()
    schema: str
    about: str
    muxer: str = ""
    is_isobmff: bool = False
    video: str = ""
    audio: str = ""
    settings: Sequence[str] = ()
    usual: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def _sound(suffixes: Sequence[str], media_type: str, audio: str, **more: Any) -> Container:
    return Container(
        group="sound", suffixes=suffixes, media_type=media_type, audio=audio, schema="Sound",
        about="The sound of the page alone: AAC, MP3, PCM, FLAC or Opus.", **more,
    )  # fmt: skip


CONTAINERS: Final[Mapping[str, Container]] = {
    _MP4: Container(
        group="film", media_type="video/mp4", suffixes=(".mp4", ".m4v"), is_isobmff=True,
        video="h264", audio="aac", settings=("sound", "fragmented"),
        schema="Mp4", about="Frames and sound of the page.",
    ),
    _MOV: Container(
        group="film", media_type="video/quicktime", suffixes=(".mov",), is_isobmff=True,
        video="h264", audio="aac", settings=("sound", "transparency"),
        schema="Mov", about="The same as a QuickTime file.",
    ),
    _WEBM: Container(
        group="film", media_type="video/webm", suffixes=(".webm",),
        video="vp9", audio="opus", settings=("sound", "transparency"),
        schema="WebM", about="The same as a WebM.",
    ),
    _MKV: Container(
        group="film", media_type="video/x-matroska", suffixes=(".mkv",), muxer="matroska",
        video="h264", audio="aac", settings=("sound", "transparency"),
        schema="Mkv", about="The same as a Matroska file.",
    ),
    "gif": Container(
        group="animation", media_type="image/gif", suffixes=(".gif",), settings=("transparency",),
        schema="Gif", about="Frames of the page in 256 colours, again and again.",
    ),
    "animated-webp": Container(
        group="animation", media_type="image/webp", settings=("transparency",),
        schema="AnimatedWebP", about="Frames of the page, again and again.",
    ),
    _ZIP: Container(
        group="frames", media_type="application/zip", schema="ImageSequence",
        about="A zip with a picture for each frame, named by its number: `00030.png`.",
        settings=("image", "quality", "transparency"), usual={"image": "png"},
    ),
    "m4a": _sound((".m4a",), "audio/mp4", "aac", muxer="ipod", is_isobmff=True),
    "mp3": _sound((".mp3",), "audio/mpeg", "mp3"),
    "wav": _sound((".wav",), "audio/wav", "pcm"),
    "flac": _sound((".flac",), "audio/flac", "flac"),
    "ogg": _sound((".ogg", ".opus"), "audio/ogg", "opus"),
    "png": Container(
        group="still", media_type="image/png", suffixes=(".png",), schema="Png",
        about="One frame, without loss.", settings=("compression", "transparency"),
        usual={"compression": 80, "transparency": False}, bounds={"compression": (1, 100)},
    ),
    "jpeg": Container(
        group="still", media_type="image/jpeg", suffixes=(".jpeg", ".jpg"), schema="Jpeg",
        about="One frame; never transparent.", settings=("quality",), usual={"quality": 80},
    ),
    "webp": Container(
        group="still", media_type="image/webp", suffixes=(".webp",), schema="WebP",
        about="One frame.", settings=("quality", "compression", "transparency"),
        usual={"quality": 80, "compression": 4, "transparency": False},
        bounds={"compression": (0, 6)},
    ),
}  # fmt: skip
"""Containers by name. GIF and WebP are pictures that move, and silent, as is an archive."""


@record(frozen=True, slots=True)
class VideoCodec:
    """A codec of pictures.

    Attributes:
        encoder: FFmpeg's name of what encodes it.
        containers: that hold it.
        formats: pixel formats that it takes; the first unless another is requested.
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


def video_codecs_of(container: str) -> list[str]:
    """The codecs of pictures that a container holds, its usual one first."""
    names = [name for name, codec in VIDEO_CODECS.items() if container in codec.containers]
    return sorted(names, key=lambda name: name != CONTAINERS[container].video)


def audio_codecs_of(container: str) -> list[str]:
    """The codecs of sound that a container holds, its usual one first."""
    names = [name for name, (_, holders) in AUDIO_CODECS.items() if container in holders]
    return sorted(names, key=lambda name: name != CONTAINERS[container].audio)


def _each(attribute: str, between: str) -> str:
    """What the codecs of pictures usually have, as text."""
    usual = {
        name: value[1] if isinstance(value, tuple) else value
        for name, codec in VIDEO_CODECS.items()
        if (value := getattr(codec, attribute)) is not None
    }
    return ", ".join(f"{name}{between}{value}" for name, value in usual.items())


_WITHOUT_BIT_RATE: Final = ("flac", "pcm")
_IMAGE: Final[Image] = "png"
_LIGHTLY: Final = {"png": 30}  # `Still.compression`: there are many of them
_QUALITIES: Final = {"png": False, "jpeg": True, "webp": True}
_GIF_FPS: Final = 50  # what lasts less than 20 ms lasts 100 ms in browsers
_MOST_BITS: Final = 2_000_000_000
_MOST_AUDIO_BITS: Final = 510_000
_LEAST_AUDIO_BITS: Final = 32_000
_MOST_GOP: Final = MAX_FPS * 60
_HDR: Final = ("hevc", "av1", "prores")
_TEN_BITS: Final = "10le"
_PRORES_444: Final = ("4444", "4444xq")

_QUALITY: Final[Mapping[str, Any]] = {
    "kind": "count", "option": "--quality", "metavar": "N", "least": 1, "most": 100,
    "help": "Quality, 1 to 100; of .jpeg and .webp.", "usual": "80",
    "docs": "of `.jpeg` and `.webp`, also of a file for each frame, 1 to 100",
    "json": "output/quality", "request": "of jpeg and webp; default 80",
}  # fmt: skip
_TRANSPARENCY: Final[Mapping[str, Any]] = {
    "kind": "flag", "option": "--transparent", "in_slices": True,
    "help": "Leave unpainted parts transparent: stills, .gif, VP9, ProRes, FFV1.",
    "docs": "what the page leaves unpainted stays transparent: `.png`, `.webp`, `.gif`, and videos "
    "in VP9, ProRes or FFV1",
    "json": "output/transparency", "request": "the page without its white ground",
}  # fmt: skip


@record(frozen=True, slots=True)
class Still:
    """How a still is stored.

    Attributes:
        container: `jpeg`, `png` or `webp`.
        quality: 1–100, of JPEG and WebP; WebP of a transparent page keeps its alpha whole.
        compression: PNG: 1–100, 100 the smallest file; WebP: 0–6, 6 the smallest file.
        transparency: what the page leaves unpainted stays transparent (PNG, WebP), else it is
            white.
    """

    container: Image = "png"
    quality: int = declared(80, **_QUALITY)
    compression: int | None = declared(
        None, "count", json="output/compression",
        request="of png 1 to 100, the smallest file; of webp 0 to 6",
    )  # fmt: skip
    transparency: bool = declared(False, **_TRANSPARENCY)

    @property
    def is_clear(self) -> bool:
        """Whether what the page leaves unpainted stays transparent."""
        return self.transparency and self.container != "jpeg"

    def check(self) -> None:
        """Refuse what the container does not have.

        Raises:
            ValueError: its message begins with the name of the attribute.
        """
        settings = CONTAINERS[self.container].settings
        if self.quality != 80 and "quality" not in settings:
            raise ValueError(f"quality: does not apply to .{self.container}")
        if not 1 <= self.quality <= 100:
            raise ValueError("quality: 1 to 100")
        if self.transparency and "transparency" not in settings:
            raise ValueError(f"transparency: a .{self.container} cannot be transparent")


@record(frozen=True, slots=True)
class Film:
    """How a video is stored; what is None is what its container or codec usually has.

    Attributes:
        container: a name of `CONTAINERS`.
        codec: a name of `VIDEO_CODECS`; None in GIF and WebP, which have their own.
        crf: constant quality; what the numbers mean is the codec's matter, lower is better.
        bit_rate: of the pictures instead, bits a second.
        preset: of the codec's encoder; the profile of ProRes.
        pixel_format: FFmpeg's name of it.
        color: of the pictures, a name of `Color`; bt709.
        gop: frames from one key frame to the next; some 2 s.
        transparency: what the page leaves unpainted stays transparent, else it is white.
        audio: a name of `AUDIO_CODECS`; audio_bit_rate: bits a second.
        loudness: LUFS that the sound is brought to, as near as its true peak allows.
        sound: False: none is kept, whatever the page plays.
        fragmented: movie fragments (MP4), else one moov in front of the media.
        image: what each picture of an archive is: `png`, `jpeg` or `webp`; png.
        quality: of them, 1–100; png has none.
    """

    container: str = _MP4
    codec: str | None = declared(
        None, "choice", option="--codec", metavar="NAME", json="output/video/codec",
        help=f"Video codec: {', '.join(VIDEO_CODECS)}.", usual="h264; in .webm vp9",
    )  # fmt: skip
    crf: int | None = declared(
        None, "count", option="--crf", metavar="N", in_slices=True,
        help="Constant quality, lower is better; the codec has its own scale.",
        usual=_each("crf", ": "), json="output/video/crf", least=0, most=63,
        request="constant quality on the codec's own scale; lower is better",
        request_docs="constant quality, lower is better: h264 and hevc 0 to 51 (18, 20), av1 1 to "
        "63 (24), vp9 0 to 63 (20)",
    )  # fmt: skip
    bit_rate: int | None = declared(
        None, "bits", option="--bit-rate", metavar="RATE", in_slices=True,
        help="Bit rate of the pictures instead: 800k, 5M.", json="output/video/bit_rate",
        least=1000, most=_MOST_BITS, request="bits a second instead",
    )  # fmt: skip
    preset: str | None = declared(
        None, "name", option="--preset", metavar="NAME", in_slices=True,
        help="Preset of the encoder, from fast to small; for ProRes the profile.",
        usual=f"{_each('preset', ': ')}, prores: hq", json="output/video/preset",
        request="of the encoder; of ProRes the profile",
        request_docs="h264, hevc: `ultrafast` to `veryslow` (`veryfast`); av1: `13` to `0` (`8`); "
        "vp9: `8` to `0` (`4`); prores: `proxy`, `lt`, `standard`, `hq`, `4444`, `4444xq` (`hq`)",
    )  # fmt: skip
    pixel_format: str | None = declared(
        None, "name", option="--pixel-format", metavar="NAME", in_slices=True,
        help="Pixel format, such as yuv444p, yuv420p10le.", usual="yuv420p; what the codec is for",
        docs="FFmpeg's name, such as `yuv444p`, `yuv420p10le`", json="output/video/pixel_format",
        request="FFmpeg's name, such as yuv444p",
        request_docs="such as `yuv444p`, `yuv420p10le`",
    )  # fmt: skip
    color: Color | None = declared(
        None, "choice", option="--color", metavar="NAME", in_slices=True, usual="bt709",
        choices=get_args(Color),
        help="Colours: bt709, or bt2020-pq for HDR with hevc, av1, prores.",
        docs="`bt709`, or `bt2020-pq`: BT.2020 with PQ in 10 bits, white at 203 cd/m², to be cut "
        "together with HDR (hevc, av1, prores); the page itself has no brighter colours",
        json="output/video/color",
        request="default bt709; bt2020-pq is for hevc, av1 and prores",
        request_docs="`bt709`, or `bt2020-pq` (hevc, av1, prores): converted to BT.2020 with PQ in "
        "10 bits, white at 203 cd/m², and tagged so",
    )  # fmt: skip
    gop: int | None = declared(
        None, "count", option="--gop", metavar="FRAMES", in_slices=True,
        help="Frames from one key frame to the next.", usual="2 s of them",
        json="output/video/gop", least=1, most=_MOST_GOP,
        request="frames from one key frame to the next; default 2 s",
    )  # fmt: skip
    transparency: bool = declared(False, **_TRANSPARENCY)
    audio: str | None = declared(
        None, "choice", option="--audio-codec", metavar="NAME", json="output/audio/codec",
        help=f"Audio codec: {', '.join(AUDIO_CODECS)}.", usual="aac; in .webm opus",
    )  # fmt: skip
    audio_bit_rate: int | None = declared(
        None, "bits", option="--audio-bit-rate", metavar="RATE",
        help="Bit rate of the sound: 128k.", usual="192k",
        json="output/audio/bit_rate", least=_LEAST_AUDIO_BITS, most=_MOST_AUDIO_BITS,
        request="bits a second; default 192,000",
    )  # fmt: skip
    loudness: float | None = declared(
        None, "number", option="--loudness", metavar="LUFS",
        help="Change the loudness of the sound to this, such as -23 or -14.",
        docs="bring the sound to this loudness, −70 to −5 (EBU R 128: −23), by one gain for all of "
        "it; less where its true peak would pass −1 dBTP",
        json="output/audio/loudness", least=SOFTEST, most=LOUDEST,
        request="LUFS that it is brought to by one gain, as near as a true peak of -1 dBTP allows",
    )  # fmt: skip
    sound: bool = declared(
        True, "absence", option="--no-sound", help="Leave out the sound.",
        json="output/silent", request="the sound is left out",
    )  # fmt: skip
    fragmented: bool = declared(
        False, "flag", option="--fragmented",
        help="Make a fragmented file (.mp4).", json="output/fragmented",
        request="in movie fragments, else one moov in front of the media",
    )  # fmt: skip
    image: Image | None = declared(
        None, "choice", json="output/image", choices=get_args(Image),
        request="what each picture is",
    )  # fmt: skip
    quality: int | None = declared(None, **_QUALITY)

    @property
    def kind(self) -> Container:
        """Its container, as the table has it."""
        return CONTAINERS[self.container]

    @property
    def of_slices(self) -> dict[str, Any]:
        """What is requested that decides the bytes of slices, by field."""
        return {
            name: value
            for name, one in declared_fields(Film).items()
            if one.in_slices and (value := getattr(self, name)) not in (None, False)
        }

    @property
    def is_animation(self) -> bool:
        """Whether it consists of pictures: without sound, encoded when all of them are there."""
        return self.kind.group in ("animation", "frames")

    @property
    def is_sound(self) -> bool:
        """Whether it is the sound alone: no picture is taken."""
        return self.kind.group == "sound"

    @property
    def still(self) -> Still:
        """How each picture of an archive is stored."""
        image = self.image or _IMAGE
        still = Still(image, compression=_LIGHTLY.get(image), transparency=self.transparency)
        return still if self.quality is None else replace(still, quality=self.quality)

    @property
    def is_isobmff(self) -> bool:
        """Whether its file consists of boxes, of which an index is made."""
        return self.kind.is_isobmff

    @property
    def video(self) -> VideoCodec:
        """Its codec; of an animation the one of its slices, which loses nothing; not of sound."""
        return VIDEO_CODECS[self.video_name]

    @property
    def video_name(self) -> str:
        """The name of that codec."""
        if self.is_sound:
            return ""
        return "ffv1" if self.is_animation else self.codec or self.kind.video

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
        """Whether it is encoded with the default settings."""
        return self.video_name == "h264" and not (
            self.preset or self.bit_rate or self.pixel_format or self.crf is not None
        )

    @property
    def _usual_audio(self) -> str:
        if self.video_name in ("prores", "ffv1") and self.container in (_MOV, _MKV):
            return "pcm"
        return self.kind.audio

    def check(self, fps: Fraction | None = None) -> None:
        """Refuse what does not go together.

        Args:
            fps: frames a second, where they are known.

        Raises:
            ValueError: its message begins with the name of the attribute, or with fps.
        """
        films = [name for name, one in CONTAINERS.items() if one.group != "still"]
        if self.container not in films:
            raise ValueError(f"container: {', '.join(films)} are known")
        self._check_applies()
        if self.container == _ZIP:
            self._check_archive()
        if self.is_animation:
            if fps is not None and self.container == "gif" and fps > _GIF_FPS:
                raise ValueError(
                    f"fps: a GIF has at most {_GIF_FPS}; players slow down faster ones"
                )
            return
        if self.is_sound:
            if not self.sound:
                raise ValueError(f"sound: .{self.container} has nothing else")
            self._check_sound()
            return
        if self.codec is not None and self.codec not in VIDEO_CODECS:
            raise ValueError(f"codec: {', '.join(VIDEO_CODECS)} are known")
        if self.container not in self.video.containers:
            fit = ", ".join(n for n, c in sorted(VIDEO_CODECS.items()) if self._fits(c.containers))
            raise ValueError(f"codec: .{self.container} holds {fit}, not {self.video_name}")
        self._check_quality()
        self._check_pixels()
        self._check_sound()
        if self.gop is not None and not 1 <= self.gop <= _MOST_GOP:
            raise ValueError(f"gop: 1 to {_MOST_GOP} frames")
        if self.fragmented and "fragmented" not in self.kind.settings:
            raise ValueError("fragmented: is for .mp4")

    def _check_applies(self) -> None:
        """Refuse what this kind of file does not have, whatever its codec is."""
        kind = self.kind
        parts = {"video": kind.video, "audio": kind.audio}
        of_films = ("transparency", "fragmented") if kind.group == "film" else ()
        for name, one in declared_fields(Film).items():
            has = parts.get(one.json.split("/")[1]) or name in (*kind.settings, *of_films, "sound")
            if not has and getattr(self, name) not in (None, False):
                why = f".{self.container} has no pictures" if self.is_sound else (
                    f"does not apply to {self.container}"
                )  # fmt: skip
                raise ValueError(f"{name}: {why}")

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
            options = (self.audio, self.audio_bit_rate, self.loudness)
            if any(value is not None for value in options):
                raise ValueError("audio: there is no sound")
            return
        if self.loudness is not None and not SOFTEST <= self.loudness <= LOUDEST:
            raise ValueError(f"loudness: {SOFTEST:g} to {LOUDEST:g} LUFS")
        name = self.audio or self._usual_audio
        if not self._fits(AUDIO_CODECS[name][1]):
            fit = ", ".join(
                n for n, (_, containers) in sorted(AUDIO_CODECS.items()) if self._fits(containers)
            )
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


def validate_containers() -> None:
    """Refuse tables that do not fit together, when they are loaded and not at some request.

    Raises:
        ValueError: a container has no codec of its own, or a setting that does not exist, or shares
            a suffix, or a codec names a container that is not there; the message says what to do.
    """
    suffixes: dict[str, str] = {}
    for name, one in CONTAINERS.items():
        tables = (
            ("video", "VIDEO_CODECS", video_codecs_of),
            ("audio", "AUDIO_CODECS", audio_codecs_of),
        )
        for stream, table, codecs_of in tables:
            usual, codecs = getattr(one, stream), codecs_of(name)
            needs_one = one.group == "film" or (one.group == "sound" and stream == "audio")
            if needs_one and not usual:
                raise ValueError(f"container {name}: a {one.group} needs its usual {stream} codec")
            if usual and usual not in codecs:
                raise ValueError(
                    f"container {name}: {usual} is its usual {stream} codec, but does not name it; "
                    f"add {name!r} to the containers of {usual!r} in {table}"
                )
        fields = declared_fields(Still if one.group == "still" else Film)
        for setting in (*one.settings, *one.usual, *one.bounds):
            if setting not in fields:
                raise ValueError(f"container {name}: there is no setting {setting!r}")
        for suffix in one.suffixes:
            if suffixes.setdefault(suffix, name) != name:
                raise ValueError(f"container {name}: {suffix} is that of {suffixes[suffix]}")
    holders = {codec: one.containers for codec, one in VIDEO_CODECS.items()}
    holders |= {codec: containers for codec, (_, containers) in AUDIO_CODECS.items()}
    for codec, containers in holders.items():
        for name in containers:
            if name not in CONTAINERS:
                raise ValueError(f"codec {codec}: there is no container {name!r} in CONTAINERS")


validate_containers()
