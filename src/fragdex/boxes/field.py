"""One field of a box: name, type, and when it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fragdex.boxes.kinds import Bits
from fragdex.boxes.rows import Rows

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a box.

    Attributes:
        name: the standard's own name.
        kind: a word of `kinds`, `Rows`, or a dict from version to one of them.
        flag: present only if one of these bits of `flags` is set (0: always).
        version: present only in these versions (empty: in all).
        when: present only if this holds for the fields before it.
        probe: present in a file only if this holds for the fields before it and the bytes that
            follow, and written where the fields name it: for what the fields cannot tell.
        default: what a maker of boxes gets where it names no value; None: zero or nothing.
    """

    name: str
    kind: Any
    flag: int = 0
    version: tuple[int, ...] = ()
    when: Callable[[Fields], bool] | None = None
    probe: Callable[[Fields, memoryview], bool] | None = None
    default: Any = None

    def resolved(self, version: int, flags: int) -> Any:
        """The type under this version and these flags, or None where the field is absent."""
        if (self.flag and not flags & self.flag) or (self.version and version not in self.version):
            return None
        if isinstance(self.kind, dict):
            return self.kind.get(version, self.kind[max(self.kind)])
        return self.kind

    @property
    def key(self) -> str:
        """The name under which the value stands: bit fields stand under their own names."""
        return self.kind.names[0][0] if isinstance(self.kind, Bits) else self.name

    @property
    def counted_by(self) -> str:
        """The field that holds the number of rows of this table, or ""."""
        kinds = self.kind.values() if isinstance(self.kind, dict) else (self.kind,)
        return next((kind.count for kind in kinds if isinstance(kind, Rows) and kind.count), "")

    def written(self, fields: Fields) -> bool:
        """Whether a box with these fields has this one (version and flags aside)."""
        if self.probe is not None:
            return self.key in fields
        return self.when is None or self.when(fields)


def where(kind: Any, **conditions: Any) -> tuple[Any, dict[str, Any]]:
    """A field with a condition: `where(u64, flag=1)`, `where(u8, version=(1,))`."""
    return (kind, conditions)


def declare(declared: Mapping[str, Any]) -> tuple[Field, ...]:
    """Fields from names, and kinds or what `where` gives."""
    return tuple(
        Field(**{"name": name, "kind": kind[0], **kind[1]})
        if isinstance(kind, tuple)
        else Field(name, kind)
        for name, kind in declared.items()
    )
