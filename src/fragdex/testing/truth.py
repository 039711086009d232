"""What is true of a file that was made: samples, fragments, periods."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from fragdex.testing.descriptions import TrueSample
from fragdex.testing.tracks import Moov

__all__ = ["Made", "TrueFragment", "TruePeriod"]


@dataclass(frozen=True, slots=True)
class TrueFragment:
    """One fragment of the truth.

    Attributes:
        part: number of the part it was made from.
        start, moof, stop: bytes from the start of the file: the first box that introduces it, the
            moof, and behind its last mdat.
        samples: track_ID → numbers of the track's samples, first and behind the last.
        next_dts: track_ID → decode time behind it.
    """

    part: int
    start: int
    moof: int
    stop: int
    samples: dict[int, tuple[int, int]]
    next_dts: dict[int, int]


@dataclass(slots=True)
class TruePeriod:
    """What is true of one moov and the fragments it governs.

    Attributes:
        moov: as described; None where there is none.
        samples: track_ID → its samples in decode order.
        in_moov: track_ID → how many of them the moov itself names.
        fragments: in file order.
    """

    moov: Moov | None = None
    samples: dict[int, list[TrueSample]] = field(default_factory=dict)
    in_moov: dict[int, int] = field(default_factory=dict)
    fragments: list[TrueFragment] = field(default_factory=list)

    def timescale(self, track: int) -> int:
        """Ticks a second; 0 where no moov tells."""
        tracks = self.moov.tracks if self.moov is not None else ()
        return next((t.timescale for t in tracks if t.id == track), 0)

    def shift(self, track: int) -> Fraction:
        """Ticks from composition to presentation time."""
        if self.moov is None:
            return Fraction(0)
        found = (t.shift(self.moov.timescale) for t in self.moov.tracks if t.id == track)
        return next(found, Fraction(0))


@dataclass(frozen=True, slots=True, repr=False)
class Made:
    """A file and what is true of it.

    Attributes:
        data: its bytes.
        periods: one for each moov, or one without.
        parts: the descriptions it was made from.
        spans: (start, stop) of each part, bytes.
    """

    data: bytes
    periods: tuple[TruePeriod, ...]
    parts: tuple[object, ...]
    spans: tuple[tuple[int, int], ...]

    def __repr__(self) -> str:
        return f"make_file({', '.join(map(repr, self.parts))})"

    @property
    def truth(self) -> TruePeriod:
        """The only period.

        Raises:
            ValueError: there are several.
        """
        (period,) = self.periods
        return period
