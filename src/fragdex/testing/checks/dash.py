"""MPDs held against ISO/IEC 23009-1, and against the segments that they name."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fragdex.testing.checks.dash_rules import mpd_rules
from fragdex.testing.checks.dash_schema import NAMESPACE, Place, schema_rules
from fragdex.testing.checks.dash_segments import segment_rules
from fragdex.testing.checks.violation import Read, Violation

__all__ = ["check_dash"]


def check_dash(text: str | bytes, read: Read | None = None) -> list[Violation]:
    """What is wrong in an MPD: elements, attributes and their values, then rules between them.

    Args:
        text: the MPD.
        read: gives the bytes of a URI, which is relative to the MPD unless a BaseURL is absolute.
            With it the segments of fragmented MP4 are held against codecs, times, durations,
            bandwidth, startWithSAP and the sidx. They are read only where the text breaks no rule.

    Raises: what `read` raises.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(3)
    >>> mpd = fragdex.index(data).export("dash", uri="film.mp4")
    >>> check_dash(mpd, lambda uri: data)
    []
    >>> print(*check_dash(mpd.replace(b' minBufferTime="PT2S"', b"")))
    /MPD: @minBufferTime is missing (attribute-required; ISO/IEC 23009-1, 5)
    """
    here = "/MPD"
    data = text if isinstance(text, bytes) else text.encode()
    if b"<!DOCTYPE" in data:
        return [Violation("doctype", "ISO/IEC 23009-1, 5.2", here, "a document type declaration")]
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        return [Violation("xml", "ISO/IEC 23009-1, 5.2", here, str(error))]
    mpd = Place(root, here)
    if root.tag != f"{{{NAMESPACE}}}MPD":
        return [mpd.wrong("root", "5.2", f"the root element is {root.tag}")]
    found = list(schema_rules(mpd))
    if not found:
        found += mpd_rules(mpd)
    if not found and read is not None:
        found += segment_rules(mpd, read)
    return list(dict.fromkeys(found))
