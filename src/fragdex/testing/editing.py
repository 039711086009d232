"""Files with a box changed, for tests of readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

from fragdex.boxes import Box, build, parse

__all__ = ["Change", "edit"]

Change: TypeAlias = Callable[[Box], Box | Iterable[Box] | None]
"""A box → what stands in its place: a box, several, or None."""
_STEP: Final = re.compile(r"(\*\*|.{1,4})(?:\[(\d+)\])?")
Steps: TypeAlias = Sequence[tuple[str, int]]


@overload
def edit(data: Box, path: str, change: Change | None = None, /, **fields: Any) -> Box: ...
@overload
def edit(
    data: bytes | bytearray | memoryview, path: str, change: Change | None = None, /, **fields: Any
) -> bytes: ...
def edit(data: Any, path: str, change: Change | None = None, /, **fields: Any) -> Any:
    """A file, or a box, with the boxes at a path changed; everything else stays as it is.

    Args:
        data: bytes of whole boxes; or a box, in which the path begins with a child.
        path: as `fragdex.boxes.find` takes it, of all boxes that it fits: `moov/trak[2]/mdia`;
            `**/` in front: at any depth.
        change: gives what stands in the place of each; None drops it.
        fields: of the box, in place of `change`.

    What comes after a box that grows moves; numbers that point there (stco, trun) are not changed.

    Raises:
        LookupError: there is no such box.
        ValueError: neither a change nor fields are given, or both.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = edit(movie(), "moov/trak/tkhd", track_ID=7)
    >>> fragdex.index(edit(data, "moof/traf/tfhd", track_ID=7)).tracks[0].id
    7
    >>> [box.type for box in parse(edit(data, "moof", lambda moof: None))][:3]
    ['ftyp', 'moov', 'mdat']
    """
    if (change is None) != bool(fields):
        raise ValueError("edit takes a change or fields, one of them")
    give: Change = change or (lambda box: box.replace(**fields))
    steps = [(code, int(number or 0)) for code, number in map(_step, path.split("/"))]
    met: list[Box] = []

    def changed(box: Box) -> Iterator[Box]:
        met.append(box)
        given = give(box)
        yield from () if given is None else (given,) if isinstance(given, Box) else given

    if isinstance(data, Box):
        done: Any = data.replace(children=_edited(data.children, steps, changed))
    else:
        boxes = list(parse(data))
        kept = {id(box) for box in boxes}
        done = b"".join(
            bytes(data[box.offset : box.stop]) if id(box) in kept else build(box)
            for box in _edited(boxes, steps, changed)
        )
        done += bytes(data[boxes[-1].stop :]) if boxes else b""
    if not met:
        raise LookupError(f"there is no box {path}")
    return done


def _step(text: str) -> tuple[str, str]:
    match = _STEP.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid step of a path: {text!r}")
    return match[1], match[2]


def _edited(
    boxes: Iterable[Box], steps: Steps, changed: Callable[[Box], Iterator[Box]]
) -> list[Box]:
    (code, number), *rest = steps
    met = 0
    done: list[Box] = []
    for box in boxes:
        is_deep = code == "**"
        fits = code in ("*", "**") or box.type == code.ljust(4)
        met += fits
        if is_deep and box.type == rest[0][0].ljust(4):
            done += changed(box) if rest[1:] == [] else [_within(box, rest[1:], changed)]
        elif is_deep:
            done.append(_within(box, steps, changed))
        elif not fits or number not in (0, met):
            done.append(box)
        else:
            done += [_within(box, rest, changed)] if rest else changed(box)
    return done


def _within(box: Box, steps: Steps, changed: Callable[[Box], Iterator[Box]]) -> Box:
    """The box itself where nothing in it changed."""
    children = _edited(box.children, steps, changed)
    same = len(children) == len(box.children) and all(map(lambda a, b: a is b, children, box))
    return box if same else box.replace(children=children)
