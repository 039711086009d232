"""Media files opened by FFmpeg's demuxers, in one way: nothing else is opened or needed."""

from __future__ import annotations

from typing import Any, BinaryIO

from fragdex.errors import MissingExtra


def open_container(file: BinaryIO, **options: Any) -> Any:
    """PyAV's InputContainer of a file.

    Args:
        file: seekable, at its start. Not a name: FFmpeg takes some names for protocols.
        options: as of `av.open`.

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
