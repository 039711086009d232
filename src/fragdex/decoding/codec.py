"""A fresh decoder for a track, made of its initialization segment alone.

The demuxer of FFmpeg's libraries reads the sample entry, and only that: it sees an initialization
segment without samples. What is decoded, and in what order, is this library's choice.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import warnings
from fractions import Fraction
from threading import Lock
from typing import Any, BinaryIO, Final

import numpy as np

from fragdex.errors import BuildError, MissingExtra, UndecodableMedia
from fragdex.muxing.movie import clip_init

MOST_PIXELS: Final = 8192 * 8192
"""Larger pictures would take the memory of a whole machine to decode."""

_BLOCKING_SYNC: Final = 4
"""CU_CTX_SCHED_BLOCKING_SYNC: FFmpeg shares no primary context that has other flags."""
_OPUS_HEAD = b"OpusHead"
_WITHOUT_MEMORY = ("flac", "alac", "adpcm_ima_qt")
# A frame or two. Opus, MP3 (whose frames borrow bytes of earlier ones) and AMR want more; so does
# a high band that says only now and then how it is made (`wide`: HE-AAC, some times a second).
_SHORT_MEMORY = ("aac", "ac3", "eac3")
_WIDE = ("mp4a.40.5", "mp4a.40.29", "mp4a.40.42")


def is_short_of_memory() -> bool:
    """Whether an allocation that failed in FFmpeg's libraries failed for lack of memory.

    They say ENOMEM of damage, too: a size that a file claims and no program gives, one stream too
    many. If there was memory for a plane of the largest picture, the file is to blame.
    """
    try:
        np.empty(2 * MOST_PIXELS, np.uint8)  # no page of it is touched
    except MemoryError:
        return True
    return False


def packet_of(data: bytes) -> Any:
    """PyAV's Packet of the bytes of a sample, with what decoders need after them.

    Decoders read some bytes over the end, and pixels depend on them where they are not 0
    (AV_INPUT_BUFFER_PADDING_SIZE). `av.Packet(data)` has only the bytes themselves.
    """
    import av

    packet = av.Packet(len(data))
    if data:
        packet.update(data)
    return packet


def hold_back(context: Any, depth: int) -> None:
    """Let a decoder give pictures in order from the first one on.

    Args:
        context: PyAV's VideoCodecContext; with several threads, one that has decoded nothing.
        depth: pictures that it holds back (`reorder_depth`); more where its parameter sets say so.

    Where an AVC stream does not say how far it reorders (E.2.1: bitstream_restriction_flag), the
    decoder of FFmpeg's libraries finds out by dropping pictures.
    """
    if context.codec.canonical_name != "h264":
        return  # the parameter sets of all others say it
    if hasattr(context, "reorder_depth"):
        context.reorder_depth = max(context.reorder_depth, depth)
    elif not context.is_open:
        # An older PyAV cannot set it: as many as the level of the stream allows.
        context.options = {**context.options, "strict": "strict"}


class TrackCodec:
    """What is needed to decode a track, again and again from fresh.

    Attributes:
        name: of the codec, as FFmpeg calls it, whichever of its decoders is used.
        wide: whether a high band is made out of the lower one (HE-AAC).
        device: what decodes it; None: the processor.
        skip: samples that the decoder gives at the start of the track and that are not sound
            (RFC 7845, 4.2); they are shown by no edit list where the track has none.

    Args:
        device: hardware that decodes: `cuda`, `vaapi`, `videotoolbox`, with a number or path
            after a colon where there are several; None: the processor. Where it cannot, a
            RuntimeWarning says why, and the processor decodes.
        stays: pictures stay in the memory of a CUDA device.
    """

    def __init__(
        self,
        init: bytes,
        track: int,
        codec: str | None = None,
        *,
        device: str | None = None,
        stays: bool = False,
    ) -> None:
        try:
            boxes = clip_init(init, {track}, delays=False, from_samples=True)
        except BuildError as error:
            raise UndecodableMedia(
                "there is no initialization segment",
                advice="give it with init=",
            ) from error
        self._init, self._track, self.device = b"".join(boxes), track, device
        self._stays, self._lock = stays, Lock()
        self.skip = 0
        self.wide = codec in _WIDE
        context = self._unused = self._made()
        self.name: str = context.codec.canonical_name
        self.kind: str = context.type

    @property
    def memory(self) -> Fraction:
        """Seconds after which a decoder has forgotten what came before.

        With so many before it, a span decodes as it does from the start of the track: to the bit
        where the codec lets it, to some 1e-4 of full scale where old samples only fade.
        """
        if self.raw or self.name in _WITHOUT_MEMORY:
            return Fraction(0)
        return Fraction(1, 4) if self.name in _SHORT_MEMORY and not self.wide else Fraction(1)

    @property
    def raw(self) -> bool:
        """Whether samples are PCM: each is decoded by itself, and many make one packet."""
        return self.name.startswith("pcm_")

    def fresh(self) -> Any:
        """A decoder (PyAV's CodecContext) that has decoded nothing."""
        unused, self._unused = self._unused, None
        return self._made() if unused is None else unused

    def _made(self) -> Any:
        try:
            import av
        except ImportError as error:
            raise MissingExtra("decoding needs PyAV", extra="media") from error
        if self.device is not None:
            context, why = self._on_device(av, self.device)
            if context is not None:
                return self._set_up(context)
            self.leave_device(why)
        try:
            streams = self._opened().streams
        except av.FFmpegError as error:
            if isinstance(error, MemoryError) and is_short_of_memory():
                raise
            raise UndecodableMedia(
                f"FFmpeg cannot read how track {self._track} is coded ({error.strerror})"
            ) from error
        if not len(streams):
            raise UndecodableMedia(f"FFmpeg finds no track {self._track} in the moov")
        if streams[0].codec_context is None:
            raise UndecodableMedia(
                f"FFmpeg has no decoder for track {self._track}",
                advice="install a build of PyAV with more decoders",
            )
        return self._set_up(streams[0].codec_context)

    def leave_device(self, why: str) -> None:
        """Let the processor decode from now on; a RuntimeWarning says so, once."""
        with self._lock:
            device, self.device = self.device, None
        if device is not None:
            self._unused = None
            warnings.warn(
                f"track {self._track} is decoded by the processor, not by {device}: {why}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _opened(self, **options: Any) -> Any:
        return open_container(io.BytesIO(self._init), format="mov", **options)

    def _on_device(self, av: Any, device: str) -> tuple[Any, str]:
        """A decoder on a device; or None, and why not."""
        kind, _, place = device.partition(":")
        try:
            from av.codec.hwaccel import HWAccel, hwdevices_available
        except ImportError:
            return None, f"PyAV {av.__version__} knows no devices (18 does)"
        if kind not in hwdevices_available():
            has = ", ".join(hwdevices_available()) or "none"
            return None, f"this build of PyAV has no {kind} (it has {has})"
        try:
            # A context of its own costs each decoder 200 ms and 590 MB: they share torch's.
            shared: dict[str, object] = {}
            if kind == "cuda":
                _share_context(int(place or 0))
                shared = {"primary_ctx": "1"}
            wanted = HWAccel(
                kind, place or None, allow_software_fallback=True, options=shared,
                is_hw_owned=self._stays,
            )  # fmt: skip
            context = self._opened(hwaccel=wanted).streams[0].codec_context
        except (av.FFmpegError, RuntimeError, ValueError, NotImplementedError) as error:
            if isinstance(error, MemoryError) and is_short_of_memory():
                raise
            return None, f"the device cannot be opened ({error})"
        if context is None or not context.is_hwaccel:
            return None, f"this build of PyAV has no decoder on {kind} for this codec"
        return context, ""

    def _set_up(self, context: Any) -> Any:
        # One thread: frames come out with the packet they belong to.
        context.thread_count = 1
        if context.type == "video":
            context.options = {"max_pixels": str(MOST_PIXELS)}
        extra = context.extradata or b""
        if context.codec.canonical_name == "opus" and extra[:8] == _OPUS_HEAD:
            # Each block would lose its first samples: only the start of the track may.
            self.skip = int.from_bytes(extra[10:12], "little")
            context.extradata = extra[:10] + b"\0\0" + extra[12:]
        return context


def _share_context(number: int) -> None:
    """Let FFmpeg's decoders share the CUDA context that torch and CuPy use (the primary one).

    A context of its own would cost each decoder 160 to 200 ms and 590 MB of the device, and its
    pictures could not be handed over. Does nothing where there is no driver.
    """
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxSetFlags_v2(number, _BLOCKING_SYNC)


_CUVID_CODECS: Final = {
    "mpeg1video": 0, "mpeg2video": 1, "mpeg4": 2, "vc1": 3, "h264": 4, "mjpeg": 5, "hevc": 8,
    "vp8": 9, "vp9": 10, "av1": 11,
}  # fmt: skip
"""cudaVideoCodec of NVIDIA's Video Codec SDK."""
_CAPS_BYTES: Final = 256
"""More than CUVIDDECODECAPS has in any version."""
_IS_SUPPORTED, _ENGINES = 24, 25
"""Offsets of bIsSupported and nNumNVDECs in it."""


@functools.lru_cache
def engines_of(number: int, codec: str) -> int:
    """How many engines of a CUDA device decode a codec, as its driver says; 0: it does not say.

    The first call keeps the primary context of the device, which decoders share, until the process
    ends.
    """
    kind = _CUVID_CODECS.get(codec)
    if kind is None:
        return 0
    caps = (ctypes.c_ubyte * _CAPS_BYTES)()
    ctypes.c_int.from_buffer(caps).value = kind
    ctypes.c_int.from_buffer(caps, 4).value = 1  # 4:2:0, of 8 bits
    try:
        driver, cuvid = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvcuvid.so.1")
        _share_context(number)
        context = ctypes.c_void_p()
        if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number):
            return 0
        if driver.cuCtxPushCurrent_v2(context):
            return 0
        failed = cuvid.cuvidGetDecoderCaps(caps)
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    except (OSError, AttributeError):
        return 0
    return 0 if failed or not caps[_IS_SUPPORTED] else caps[_ENGINES]


def open_container(file: BinaryIO, **options: Any) -> Any:
    """PyAV's InputContainer of a file.

    Args:
        file: seekable, at its start. Not a name: FFmpeg takes some names for protocols.

    Names, tags and titles in any encoding are taken; what is not UTF-8 in them is replaced. A file
    cannot make FFmpeg open another one: no protocol is enabled.

    Raises:
        av.FFmpegError: FFmpeg cannot read it.
        MissingExtra: PyAV is not installed.
    """
    try:
        import av
    except ModuleNotFoundError as error:
        raise MissingExtra("decoding needs PyAV", extra="media") from error
    settings = {"protocol_whitelist": "none", **options.pop("options", {})}
    return av.open(file, "r", options=settings, metadata_errors="replace", **options)
