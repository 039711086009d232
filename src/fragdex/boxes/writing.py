"""Boxes to bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fragdex.box_header import SizeForm
from fragdex.boxes.box import Box
from fragdex.boxes.tree import layout_of
from fragdex.errors import BuildError


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


def _user_type(digits: object) -> bytes:
    try:
        user_type = bytes.fromhex(str(digits))
    except ValueError:
        user_type = b""
    if len(user_type) != 16:
        raise BuildError("a user type has 32 hex digits", path="uuid", found=digits)
    return user_type


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
        user_type = _user_type(box.fields.get("user_type"))
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
