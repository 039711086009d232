"""A moov, parsed as far as it can be: damage in one track leaves the others as they are."""

from __future__ import annotations

from typing import NamedTuple

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse_box
from fragdex.errors import FormatError, MalformedBox
from fragdex.fragments.findings import Findings

__all__ = ["Moov", "read_moov"]

MAX_DAMAGED = 8
"""Damaged boxes of a moov that are passed over; one with more is refused."""
CONTAINERS = frozenset({b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl"})
UNUSED = frozenset(["udta", "meta", "vmhd", "smhd", "hmhd", "nmhd", "sthd", "gmhd", "iods"])
"""Boxes that say nothing about bytes or times: not looked into, whatever they hold."""
CONFIGURATIONS = frozenset(
    [
        *("avcC", "hvcC", "vvcC", "av1C", "vpcC", "dvcC", "dvvC", "dvwC", "colr"),
        *("esds", "dac3", "dec3", "dac4", "dOps", "dfLa", "mhaC", "pasp", "btrt", "clap", "fiel"),
    ]
)
"""Boxes of sample entries whose first bytes, if any, are asked for: those make a codec string."""
SAMPLES = frozenset(
    ["sgpd", "csgp", "subs", "saiz", "saio", "senc", "sdtp", "stdp", "padb", "stsh", "stps", "cslg"]
)
"""Boxes of sample tables that are not read, or not by their declaration: they may hold much."""
LEFT = UNUSED | CONFIGURATIONS | SAMPLES
TABLES = frozenset(
    ["stts", "ctts", "stss", "stsz", "stz2", "stsc", "stco", "co64", "stbl", "minf", "mdia"]
)
"""Boxes without which (or without whose inside) the samples of a track cannot be told."""


class Moov(NamedTuple):
    """A parsed moov.

    Attributes:
        box: without what is damaged.
        errors: what is wrong with the damaged boxes.
        lost: track_IDs whose samples cannot be told by the moov.
    """

    box: Box
    errors: tuple[FormatError, ...]
    lost: frozenset[int]


def read_moov(data: bytes, offset: int, findings: Findings) -> Moov:
    r"""A moov, and what of its tracks had to be passed over.

    A damaged box inside of a track is read as if it were free space; so is the box around it
    where its size cannot be right.

    Args:
        data: the moov.
        offset: its place in the file.
        findings: damage is noted here.

    Raises:
        MalformedBox: it breaks the rules elsewhere than inside of a track, or too often.
        LimitExceeded: it passes a named limit.

    >>> read_moov(b"\0\0\0\x08moov", 0, Findings()).errors
    ()
    """
    try:
        whole = parse_box(data, offset=offset, leave=LEFT)
    except MalformedBox as error:
        first = error
    else:
        _note_nameless(whole, findings)
        return Moov(whole, (), frozenset())
    mended = bytearray(data)
    found: list[tuple[MalformedBox, int, str]] = []
    moov, reason = None, first
    while moov is None:
        around = _around(mended, -1 if reason.offset is None else reason.offset - offset)
        if len(around) < 2 or len(found) == MAX_DAMAGED:
            raise first
        name = slice(around[-1] + 4, around[-1] + 8)
        found.append((reason, around[1], mended[name].decode("latin-1")))
        mended[name] = b"free"
        try:
            moov = parse_box(mended, offset=offset, leave=LEFT)
        except MalformedBox as error:
            reason = error
    headers = {box.offset - offset: box.find("tkhd") for box in moov.find_all("trak")}
    lost = set()
    for reason, trak, kind in found:
        header = headers.get(trak)
        track = header.get("track_ID") if header is not None else None
        if kind in TABLES and track is not None:
            lost.add(track)
        findings.add(
            "damaged-track",
            f"{reason.message}; {kind} is ignored",
            offset=reason.offset,
            path=reason.path,
            track=track,
        )
    return Moov(moov, tuple(one for one, _, _ in found), frozenset(lost))


def _note_nameless(moov: Box, findings: Findings) -> None:
    """Note tracks whose tkhd is not there, or of a version that nobody defined."""
    for trak in moov.find_all("trak"):
        header = trak.find("tkhd")
        if header is None or header.get("track_ID") is None:
            findings.add(
                "damaged-track",
                "no tkhd gives the track_ID, so nothing can refer to the track; it is left out",
                offset=trak.offset,
                path="moov/trak",
            )


def _around(data: bytearray, place: int) -> list[int]:
    """Places of the boxes from the moov down to the one at `place`, as far as sizes are right.

    Only of boxes inside of a trak; else at most the moov alone.
    """
    chain = [0]
    moov = read_header(data)
    at, stop = moov.length if moov is not None else 0, len(data)
    while (header := read_header(data, at, stop)) is not None:
        if not header.fits(stop - at) or place < at:
            break
        if place >= at + header.size:
            at += header.size
            continue
        if len(chain) == 1 and header.type != b"trak":
            break
        chain.append(at)
        if header.type not in CONTAINERS or place == at:
            break
        at, stop = at + header.length, at + header.size
    return chain
