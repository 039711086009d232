"""Which codecs browsers play from a fragmented MP4 through MediaSource, by what they say.

The table in docs/browsers.md says what Chromium answers for each, and tests/transcode asks
it again. H.264 is kept to 8 bits and 4:2:0 although Chromium decodes more in software: decoders in
hardware, which other browsers and devices use, do not. Whether HEVC plays depends on the
viewer's machine.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fragdex.indexing.codecs import Missing, aac_config

# By RFC 6381 codec string, with FFmpeg's name of the codec.
_STRINGS: Final = (
    # profiles of 8 bits and 4:2:0 (ISO/IEC 14496-10, Annex A): Baseline, Main, High
    (re.compile(r"avc1\.(42|4D|64)[0-9A-F]{4}", re.IGNORECASE), "h264"),
    # profiles 0 and 2: 4:2:0, of 10 bits at most
    (re.compile(r"vp09\.0[02]\.\d\d\.(08|10)(\..*)?"), "vp9"),
    (re.compile(r"av01\.0\.\d\d[MH]\.(08|10)(\..*)?"), "av1"),
    (re.compile(r"mp4a\.40\.(2|5|29)"), "aac"),
    (re.compile(r"Opus", re.IGNORECASE), "opus"),
    (re.compile(r"fLaC", re.IGNORECASE), "flac"),
)
# By FFmpeg's name of the codec: pixel formats, or None for sound.
_STREAMS: Final = {
    "h264": {"yuv420p", "yuvj420p"},
    "vp9": {"yuv420p", "yuv420p10le"},
    "av1": {"yuv420p", "yuv420p10le"},
    "aac": None,
    "opus": None,
    "flac": None,
}
# By FFmpeg's names of profiles, where a codec has some that browsers refuse.
_PROFILES: Final = {
    "h264": {"Baseline", "Constrained Baseline", "Main", "High"},
    "aac": {"LC", "HE-AAC", "HE-AACv2"},
}
# channelConfiguration (ISO/IEC 14496-3, 1.6.3.5): browsers know the first layouts, and refuse 0,
# where a program_config_element names the channels.
_CHANNEL_CONFIGURATIONS: Final = range(1, 8)


def codec_name(codec: str | None) -> str | None:
    """FFmpeg's name of a codec that browsers play, by its codec string; None for any other."""
    for pattern, name in _STRINGS:
        if pattern.fullmatch(codec or ""):
            return name
    return None


def why_not_channels(configuration: int | None) -> str | None:
    """Why browsers refuse AAC of a channelConfiguration; None where they do not."""
    if configuration in _CHANNEL_CONFIGURATIONS:
        return None
    return f"browsers do not play aac of channel configuration {configuration}"


def why_not_played(codec: str, context: Any) -> list[str]:
    """Why browsers would not play the packets of a stream as they are; empty where they do."""
    if codec not in _STREAMS:
        return [f"browsers do not play {codec}"]
    profiles, formats = _PROFILES.get(codec), _STREAMS[codec]
    if formats is not None and context.pix_fmt not in formats:
        return [f"browsers do not play {codec} of {context.pix_fmt}"]
    if profiles is not None and context.profile not in profiles:
        return [f"browsers do not play {codec} of profile {context.profile}"]
    if codec == "h264" and not context.extradata:
        return ["its parameter sets are not in its header"]
    return []


def why_not_begun(codec: str, context: Any, packet: Any) -> list[str]:
    """The same for what the first packet of a stream says, where its header does not."""
    if codec != "aac":
        return []
    extra = context.extradata
    try:
        configuration = aac_config(bytes(extra)).channel_configuration if extra else _adts(packet)
    except Missing:
        configuration = None
    reason = why_not_channels(configuration)
    return [reason] if reason else []


def _adts(packet: Any) -> int | None:
    """channel_configuration of an ADTS header (ISO/IEC 14496-3, 1.A.2.2); None: there is none."""
    head = bytes(memoryview(packet)[:4])
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:
        return None
    return (head[2] & 1) << 2 | head[3] >> 6
