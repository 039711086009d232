"""What stays opaque: boxes kept as bytes, and the rule by which a body that does not fit is.

A box is opaque (`fields` is `{"data": …}`, a view of the input, nothing is copied) if

- its type is not in the tree, or its full-box version is not one its declaration covers,
- its body is too short for its declaration, or its children are no boxes, and the index does not
  stand on it: four-letter codes are reused in the field (`udta/name` is a full box in some files),
  and a damaged description is no reason to refuse a file whose samples can be found.

Boxes the index stands on (`ESSENTIAL`) raise MalformedBox instead; with `strict=True` all do. A
body longer than its declaration is no misfit: the rest goes to `Box.trailing`.
"""

from __future__ import annotations

_HINT = "packets of hint tracks: for servers that stream by RTP, not for finding samples"
_ITEMS = "items of still pictures: they are addressed by number, not by time"
_NESTED = "parameter sets of further layers, in the forms of their own standards"

OPAQUE: tuple[tuple[str, str], ...] = (
    ("mdat", "media data: its meaning is in the boxes that point into it, or in the codec"),
    ("imda", "media data of movie fragments, the same after a number"),
    ("idat", "data of items, addressed by iloc"),
    ("free", "free space: its content has no meaning"),
    ("skip", "free space: its content has no meaning"),
    ("wide", "room that QuickTime leaves for a 64-bit size"),
    ("iloc", _ITEMS),
    ("iprp", _ITEMS),
    ("iref", _ITEMS),
    ("ipro", _ITEMS),
    ("grpl", _ITEMS),
    ("fiin", "files for delivery by FLUTE: not media"),
    ("hnti", _HINT),
    ("hinf", _HINT),
    ("rtp ", _HINT),
    ("srtp", _HINT),
    ("rrtp", _HINT),
    ("fdp ", _HINT),
    ("encs", "an encrypted sample entry whose fields only its frma names"),
    ("enct", "an encrypted sample entry whose fields only its frma names"),
    ("encm", "an encrypted sample entry whose fields only its frma names"),
    ("text", "QuickTime text: its entry has no place for boxes"),
    ("lhvC", _NESTED),
    ("mvcC", _NESTED),
    ("svcC", _NESTED),
    ("evcC", "parameter sets of EVC, not yet met in files at hand"),
)
"""Types kept as bytes on purpose, with the reason; types that are not listed are not known."""

ESSENTIAL = frozenset(
    {
        *("moov", "mvhd", "trak", "tkhd", "edts", "elst", "mdia", "mdhd", "minf", "stbl", "stsd"),
        *("stts", "ctts", "stss", "stsz", "stz2", "stsc", "stco", "co64", "mvex", "mehd", "trex"),
        *("moof", "mfhd", "traf", "tfhd", "tfdt", "trun", "sidx", "mfra", "tfra", "mfro"),
    }
)
"""Boxes whose damage is an error: the places and times of samples come from them."""
