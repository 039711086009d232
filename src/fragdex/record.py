"""Records: classes of fields as `dataclasses.dataclass` makes them, at next to no cost at import.

`dataclass` writes and compiles the text of up to ten methods a class when its module is imported: a
millisecond each, whether they are used or not. Here each method is made when it is first looked
up, all but `__init__` without compiling anything; `fields`, `replace` and `asdict` of `dataclasses`
know the classes. To type checkers they are dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

__all__ = ["record"]

TYPE_CHECKING = False  # as in typing, whose import takes longer
if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from typing import Any
else:

    def record(cls=None, /, **options):
        """Make a class a record: `@record`, or `@record(frozen=True, slots=True)`.

        Args:
            options: those of `dataclasses.dataclass`, with its meaning and defaults; `init` and
                `match_args` are always true, and there are no `InitVar` and `KW_ONLY`.

        >>> @record(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1))
        (Point(x=1, y=0), True, True)
        """
        return _made(cls, **options) if cls is not None else lambda cls: _made(cls, **options)


def _made(
    cls: type,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    order: bool = False,
    repr: bool = True,
    unsafe_hash: bool = False,
    kw_only: bool = False,
) -> type:
    own = cls.__dict__
    names = [name for name, kind in cls.__annotations__.items() if not _is_of_class(kind)]
    given = {name: own[name] for name in names if name in own}
    lazy = ["__init__", "__match_args__", "__replace__"]
    lazy += ["__repr__"] * repr + ["__eq__"] * eq
    lazy += ["__lt__", "__le__", "__gt__", "__ge__"] * order
    lazy += ["__setattr__", "__delattr__"] * frozen
    lazy += ["__getstate__", "__setstate__"] * (frozen and slots)
    content: dict[str, Any] = {name: _Lazy(name) for name in lazy if name not in own}
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        content[name] = _Lazy(name)
    # what a class says of hashes itself counts; one that says __eq__ alone has None
    if own.get("__hash__") is None and (own.get("__hash__", 0) == 0 or "__eq__" in own):
        if unsafe_hash or (eq and frozen):
            content["__hash__"] = _Lazy("__hash__")
        elif eq:
            content["__hash__"] = None
    content["__record__"] = _About(names, given, frozen, kw_only)
    if not slots:
        for name, value in content.items():
            setattr(cls, name, value)
            if isinstance(value, _Lazy):
                value.__set_name__(cls, name)
        for name, value in given.items():
            if _is_field(value):
                _settle_default(cls, name, value)
        return cls
    held = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    taken = {"__dict__", "__weakref__", *names}
    content = {name: value for name, value in own.items() if name not in taken} | content
    content["__slots__"] = tuple(name for name in names if name not in held)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _is_of_class(kind: Any) -> bool:
    text = kind if isinstance(kind, str) else str(kind)
    return text.startswith(("ClassVar", "typing.ClassVar", "t.ClassVar"))


def _is_field(value: Any) -> bool:
    return type(value).__name__ == "Field"


def _settle_default(cls: type, name: str, value: Any) -> None:
    """The class attribute that a `field(…)` leaves: its default, or none."""
    from dataclasses import MISSING

    if value.default is MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, value.default)


class _About:
    """What the declaration of a record says."""

    __slots__ = ("frozen", "given", "kw_only", "names")

    def __init__(
        self, names: list[str], given: dict[str, Any], frozen: bool, kw_only: bool
    ) -> None:
        self.names, self.given, self.frozen, self.kw_only = names, given, frozen, kw_only


class _Lazy:
    """A member of a record that is made when it is first looked up, and takes its place."""

    __slots__ = ("_name", "_owner")

    def __init__(self, name: str) -> None:
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, one: Any, kind: type | None = None) -> Any:
        owner, name = self._owner, self._name
        if type(owner.__dict__.get(name)) is _Lazy:
            made = _MAKERS[name](owner)
            if callable(made):
                made.__name__, made.__module__ = name, owner.__module__
                made.__qualname__ = f"{owner.__qualname__}.{name}"
            type.__setattr__(owner, name, made)
        made = owner.__dict__[name]
        return made.__get__(one, kind) if callable(made) else made


def _declared(owner: Any) -> dict[str, Any]:
    declared: dict[str, Any] = owner.__dataclass_fields__
    return declared


def _fields(owner: type) -> dict[str, Any]:
    """`Field` by name, as `dataclasses` keeps them: by a class of its own that nobody sees."""
    from dataclasses import dataclass

    about = owner.__dict__["__record__"]
    inside: dict[str, Any] = {"__annotations__": {n: owner.__annotations__[n] for n in about.names}}
    inside |= {"__module__": owner.__module__, "__qualname__": owner.__qualname__, "__doc__": "-"}
    bases = [base for base in owner.__mro__[1:] if "__dataclass_fields__" in base.__dict__]
    shadow = type("Fields", (), inside | {n: _fresh(v) for n, v in about.given.items()})
    dataclass(init=False, repr=False, eq=False, kw_only=about.kw_only, match_args=False)(shadow)
    fields: dict[str, Any] = {}
    for base in reversed(bases):
        fields |= _declared(base)
    return fields | _declared(shadow)


def _params(owner: type) -> Any:
    """What a dataclass that inherits from a record asks of it."""
    from dataclasses import dataclass

    frozen = owner.__dict__["__record__"].frozen
    made: Any = dataclass(frozen=frozen)(type("Params", (), {}))
    return made.__dataclass_params__


def _fresh(value: Any) -> Any:
    """A `field(…)` as it was written: `dataclass` gives it a name and a type."""
    import copy

    return copy.copy(value) if _is_field(value) else value


def _listed(owner: type) -> list[Any]:
    from dataclasses import fields

    return list(fields(owner))


def _init(owner: type) -> Callable[..., None]:
    """`__init__`, the one method that is compiled: it is called most, and by names."""
    from dataclasses import MISSING

    about, listed = owner.__dict__["__record__"], _listed(owner)
    known: dict[str, Any] = {"FACTORY": _FACTORY, "set_any": object.__setattr__}
    plain: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for one in listed:
        name, value = one.name, one.name
        place: Any = getattr(owner, name, None)
        is_slot = type(place).__name__ == "member_descriptor"
        if one.default_factory is not MISSING:
            known[f"make_{name}"] = one.default_factory
            value = f"make_{name}()"
            parameter = f"{name}=FACTORY"
            if one.init:
                value += f" if {name} is FACTORY else {name}"
        elif not one.init and not (is_slot and one.default is not MISSING):
            continue  # the class has the default, or nobody
        elif one.default is not MISSING:
            known[f"default_{name}"] = one.default
            parameter = f"{name}=default_{name}"
            value = name if one.init else f"default_{name}"
        else:
            parameter = name
        if one.init:
            (named if one.kw_only else plain).append(parameter)
        if not about.frozen:
            lines.append(f"self.{name} = {value}")
        elif is_slot:
            known[f"set_{name}"] = place.__set__
            lines.append(f"set_{name}(self, {value})")
        else:
            lines.append(f"set_any(self, {name!r}, {value})")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    text = f"def __init__({head}):\n " + "\n ".join(lines or ["pass"])
    scope: dict[str, Any] = {}
    exec(text, known, scope)
    made: Callable[..., None] = scope["__init__"]
    made.__annotations__ = {one.name: one.type for one in listed if one.init} | {"return": None}
    return made


class _Factory:
    """Stands for a value that a default_factory gives, in signatures as in `dataclasses`."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _key(owner: type, chosen: Callable[[Any], bool]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of some fields as a tuple."""
    names = [one.name for one in _listed(owner) if chosen(one)]
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda one: ()
    get = attrgetter(names[0])
    return lambda one: (get(one),)


def _eq(owner: type) -> Callable[..., Any]:
    key = _key(owner, lambda one: one.compare)

    def eq(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return key(self) == key(other)

    return eq


def _hash(owner: type) -> Callable[..., int]:
    key = _key(owner, lambda one: one.compare if one.hash is None else one.hash)

    def hashed(self: Any) -> int:
        return hash(key(self))

    return hashed


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[type], Callable[..., Any]]:
    def make(owner: type) -> Callable[..., Any]:
        key = _key(owner, lambda one: one.compare)

        def ordered(self: Any, other: Any) -> Any:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(key(self), key(other))

        return ordered

    return make


def _repr(owner: type) -> Callable[..., str]:
    from reprlib import recursive_repr

    names = [one.name for one in _listed(owner) if one.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return shown


def _setattr(owner: Any) -> Callable[..., None]:
    names = frozenset(_declared(owner))

    def set_one(self: Any, name: str, value: Any) -> None:
        if type(self) is owner or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(owner, self).__setattr__(name, value)

    return set_one


def _delattr(owner: Any) -> Callable[..., None]:
    names = frozenset(_declared(owner))

    def delete(self: Any, name: str) -> None:
        if type(self) is owner or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(owner, self).__delattr__(name)

    return delete


def _getstate(owner: type) -> Callable[..., list[Any]]:
    def state(self: Any) -> list[Any]:
        return [getattr(self, one.name) for one in _listed(type(self))]

    return state


def _setstate(owner: type) -> Callable[..., None]:
    def restore(self: Any, state: list[Any]) -> None:
        for one, value in zip(_listed(type(self)), state, strict=True):
            object.__setattr__(self, one.name, value)

    return restore


def _replace(owner: type) -> Callable[..., Any]:
    from dataclasses import replace

    def replaced(self: Any, /, **changes: Any) -> Any:
        return replace(self, **changes)

    return replaced


def _match_args(owner: type) -> tuple[str, ...]:
    return tuple(one.name for one in _listed(owner) if one.init and not one.kw_only)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "__dataclass_fields__": _fields,
    "__dataclass_params__": _params,
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__lt__": _ordered(lambda one, other: one < other),
    "__le__": _ordered(lambda one, other: one <= other),
    "__gt__": _ordered(lambda one, other: one > other),
    "__ge__": _ordered(lambda one, other: one >= other),
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
    "__replace__": _replace,
    "__match_args__": _match_args,
}
