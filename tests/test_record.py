"""Records are what `dataclasses.dataclass` makes, and cost nothing that they are not asked for."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.record import record

SOURCES = Path(__file__).parents[1] / "src" / "fragdex"
OPTIONS = ("frozen", "slots", "eq", "order", "repr", "unsafe_hash", "kw_only")


def declared(declare: Any, **options: Any) -> tuple[type, type]:
    """A class with every kind of field that is used, and one that inherits from it."""

    @declare(**options)
    class Base:
        """Of the test."""

        kind: ClassVar[str] = "base"
        first: int
        second: str = "b"
        made: list[int] = field(default_factory=list)
        aside: Any = field(default=None, compare=False, repr=False)
        counted: int = field(default=0, init=False)
        named: int = field(default=7, kw_only=True, hash=False)

    @declare(**options)
    class Derived(Base):
        """Of the test."""

        second: str = "c"
        third: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            object.__setattr__(self, "counted", len(self.third))

    return Base, Derived


def outcome(ask: Any) -> Any:
    """What comes of it; of an error its type and message."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - both have to raise the same
        return type(error), str(error)


options = st.fixed_dictionaries({name: st.booleans() for name in OPTIONS}).filter(
    lambda chosen: chosen["eq"] or not chosen["order"]
)
values = st.fixed_dictionaries(
    {"first": st.integers(0, 2)},
    optional={
        "second": st.sampled_from(["a", "b"]),
        "made": st.lists(st.integers(0, 1), max_size=1),
        "aside": st.none() | st.integers(),
        "named": st.integers(6, 7),
        "third": st.tuples(st.integers(0, 1)),
        "absent": st.just(1),
    },
)


@given(options, st.booleans(), values, values)
def test_a_record_is_what_a_dataclass_is(options, derived, one, other):
    ours, theirs = (declared(how, **options)[derived] for how in (record, dataclass))
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.kind == theirs.kind
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert ours.__doc__ == theirs.__doc__
    assert [*map(str, dataclasses.fields(ours))] == [*map(str, dataclasses.fields(theirs))]
    made = [outcome(lambda c=c: c(**one)) for c in (ours, theirs)]
    if isinstance(made[1], tuple):
        assert made[0] == made[1]
        return
    more = {"first": 0} | {name: value for name, value in other.items() if name in one}
    pairs = list(zip(made, [kind(**more) for kind in (ours, theirs)], strict=True))
    for ask in (
        lambda a, b: repr(a).partition(" at 0x")[0],
        lambda a, b: a == b,
        lambda a, b: a == copy.copy(a),
        lambda a, b: a == 1,
        lambda a, b: hash(a) == hash(b) if options["eq"] else None,
        lambda a, b: a < b,
        lambda a, b: a >= b,
        lambda a, b: dataclasses.asdict(a),
        lambda a, b: dataclasses.asdict(dataclasses.replace(a, first=9)),
        lambda a, b: dataclasses.asdict(copy.deepcopy(a)),
        lambda a, b: setattr(a, "first", 5),
        # with slots, dataclasses of Python 3.11 forget which class they are of
        lambda a, b: None if options["slots"] else setattr(a, "unknown", 5),
        lambda a, b: delattr(a, "first"),
        lambda a, b: vars(a),
    ):
        got, wanted = (outcome(partial(ask, *pair)) for pair in pairs)
        assert str(got) == str(wanted)


@record(frozen=True, slots=True)
class Place:
    """Of the test."""

    start: int
    stop: int = 4
    names: list[str] = field(default_factory=list)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_go_through_pickle(protocol):
    place = Place(1, names=["a"])
    again = pickle.loads(pickle.dumps(place, protocol))  # noqa: S301
    assert again == place
    assert not hasattr(again, "__dict__")
    with pytest.raises(FrozenInstanceError):
        again.start = 3


def test_a_dataclass_may_inherit_from_a_record_and_a_record_from_a_dataclass():
    @dataclass(frozen=True)
    class Under(Place):
        more: int = 0

    @record(frozen=True)
    class Further(Under):
        most: int = 1

    assert dataclasses.asdict(Further(2, more=3)) == {
        "start": 2, "stop": 4, "names": [], "more": 3, "most": 1
    }  # fmt: skip
    with pytest.raises(TypeError, match="non-frozen"):
        dataclass(type("Bad", (Place,), {"__annotations__": {"a": "int"}}))


def test_nothing_is_made_of_a_record_before_it_is_used():
    @record(frozen=True, slots=True, order=True)
    class Fresh:
        number: int

    def made():
        kinds = {name: type(value).__name__ for name, value in vars(Fresh).items()}
        return {name for name, kind in kinds.items() if kind == "function"}

    assert made() == set()
    one = Fresh(1)
    assert made() == {"__init__"}
    assert one == Fresh(1)
    assert made() == {"__init__", "__eq__"}


def test_classes_of_the_library_are_records():
    """A dataclass costs a millisecond at each start of each process."""
    wrong = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.name != "record.py" and "@dataclass" in path.read_text("utf-8")
    ]
    assert wrong == []
