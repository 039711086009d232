"""What an output shows of a source: spans of its presentation, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from fragdex.seeking.times import NO_SHIFT


class KeptSpan(NamedTuple):
    """A span of a source's presentation that is in an output.

    Attributes:
        start, stop: seconds of the source (exclusive).
        earlier: seconds by which the output shows it sooner.
        is_behind, is_before: whether it stands after, before something that was removed.
    """

    start: Fraction
    stop: Fraction
    earlier: Fraction
    is_behind: bool = False
    is_before: bool = False

    @property
    def length(self) -> Fraction:
        """Seconds."""
        return self.stop - self.start


Kept: TypeAlias = Sequence[KeptSpan]
"""In their order, none of them empty."""


def following(spans: Iterable[tuple[Fraction, Fraction] | KeptSpan]) -> list[KeptSpan]:
    """Spans that follow each other without gaps from time 0 of the output on."""
    kept: list[KeptSpan] = []
    reached = Fraction(0)
    for span in spans:
        one = span if isinstance(span, KeptSpan) else KeptSpan(*span, NO_SHIFT)
        if one.start < one.stop:
            kept.append(one._replace(earlier=one.start - reached))
            reached += one.length
    return kept


def between_removed(
    start: Fraction,
    stop: Fraction,
    removed: Iterable[tuple[Fraction | float, Fraction | float]],
    tick: Fraction,
) -> list[KeptSpan]:
    """A span without what is removed of it.

    Args:
        start, stop: in whole ticks.
        tick: seconds; edges are rounded to it.
    """
    spans = []
    at = start
    for low, high in sorted(removed):
        first, last = (round(min(max(edge, start), stop) / tick) * tick for edge in (low, high))
        if first < last:
            spans.append(KeptSpan(at, first, NO_SHIFT, at > start, True))
            at = max(at, last)
    return following([*spans, KeptSpan(at, stop, NO_SHIFT, at > start)])


def later(kept: Kept, by: Fraction) -> list[KeptSpan]:
    """The same without so many seconds at its beginning."""
    spans = []
    for span in kept:
        cut = min(by, span.length)
        by -= cut
        spans.append((span.start + cut, span.stop))
    return following(spans)


def lasting(kept: Kept, seconds: Fraction) -> list[KeptSpan]:
    """The same where the output lasts so long: the last span ends sooner or later."""
    spans = []
    for place, span in enumerate(kept):
        length = seconds if place == len(kept) - 1 else min(span.length, seconds)
        spans.append((span.start, span.start + length))
        seconds -= length
    return following(spans)
