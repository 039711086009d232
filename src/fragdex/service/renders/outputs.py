"""What a render may be made into: `output` of a request, by its container."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from fragdex.rendering.films import LOUDEST, SOFTEST, Color, Film, Image
from fragdex.rendering.stills import Still
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    ApiModel,
)


class _Part(ApiModel):
    """A part of `output`; what it does not know is refused, not passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _absent(value: Any) -> bool:
    """What nobody asked for is not said either."""
    return value is None or value is False


def _optional(description: str) -> Any:
    return Field(None, description=description, exclude_if=_absent)


Crf = Annotated[int, Field(ge=0, le=63), JSON_NUMBER]
BitRate = Annotated[int, Field(ge=1000, le=2_000_000_000), JSON_NUMBER]
AudioBitRate = Annotated[int, Field(ge=32_000, le=510_000), JSON_NUMBER]
Lufs = Annotated[float, Field(ge=SOFTEST, le=LOUDEST), JSON_NUMBER]
Gop = Annotated[int, Field(ge=1, le=7200), JSON_NUMBER]
Name = Annotated[str, Field(max_length=32), NO_NUL]


VideoColor = TypeAliasType("VideoColor", Color)


class _Video(_Part):
    """The pictures of a film."""

    crf: Crf | None = _optional("constant quality on the codec's own scale; lower is better")
    bit_rate: BitRate | None = _optional("bits a second instead")
    preset: Name | None = _optional("of the encoder; of ProRes the profile")
    pixel_format: Name | None = _optional("FFmpeg's name, such as yuv444p")
    color: VideoColor | None = _optional("default bt709; bt2020-pq is for hevc, av1 and prores")
    gop: Gop | None = _optional("frames from one key frame to the next; default 2 s")


class _Audio(_Part):
    """The sound of a film."""

    bit_rate: AudioBitRate | None = _optional("bits a second")
    loudness: Lufs | None = _optional(
        "LUFS that it is brought to by one gain, as near as a true peak of -1 dBTP allows"
    )


Mp4VideoCodec = TypeAliasType("Mp4VideoCodec", Literal["h264", "hevc", "av1", "vp9"])


class Mp4Video(_Video):
    """The video of an MP4."""

    codec: Mp4VideoCodec = "h264"


Mp4AudioCodec = TypeAliasType("Mp4AudioCodec", Literal["aac", "opus", "mp3", "flac"])


class Mp4Audio(_Audio):
    """The audio of an MP4."""

    codec: Mp4AudioCodec = "aac"


MovVideoCodec = TypeAliasType("MovVideoCodec", Literal["h264", "hevc", "prores", "ffv1"])


class MovVideo(_Video):
    """The video of a QuickTime film."""

    codec: MovVideoCodec = "h264"


MovAudioCodec = TypeAliasType("MovAudioCodec", Literal["aac", "mp3", "pcm"])


class MovAudio(_Audio):
    """The audio of a QuickTime film."""

    codec: MovAudioCodec = "aac"


WebMVideoCodec = TypeAliasType("WebMVideoCodec", Literal["vp9", "av1"])


class WebMVideo(_Video):
    """The video of a WebM."""

    codec: WebMVideoCodec = "vp9"


class WebMAudio(_Audio):
    """The audio of a WebM."""

    codec: Literal["opus"] = "opus"


MkvVideoCodec = TypeAliasType(
    "MkvVideoCodec", Literal["h264", "hevc", "av1", "vp9", "prores", "ffv1"]
)


class MkvVideo(_Video):
    """The video of a Matroska file."""

    codec: MkvVideoCodec = "h264"


MkvAudioCodec = TypeAliasType("MkvAudioCodec", Literal["aac", "opus", "mp3", "flac", "pcm"])


class MkvAudio(_Audio):
    """The audio of a Matroska file."""

    codec: MkvAudioCodec = "aac"


_SILENT = "the sound is left out"
_CLEAR = "the page without its white ground"


def _unless_asked(description: str) -> Any:
    return Field(False, description=description, exclude_if=_absent)


class Mp4(_Part):
    """Frames and sound of the page."""

    container: Literal["mp4"] = "mp4"
    video: Mp4Video = Mp4Video.model_construct()
    audio: Mp4Audio = Mp4Audio.model_construct()
    silent: bool = _unless_asked(_SILENT)
    fragmented: bool = _unless_asked("in movie fragments, else one moov in front of the media")
    faststart: bool = _unless_asked("as films are that are not fragmented; of no effect")


class Mov(_Part):
    """The same as a QuickTime film."""

    container: Literal["mov"]
    video: MovVideo = MovVideo.model_construct()
    audio: MovAudio = MovAudio.model_construct()
    silent: bool = _unless_asked(_SILENT)
    transparency: bool = _unless_asked(_CLEAR)


class WebM(_Part):
    """The same as a WebM."""

    container: Literal["webm"]
    video: WebMVideo = WebMVideo.model_construct()
    audio: WebMAudio = WebMAudio.model_construct()
    silent: bool = _unless_asked(_SILENT)
    transparency: bool = _unless_asked(_CLEAR)


class Mkv(_Part):
    """The same as a Matroska file."""

    container: Literal["mkv"]
    video: MkvVideo = MkvVideo.model_construct()
    audio: MkvAudio = MkvAudio.model_construct()
    silent: bool = _unless_asked(_SILENT)
    transparency: bool = _unless_asked(_CLEAR)


class Gif(_Part):
    """Frames of the page in 256 colours, again and again."""

    container: Literal["gif"]
    transparency: bool = _unless_asked(_CLEAR)


class SoundAudio(_Audio):
    """The audio of a file of sound; its codec is that of the container."""


SoundContainer = TypeAliasType("SoundContainer", Literal["m4a", "mp3", "wav", "flac", "ogg"])


class Sound(_Part):
    """The sound of the page alone: AAC, MP3, PCM, FLAC or Opus."""

    container: SoundContainer
    audio: SoundAudio = SoundAudio.model_construct()


Percent = Annotated[int, Field(ge=1, le=100), JSON_NUMBER]
SequenceImage = TypeAliasType("SequenceImage", Image)


class ImageSequence(_Part):
    """A zip with a picture for each frame, named by its number: `00030.png`."""

    container: Literal["zip"]
    image: SequenceImage = "png"
    quality: Percent | None = _optional("of jpeg and webp; default 80")
    transparency: bool = _unless_asked(_CLEAR)


class AnimatedWebP(_Part):
    """Frames of the page, again and again."""

    container: Literal["animated-webp"]
    transparency: bool = _unless_asked(_CLEAR)


class Jpeg(_Part):
    """One frame; never transparent."""

    container: Literal["jpeg"]
    quality: Percent = 80


class Png(_Part):
    """One frame, without loss."""

    container: Literal["png"]
    compression: Annotated[Percent, Field(description="100: the smallest file")] = 80
    transparency: Annotated[bool, Field(description="the page without its white ground")] = False


class WebP(_Part):
    """One frame."""

    container: Literal["webp"]
    quality: Percent = 80
    compression: Annotated[
        int, Field(ge=0, le=6, description="6: the smallest file"), JSON_NUMBER
    ] = 4
    transparency: Annotated[bool, Field(description="the page without its white ground")] = False


Output: TypeAlias = (
    Mp4 | Mov | WebM | Mkv | Gif | AnimatedWebP | ImageSequence | Sound | Jpeg | Png | WebP
)

_OUTPUTS: Final[dict[str, type[_Part]]] = {
    "mp4": Mp4, "jpeg": Jpeg, "png": Png, "webp": WebP, "mov": Mov, "webm": WebM, "mkv": Mkv,
    "gif": Gif, "animated-webp": AnimatedWebP, "zip": ImageSequence,
    "m4a": Sound, "mp3": Sound, "wav": Sound, "flac": Sound, "ogg": Sound,
}  # fmt: skip


def _output(value: Any) -> Any:
    """The kind that is meant; a container that is not named is MP4.

    Its own errors then name its own fields, where a union's would name its members.
    """
    if isinstance(value, _Part):
        return value
    wrong: Any  # InitErrorDetails of pydantic's own core
    if not isinstance(value, dict):
        wrong = {"type": "dict_type", "input": value}
        raise ValidationError.from_exception_data("output", [wrong])
    named = value.get("container", "mp4")
    meant = _OUTPUTS.get(named) if isinstance(named, str) else None
    if meant is None:
        wrong = {
            "type": "literal_error",
            "loc": ("container",),
            "input": named,
            "ctx": {"expected": ", ".join(_OUTPUTS)},
        }
        raise ValidationError.from_exception_data("output", [wrong])
    return meant.model_validate(value)


class _ByContainer:
    """Says in the OpenAPI document how the kinds of output are told apart."""

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        places = {name: f"#/components/schemas/{kind.__name__}" for name, kind in _OUTPUTS.items()}
        told = {"propertyName": "container", "mapping": places}
        return {"oneOf": handler(schema)["anyOf"], "discriminator": told}


RenderOutput = TypeAliasType(
    "RenderOutput",
    Annotated[Output, BeforeValidator(_output), _ByContainer()],
)


def still_of(output: Output) -> Still | None:
    """The still that an output is; None for a film."""
    if isinstance(output, Jpeg | Png | WebP):
        return Still(**output.model_dump())
    return None


def film_of(output: Output) -> Film:
    """How an output stores a film; of a still how films usually are."""
    if isinstance(output, Jpeg | Png | WebP):
        return Film()
    if isinstance(output, Gif | AnimatedWebP):
        return Film(output.container, transparency=output.transparency)
    if isinstance(output, ImageSequence):
        return Film(**output.model_dump())
    if isinstance(output, Sound):
        audio = output.audio
        return Film(output.container, audio_bit_rate=audio.bit_rate, loudness=audio.loudness)
    return Film(
        output.container,
        **output.video.model_dump(),
        transparency=not isinstance(output, Mp4) and output.transparency,
        audio=None if output.silent else output.audio.codec,
        audio_bit_rate=None if output.silent else output.audio.bit_rate,
        loudness=None if output.silent else output.audio.loudness,
        sound=not output.silent,
        fragmented=isinstance(output, Mp4) and output.fragmented,
    )
