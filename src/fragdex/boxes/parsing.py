"""Bytes to boxes, and back; and what stays opaque: kept as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import Any, Literal

from fragdex.box_header import SizeForm, only_zeros, read_header
from fragdex.boxes.box import Box, parsed
from fragdex.boxes.kinds import OpenText
from fragdex.boxes.layout import BoxLayout
from fragdex.boxes.limits import MAX_BOXES, MAX_BOXES_PER_ROOT, MAX_DEPTH
from fragdex.boxes.tree import layout_of, layout_of_entry
from fragdex.errors import (
    BuildError,
    FragdexError,
    LimitExceeded,
    MalformedBox,
    NotISOBMFF,
    TruncatedInput,
)

# What stays opaque: boxes kept as bytes, and the rule by which a body that does not fit is.
#
# A box is opaque (`fields` is `{"data": …}`, a view of the input, nothing is copied) if
#
# - its type is not in the tree, or its full-box version is not one its declaration covers,
# - its body is too short for its declaration, or its children are not boxes, and the index does not
#   stand on it: four-letter codes are reused in the field (`udta/name` is a full box in some
#   files), and a damaged description is no reason to refuse a file whose samples can be found.
#
# Boxes the index stands on (`ESSENTIAL`) raise MalformedBox instead; with `strict=True` all do. A
# body longer than its declaration is not a misfit: the rest goes to `Box.trailing`.


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


_SHORT = Struct(">I4s").unpack_from
_EMPTY = MappingProxyType({"data": memoryview(b"")})
"""Fields of every box without a body, of which a file may hold a million."""


def parse(
    data: bytes | bytearray | memoryview, *, offset: int = 0, strict: bool = False
) -> tuple[Box, ...]:
    """All complete boxes at the top level of `data` (ISO/IEC 14496-12, 4.2).

    A box that the data end before is left out, so that a growing or truncated file gives what is
    complete: the last box's `stop` says how far. Payloads are views of `data`; nothing is copied.

    Args:
        data: bytes-like.
        offset: where `data` starts in its file; the offsets of boxes count from there.
        strict: also refuse an incomplete last box, bodies that do not fit their declaration
            even if the index does not need them, and stray bytes after children.

    Raises:
        NotISOBMFF: there is no box at the start.
        MalformedBox: a box contradicts itself or its parent.
        TruncatedInput: no box is complete; or `strict`, and the last one is not.
        LimitExceeded: more boxes, or deeper ones, than `limits` allows.

    >>> [box.type for box in parse(bytes.fromhex("00000008 66726565 00000008 6d6f6f66"))]
    ['free', 'moof']
    """
    view = memoryview(data).cast("B")
    boxes: list[Box] = []
    at = 0
    while at < len(view):
        if len(boxes) >= MAX_BOXES:
            raise LimitExceeded("too many boxes", offset=offset + at, expected=MAX_BOXES)
        try:
            box = _Reader(view, offset, strict).box(at, len(view), None, 0)
        except (TruncatedInput, MalformedBox) as error:
            if at == 0 and not _known(view):
                raise NotISOBMFF(
                    "there is no box at the start",
                    offset=offset,
                    expected="a size and a four-letter code",
                    found=bytes(view[:8]),
                ) from error
            if boxes and not strict and isinstance(error, TruncatedInput):
                break
            raise
        boxes.append(box)
        at += box.size
    return tuple(boxes)


def parse_box(
    data: bytes | bytearray | memoryview,
    parent: str | None = None,
    *,
    offset: int = 0,
    strict: bool = False,
    leave: frozenset[str] = frozenset(),
    alike: frozenset[bytes] = frozenset(),
) -> Box:
    """The one box that `data` starts with; bytes after it are ignored.

    Args:
        data: bytes-like.
        parent: type of the box around it: a few codes have another meaning in other boxes.
        offset: where `data` starts in its file.
        strict: as for `parse`.
        leave: types of boxes inside that are not parsed: they stay opaque.
        alike: types of boxes inside that stand in many files byte for byte: what was read of a
            small one is taken again.

    Raises:
        TruncatedInput: the box is longer than `data`.
        MalformedBox, LimitExceeded: as for `parse`.

    >>> parse_box(bytes.fromhex("00000010 6d666864 00000000 00000007"), "moof")["sequence_number"]
    7
    """
    view = memoryview(data).cast("B")
    return _Reader(view, offset, strict, leave, alike).box(0, len(view), parent, 0)


MOST_ALIKE_BYTES = 512
MOST_ALIKE = 128
"""Boxes that are remembered: some for each encoder and its settings."""


@lru_cache(maxsize=MOST_ALIKE)
def _remembered(
    data: bytes, parent: str | None, depth: int, strict: bool, leave: frozenset[str], handler: str
) -> tuple[Box, int]:
    """A box by its bytes, as if it stood at the start of a file, and how many boxes that are."""
    reader = _Reader(memoryview(data), 0, strict, leave)
    reader.handler = handler
    return reader.box(0, len(data), parent, depth), MAX_BOXES_PER_ROOT - reader.budget


def _placed_at(box: Box, by: int) -> Box:
    """The same box further into the file."""
    children = tuple([_placed_at(child, by) for child in box.children]) if box.children else ()
    place = (box.offset + by, box.size, box.header_size, box.layout, box.misfit)
    return parsed(box.type, box.fields, children, box.trailing, box.size_form, *place)


def _known(view: memoryview) -> bool:
    """Whether the first eight bytes could start a file: a declared code after them says so."""
    return len(view) >= 8 and (
        bytes(view[4:8]) == b"uuid" or layout_of(bytes(view[4:8]).decode("latin-1")) is not None
    )


def _handler(view: memoryview, at: int, stop: int) -> str:
    """The handler_type of the mdia whose children begin at `at`; "" where it has no hdlr."""
    while stop - at >= 8:
        size, code = _SHORT(view, at)
        if code == b"hdlr" and min(size, stop - at) >= 20:
            return bytes(view[at + 16 : at + 20]).decode("latin-1")
        if size < 8:
            break
        at += size
    return ""


class _Reader:
    """One top-level box being read; it counts the boxes inside."""

    __slots__ = ("alike", "base", "budget", "handler", "leave", "strict", "view")

    def __init__(
        self,
        view: memoryview,
        base: int,
        strict: bool,
        leave: frozenset[str] = frozenset(),
        alike: frozenset[bytes] = frozenset(),
    ) -> None:
        self.view = view
        self.leave = leave
        self.alike = alike
        self.base = base
        self.strict = strict
        self.budget = MAX_BOXES_PER_ROOT
        self.handler = ""

    def box(self, at: int, stop: int, parent: str | None, depth: int) -> Box:
        """The box at `at`, which must end at or before `stop`; both count from `view`'s start."""
        view = self.view
        form: SizeForm | Literal["cut"] = "compact"
        header, size, code_bytes = 8, 0, b""
        if stop - at >= 8:
            size, code_bytes = _SHORT(view, at)
            if code_bytes in self.alike and 8 <= size <= min(stop - at, MOST_ALIKE_BYTES):
                again = self._again(at, size, parent, depth)
                if again is not None:
                    return again
        if size < 2 or code_bytes == b"uuid":
            head = read_header(view, at, stop)
            if head is None:
                raise TruncatedInput("the input ends inside a box header", offset=self.base + at)
            code_bytes, size, header, form = head
        code = code_bytes.decode("latin-1")
        if form == "cut":
            raise self._short(code, at, 16, stop - at, depth)
        if form == "to_end" and depth == 0:
            size = stop - at
        if size < header:
            raise MalformedBox(
                f"a box size smaller than its header ({code!r})",
                offset=self.base + at,
                expected=f"at least {header}",
                found=size,
            )
        if at + size > stop:
            raise self._short(code, at, size, stop - at, depth)
        self.budget -= 1
        if self.budget < 0:
            raise LimitExceeded(
                "too many boxes inside one box", path=code, expected=MAX_BOXES_PER_ROOT
            )
        fields: dict[str, Any] = {}
        if code == "uuid":
            fields["user_type"] = view[at + header - 16 : at + header].hex()
            layout = layout_of(fields["user_type"])
        else:
            if code in self.leave:
                layout = None
            elif parent == "stsd":
                layout = layout_of_entry(code, self.handler)
            else:
                layout = layout_of(code, parent)
            if code == "mdia":
                self.handler = _handler(view, at + header, at + size)
        body = view[at + header : at + size]
        misfit = ""
        children: tuple[Box, ...] = ()
        trailing = b""
        if layout is not None and layout.full and body and body[0] not in layout.versions:
            misfit, layout = f"version {body[0]} is not known", None
        if layout is not None:
            try:
                values, used = layout.parse(body)
                if self.strict and OpenText in map(type, values.values()):
                    raise MalformedBox("a text without its closing zero byte")
                if layout.children:
                    try:
                        inside, end = self._children(at + header + used, at + size, layout, depth)
                    except MalformedBox:
                        if parent != "stsd" or layout_of(code, parent) is not None:
                            raise
                        # of a codec that is not known here: what follows need not be boxes
                        inside, end = [], at + header + used
                    children = tuple(inside)
                    used = end - at - header
                if used < len(body):
                    trailing = bytes(body[used:])
                if self.strict and not only_zeros(body[used:]):
                    raise MalformedBox("bytes after the end", found=f"{len(trailing)} bytes")
                fields = {**fields, **values} if fields else values
            except LimitExceeded as error:
                raise self._placed(error, code, at) from None
            except MalformedBox as error:
                if self.strict or code in ESSENTIAL:
                    raise self._placed(error, code, at) from None
                misfit, layout, children, trailing = error.message, None, (), b""
        if layout is None:
            fields["data"] = body
        shown = _EMPTY if not body and fields.keys() == _EMPTY.keys() else MappingProxyType(fields)
        place = (self.base + at, size, header, layout, misfit)
        return parsed(code, shown, children, trailing, form, *place)

    def _again(self, at: int, size: int, parent: str | None, depth: int) -> Box | None:
        """A box as it was read of another file; None where it is damaged, or one too many."""
        data = bytes(self.view[at : at + size])
        try:
            box, count = _remembered(data, parent, depth, self.strict, self.leave, self.handler)
        except FragdexError:
            return None  # read in its place, it says where
        if count > self.budget:
            return None
        self.budget -= count
        return _placed_at(box, self.base + at)

    def _children(self, at: int, stop: int, layout: BoxLayout, depth: int) -> tuple[list[Box], int]:
        """The boxes from `at` on, and where they end: fewer than 8 bytes, or zeros, may be left."""
        if depth >= MAX_DEPTH:
            raise LimitExceeded("boxes nested too deep", expected=MAX_DEPTH)
        boxes: list[Box] = []
        parent = layout.code
        while stop - at >= 8:
            if not _SHORT(self.view, at)[0] and only_zeros(self.view[at:stop]):
                break  # QuickTime ends containers with zeros
            try:
                box = self.box(at, stop, parent, depth + 1)
            except (MalformedBox, LimitExceeded) as error:
                if error.path is not None:
                    step, _, below = error.path.partition("/")
                    number = 1 + sum(box.type == step for box in boxes)
                    if number > 1:
                        error.path = f"{step}[{number}]" + (f"/{below}" if below else "")
                raise
            boxes.append(box)
            at += box.size
        return boxes, at

    def _short(
        self, code: str, at: int, size: int, room: int, depth: int
    ) -> TruncatedInput | MalformedBox:
        if depth == 0:
            return TruncatedInput(
                "the input ends inside a box",
                path=code,
                offset=self.base + at,
                expected=f"{size} bytes",
                found=room,
            )
        return MalformedBox(
            "a box runs past its parent",
            path=code,
            offset=self.base + at,
            expected=f"at most {room} bytes",
            found=size,
        )

    def _placed(
        self, error: MalformedBox | LimitExceeded, code: str, at: int
    ) -> MalformedBox | LimitExceeded:
        if error.offset is None:
            error.offset = self.base + at
        error.path = f"{code}/{error.path}" if error.path else code
        return error


def build(boxes: Box | Iterable[Box], *, parent: str | None = None) -> bytes:
    """The bytes of a box, or of a sequence of boxes, from their fields alone.

    `build(parse(x)) == x` for every input that `parse` takes whole.

    Args:
        boxes: one box, or several.
        parent: type of the box they stand in, where their code alone does not say what they are.

    Raises:
        BuildError: a field is missing or does not fit, or a box is too large for its size form.

    >>> build(make_box("mfhd", sequence_number=7)).hex(" ", 4)
    '00000010 6d666864 00000000 00000007'
    """
    out = bytearray()
    for box in (boxes,) if isinstance(boxes, Box) else boxes:
        _write(out, box, parent)
    return bytes(out)


def make_box(
    type: str,
    *,
    parent: str | None = None,
    children: Iterable[Box] = (),
    trailing: bytes = b"",
    size_form: SizeForm = "compact",
    **fields: Any,
) -> Box:
    """A new box: fields that are not given are zero or empty, counts are set.

    Args:
        type: four-letter code, or the 32 hex digits of a user type.
        parent: type of the box it goes into, where the code alone does not say what it is.
        children: boxes inside.
        trailing: bytes after the last field or child.
        size_form: see `Box`.
        fields: the standard's names; `data` alone for a type that is not declared.

    Raises:
        BuildError: the box has no such field, or rows do not fit.

    >>> box = make_box("stts", entries=[(10, 512)])
    >>> box["entry_count"]
    1
    """
    layout = layout_of(type, parent)
    kept = tuple(children)
    user_type = type.replace("-", "").lower() if len(type) > 4 else ""
    if layout is not None and not (fields.keys() == {"data"} and not layout.fields):
        if layout.child_count:
            fields.setdefault(layout.child_count, len(kept))
        done = layout.complete(fields)
    elif kept or fields.keys() - {"data"}:
        raise BuildError("this box is not declared: give its bytes as data", path=type)
    else:
        layout, done = None, {"data": fields.get("data", b"")}
    if unknown := fields.keys() - done.keys():
        raise BuildError(
            f"no field {', '.join(sorted(unknown))}",
            path=type,
            expected=", ".join(done) or "no fields",
            found=", ".join(sorted(unknown)),
        )
    if user_type:
        type, done = "uuid", {"user_type": user_type, **done}
    return Box(type, done, kept, trailing, size_form, layout=layout)


def _write(out: bytearray, box: Box, parent: str | None) -> None:
    start = len(out)
    code = box.type.encode("latin-1", "replace")
    if len(code) != 4:
        raise BuildError("a type has four letters", path=box.type)
    large = box.size_form == "large"
    out += b"\0\0\0\0" + code
    if large:
        out += bytes(8)
    layout = box.layout
    if box.type == "uuid":
        user_type, digits = b"", box.fields.get("user_type")
        with suppress(ValueError):
            user_type = bytes.fromhex(str(digits))
        if len(user_type) != 16:
            raise BuildError("a user type has 32 hex digits", path="uuid", found=digits)
        out += user_type
        if layout is None and "data" not in box.fields:
            layout = layout_of(user_type.hex())
    elif layout is None and box.fields.keys() != {"data"}:
        layout = layout_of(box.type, parent)
    if layout is None:
        data = box.fields.get("data")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise BuildError(
                "a box that is not declared needs its bytes as data",
                path=box.type,
                found=type(data),
            )
        out += data
    else:
        out += layout.build(box.fields)
    for child in box.children:
        try:
            _write(out, child, box.type if layout is None else layout.code)
        except BuildError as error:
            error.path = f"{box.type}/{error.path}"
            raise
    out += box.trailing
    size = len(out) - start
    if large:
        out[start : start + 4] = b"\0\0\0\1"
        out[start + 8 : start + 16] = size.to_bytes(8, "big")
    elif box.size_form == "compact":
        if size >> 32:
            raise BuildError(
                "a box of 4 GiB or more",
                path=box.type,
                expected="size_form='large'",
                found=box.size_form,
            )
        out[start : start + 4] = size.to_bytes(4, "big")
