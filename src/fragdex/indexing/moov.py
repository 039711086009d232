"""The moov: unpacked, parsed, and what is wrong with it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from fragdex.box_header import read_header
from fragdex.boxes import Box, parse_box
from fragdex.boxes.kinds import OpenText
from fragdex.errors import FormatError, LimitExceeded, MalformedBox
from fragdex.fragments.findings import Findings
from fragdex.indexing.colours import UNSAID, colours_of

MAX_PLAIN = 1 << 26
"""Bytes that the compressed moovs of a file may have when they are plain; real ones have few MB."""
MOST_CHILDREN = 16
"""Boxes that are looked through for a cmov: it stands alone in its moov."""


def plain_moov(data: bytes, *, offset: int = 0, room: int = MAX_PLAIN) -> bytes:
    """The moov itself where it is compressed; else the same bytes (QuickTime File Format, cmov).

    Args:
        room: bytes that it may have.

    Raises:
        MalformedBox: it is compressed in another way than by zlib, or damaged.
        LimitExceeded: it has more bytes than that.
    """
    cmov = _children(data, 0, len(data)).get(b"cmov")
    if cmov is None:
        return data
    inside = _children(data, *cmov)
    start, stop = inside.get(b"dcom", (0, 0))
    method = bytes(data[start : stop if stop - start <= 12 else start + 12][-4:])
    place, end = inside.get(b"cmvd", (0, 0))
    path = "moov/cmov"
    if method != b"zlib" or end - place < 12:
        raise MalformedBox(
            "the movie header is compressed in a way that is not known",
            path=path,
            offset=offset + cmov[0],
            expected="dcom with zlib, and cmvd",
            found=method.decode("latin-1") or "no dcom",
            advice="rewrite the file, for example with ffmpeg -i FILE -c copy OUT.mov",
        )
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(memoryview(data)[place + 12 : end], max(1, room))
    except zlib.error as error:
        raise MalformedBox(
            f"the compressed movie header is damaged: {error}",
            path=f"{path}/cmvd",
            offset=offset + place,
        ) from error
    if unpacking.unconsumed_tail:
        raise LimitExceeded(
            "the compressed movie header is too large",
            path=f"{path}/cmvd",
            offset=offset + place,
            expected=f"at most {room} bytes",
            found="more",
        )
    header = read_header(plain)
    if header is None or header.type != b"moov" or not header.fits(len(plain)):
        raise MalformedBox(
            "what the compressed movie header holds is not a moov",
            path=f"{path}/cmvd",
            offset=offset + place,
        )
    return plain[: header.size]


def plain_init(data: bytes) -> bytes:
    """An initialization segment that can be parsed: its moov plain, without damaged boxes.

    What `read_moov` skips is free space in it, at the same places.

    Raises: as `plain_moov`.
    """
    pieces: list[bytes] = []
    at, is_changed = 0, False
    while header := read_header(data, at):
        size = header.size_in(len(data) - at)
        if not size:
            cut = shortened_moov(data[at:]) if header.type == b"moov" else None
            return b"".join([*pieces, data[at:] if cut is None else cut])
        piece = data[at : at + size]
        if header.type == b"moov":
            plain = plain_moov(piece) if b"cmov" in piece else piece
            with suppress(MalformedBox):  # whoever parses it says so
                readable, moov, _ = _mended(plain, 0)
                plain = _single(readable, moov)
            is_changed |= plain is not piece
            piece = plain
        pieces.append(piece)
        at += size
    return b"".join([*pieces, data[at:]]) if is_changed else data


def _children(data: bytes, start: int, stop: int) -> dict[bytes, tuple[int, int]]:
    """Type → start and end of the first child of each type, of the box at `start`."""
    around = read_header(data, start, stop)
    children: dict[bytes, tuple[int, int]] = {}
    at = start + around.length if around is not None else stop
    for _ in range(MOST_CHILDREN):
        header = read_header(data, at, stop)
        if header is None or not header.fits(stop - at):
            break
        children.setdefault(header.type, (at, at + header.size))
        at += header.size
    return children


def shortened_moov(data: bytes) -> bytes | None:
    """A moov that ends within a box, ended before it; None where no chunk would be left."""
    out = bytearray(data)
    chain, at = [0], 8 if int.from_bytes(data[:4], "big") != 1 else 16
    while (header := read_header(out, at)) is not None:
        if header.size and header.fits(len(out) - at):
            at += header.size
            continue
        if header.type not in CONTAINERS:
            break
        chain.append(at)
        at += header.length
    for place in chain:
        if int.from_bytes(out[place : place + 4], "big") == 1:
            out[place + 8 : place + 16] = (at - place).to_bytes(8, "big")
        else:
            out[place : place + 4] = (at - place).to_bytes(4, "big")
    whole = bytes(out[:at])
    return whole if b"stco" in whole or b"co64" in whole else None


MAX_DAMAGED = 8
"""Damaged boxes of a moov that are skipped; one with more is refused."""
CONTAINERS = frozenset({b"moov", b"trak", b"edts", b"mdia", b"minf", b"dinf", b"stbl"})
UNUSED = frozenset(["udta", "meta", "vmhd", "smhd", "hmhd", "nmhd", "sthd", "gmhd", "iods"])
"""Boxes that say nothing about bytes or times: not looked into, whatever they hold."""
CONFIGURATIONS = frozenset(
    [
        *("avcC", "hvcC", "vvcC", "av1C", "vpcC", "dvcC", "dvvC", "dvwC", "colr"),
        *("esds", "dac3", "dec3", "dac4", "dOps", "dfLa", "mhaC", "pasp", "btrt", "clap", "fiel"),
    ]
)
"""Boxes of sample entries whose first bytes, if any, are requested: those make a codec string."""
SAMPLES = frozenset(
    ["sgpd", "csgp", "subs", "saiz", "saio", "senc", "sdtp", "stdp", "padb", "stsh", "stps", "cslg"]
)
"""Boxes of sample tables that are not read, or not by their declaration: they may hold much."""
LEFT = UNUSED | CONFIGURATIONS | SAMPLES
ALIKE = frozenset([b"hdlr", b"dinf", b"stsd"])
"""Boxes that one encoder writes alike into all files of a set."""
TABLES = frozenset(
    ["stts", "ctts", "stss", "stsz", "stz2", "stsc", "stco", "co64", "stbl", "minf", "mdia"]
)
"""Boxes without which (or without whose inside) the samples of a track are unknown."""


SINGLE: Final = {
    "moov": frozenset(["mvhd", "mvex"]),
    "trak": frozenset(["tkhd", "edts", "tref", "mdia"]),
    "edts": frozenset(["elst"]),
    "mdia": frozenset(["mdhd", "hdlr", "elng", "minf"]),
    "minf": frozenset(["vmhd", "smhd", "hmhd", "nmhd", "sthd", "dinf", "stbl"]),
    "dinf": frozenset(["dref"]),
    "stbl": frozenset(
        [
            *("stsd", "stts", "ctts", "cslg", "stss", "stsh", "stsz", "stz2", "stsc", "stco"),
            *("co64", "sdtp", "stdp", "padb"),
        ]
    ),
}
"""What stands at most once in the box around it (14496-12, 6.2.3), and holds no texts of users."""


class Moov(NamedTuple):
    """A parsed moov.

    Attributes:
        box: without what is damaged.
        lost: track_IDs whose samples the moov does not give.
    """

    box: Box
    errors: tuple[FormatError, ...]
    lost: frozenset[int]


def read_moov(data: bytes, offset: int, findings: Findings) -> Moov:
    """A moov, and what of its tracks had to be skipped.

    A damaged box inside of a track is read as if it were free space; so is the box around it
    where its size cannot be right.

    Raises:
        MalformedBox: it breaks the rules elsewhere than inside of a track, or too often.
        LimitExceeded: it passes a named limit.
    """
    _, moov, faults = _mended(data, offset)
    for box, path, track in _repeated(moov, "moov"):
        findings.add(
            "repeated-box",
            f"{box.type} comes again where it may stand once (6.2.3); the first counts",
            offset=box.offset,
            path=path,
            track=track,
        )
    if not faults:
        for box in moov.find_all("trak"):
            header = box.find("tkhd")  # or it is of a version that nobody defined
            if header is None or header.get("track_ID") is None:
                findings.add(
                    "damaged-track",
                    "no tkhd gives the track_ID, so nothing can refer to the track; it is left out",
                    offset=box.offset,
                    path="moov/trak",
                )
        return Moov(moov, (), frozenset())
    headers = {box.offset - offset: box.find("tkhd") for box in moov.find_all("trak")}
    lost = set()
    for reason, trak, kind in faults:
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
    return Moov(moov, tuple(one for one, _, _ in faults), frozenset(lost))


_Fault = tuple[MalformedBox, int, str]
"""A damaged box: what is wrong, the place of its trak, and its type."""


def _mended(data: bytes, offset: int) -> tuple[bytes, Box, list[_Fault]]:
    """A moov whose damaged boxes are free space: its bytes, itself, and those boxes."""
    try:
        return data, parse_box(data, offset=offset, leave=LEFT, alike=ALIKE), []
    except MalformedBox as error:
        reason = first = error
    mended = bytearray(data)
    faults: list[_Fault] = []
    while True:
        around = _around(mended, -1 if reason.offset is None else reason.offset - offset)
        if len(around) < 2 or len(faults) == MAX_DAMAGED:
            raise first
        name = slice(around[-1] + 4, around[-1] + 8)
        faults.append((reason, around[1], mended[name].decode("latin-1")))
        mended[name] = b"free"
        try:
            moov = parse_box(mended, offset=offset, leave=LEFT)
        except MalformedBox as error:
            reason = error
        else:
            return bytes(mended), moov, faults


def _repeated(
    box: Box, path: str, track: int | None = None
) -> Iterator[tuple[Box, str, int | None]]:
    """Boxes that stand again though they may stand only once, with their paths and track_IDs."""
    single = SINGLE.get(box.type, frozenset())
    if box.type == "trak":
        header = box.find("tkhd")
        track = header.get("track_ID") if header is not None else None
    known: set[str] = set()
    for child in box.children:
        here = f"{path}/{child.type}"
        if child.type in known:
            yield child, here, track
            continue
        if child.type in single:
            known.add(child.type)
        if child.type in SINGLE:
            yield from _repeated(child, here, track)


def _second_tracks(moov: Box) -> Iterator[Box]:
    """The traks and trexs of a track_ID that another one before them has."""
    for boxes in (moov.find_all("trak"), moov.find_all("mvex/trex")):
        known: set[int] = set()
        for box in boxes:
            header = box.find("tkhd") if box.type == "trak" else box
            number = header.get("track_ID") if header is not None else None
            if number in known:
                yield box
            elif number is not None:
                known.add(number)


def _single(data: bytes, moov: Box) -> bytes:
    """The bytes of a moov in which what counts only once stands only once."""
    again = [*(box for box, *_ in _repeated(moov, "moov")), *_second_tracks(moov)]
    if not again:
        return data
    freed = bytearray(data)
    for box in again:
        freed[box.offset + 4 : box.offset + 8] = b"free"
    return bytes(freed)


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


SELF_CONTAINED = 1
"""Flag of a data reference: the media data is in this file (8.7.2.2)."""
REFERENCES = ("url ", "urn ", "alis")
"""Data references that may name another file; imdt and snim name boxes of this one."""
MOST_NAMED = 80
"""Characters of a file's name that a message tells."""


def audit_tracks(
    moov: Box, findings: Findings, lost: frozenset[int] = frozenset()
) -> frozenset[int]:
    """Note what tracks contradict themselves in, and which say that their samples are elsewhere.

    Args:
        lost: track_IDs whose tables are damaged, which is reported already.

    Returns: track_IDs whose samples lie in other files.
    """
    known: set[int] = set()
    elsewhere: set[int] = set()
    for trak in moov.find_all("trak"):
        tkhd = trak.find("tkhd")
        track = tkhd.get("track_ID") if tkhd is not None else None
        if tkhd is None or track is None:
            continue
        note = partial(_note, findings, track)
        if track in known:
            note(
                "same-track-id",
                "two tracks have this track_ID, which must be unique (8.3.2); only the first is "
                "indexed",
                tkhd,
                "tkhd",
            )
            continue
        known.add(track)
        if not track:
            reason = "the track_ID is 0, which stands for no track (8.3.2)"
            note("track-id-zero", reason, tkhd, "tkhd")
        if track not in lost and _audit(trak, note):
            elsewhere.add(track)
        for path in ("mdia/elng", "mdia/minf/dinf/dref/*"):
            for box in trak.find_all(path):
                if OpenText in map(type, box.fields.values()):
                    reason = "a text has no zero byte at its end; it is read to the end of its box"
                    note("open-text", reason, box, path.replace("*", box.type))
        for entry in trak.find_all(f"{STSD}/*"):
            _note_colours(entry, note)
    _audit_defaults(moov, findings)
    return frozenset(elsewhere)


Note: TypeAlias = Callable[[str, str, Box, str], None]
"""Takes code and message of a finding of one track, the box, and its path in the trak."""
STSD, DREF = "mdia/minf/stbl/stsd", "mdia/minf/dinf/dref"


def _note(findings: Findings, track: int, code: str, message: str, box: Box, path: str) -> None:
    findings.add(code, message, offset=box.offset, path=f"moov/trak/{path}", track=track)


def _note_colours(entry: Box, note: Note) -> None:
    if not any(box.type in ("colr", "vpcC") for box in entry.children):
        return  # one place alone says them
    said = [
        (place, (one.primaries, one.transfer, one.matrix))
        for place, one in colours_of(entry)
        if UNSAID not in (one.primaries, one.transfer, one.matrix)
    ]
    for place, theirs in said[1:]:
        first, ours = said[0]
        if ours != theirs:
            reason = (
                f"{first} says the colours {ours}, and {place} {theirs}; {first} counts (12.1.5)"
            )
            note("colours-differ", reason, entry, STSD)
            return


def _audit_defaults(moov: Box, findings: Findings) -> None:
    described: dict[int, int] = {}
    extends = moov.find_all("mvex/trex")
    for trak in moov.find_all("trak") if extends else ():
        tkhd, entries = trak.find("tkhd"), trak.find_all(f"{STSD}/*")
        if tkhd is not None and "track_ID" in tkhd.fields:
            described.setdefault(tkhd["track_ID"], len(entries))
    for trex in extends:
        track, entry = trex.get("track_ID"), trex.get("default_sample_description_index")
        count = described.get(track) if track is not None else None
        if entry is not None and count and not 1 <= entry <= count:
            findings.add(
                "no-description",
                f"trex names sample entry {entry} of {count}",
                offset=trex.offset,
                path="moov/mvex/trex",
                track=track,
            )


def _audit(trak: Box, note: Note) -> bool:
    """Whether all samples of the track lie in other files."""
    stsd, dref = trak.find(STSD), trak.find(DREF)
    if stsd is None or not stsd.children:
        reason = "stsd has no entry, so nothing says how the samples are coded"
        note("no-sample-entry", reason, stsd or trak, STSD)
        return False
    entries = stsd.children
    if stsd.get("entry_count") not in (None, len(entries)):
        reason = f"stsd says that it has {stsd['entry_count']} entries, and has {len(entries)}"
        note("stsd-count", reason, stsd, STSD)
    if dref is None or not dref.children:
        return False
    if dref.get("entry_count") not in (None, len(dref.children)):
        reason = (
            f"dref says that it has {dref['entry_count']} entries, and has {len(dref.children)}"
        )
        note("dref-count", reason, dref, DREF)
    away = frozenset[int]()
    if not all(map(_holds_samples, dref.children)):
        away = entries_elsewhere(trak)
    for described, entry in enumerate(entries, 1):
        number = entry.get("data_reference_index")
        if number is None:
            continue
        if not 1 <= number <= len(dref.children):
            note(
                "no-data-reference",
                f"a sample entry names data reference {number} of {len(dref.children)}; the "
                "samples are taken for those of this file",
                entry,
                STSD,
            )
            continue
        reference = dref.children[number - 1]
        if _holds_samples(reference):
            continue
        if described in away:
            some = "" if len(away) == len(entries) else f" of sample entry {described}"
            done = "their places are of that file" if some else "they are left out"
            reason = f"the samples{some} are in another file, {_name(reference)}; {done}"
            note("media-elsewhere", reason, reference, DREF)
        else:
            note(
                "media-unnamed",
                "dref does not say that the samples are in this file, and names no other; they "
                "are taken for those of this file",
                reference,
                DREF,
            )
    return len(away) == len(entries)


def _holds_samples(reference: Box) -> bool:
    """Whether a data reference says that the samples are in this file."""
    return reference.type not in REFERENCES or bool(reference.get("flags", 0) & SELF_CONTAINED)


def entries_elsewhere(trak: Box) -> frozenset[int]:
    """Numbers (from 1) of the sample entries whose samples lie in another file, by its dref.

    A reference that names no file is taken for this one (ISO/IEC 14496-12, 8.7.2).
    """
    dref = trak.find("mdia/minf/dinf/dref")
    references = dref.children if dref is not None else ()
    away = {
        number
        for number, reference in enumerate(references, 1)
        if not _holds_samples(reference) and _name(reference)
    }
    entries = enumerate(trak.find_all("mdia/minf/stbl/stsd/*"), 1)
    return frozenset(n for n, entry in entries if entry.get("data_reference_index") in away)


def _name(reference: Box) -> str:
    """The file that a data reference names, for a message; "" where it names none."""
    if reference.type == "alis":
        return "of an alias record" if reference.get("alias") else ""
    name = str(reference.get("location") or reference.get("name") or "")
    return repr(name[:MOST_NAMED]) if name else ""
