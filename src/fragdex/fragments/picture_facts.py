"""Colours, high dynamic range and other facts on a track that a header says, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Chapter", "Colour", "ContentLight", "DolbyVision", "MasteringDisplay"]


@dataclass(frozen=True, slots=True)
class Colour:
    """What the numbers of a picture mean: code points of ISO/IEC 23091-2.

    Attributes:
        primaries: colour_primaries; 1: BT.709, 9: BT.2020.
        transfer: transfer_characteristics; 16: PQ (SMPTE ST 2084), 18: HLG (BT.2100).
        matrix: matrix_coefficients.
        full_range: whether 0 is black; None where the file does not say (QuickTime's nclc).

    >>> Colour(9, 16, 9).dynamic_range
    'PQ'
    """

    primaries: int
    transfer: int
    matrix: int
    full_range: bool | None = None

    @property
    def dynamic_range(self) -> str | None:
        """PQ or HLG; None: standard, or not said."""
        return {16: "PQ", 18: "HLG"}.get(self.transfer)


@dataclass(frozen=True, slots=True)
class MasteringDisplay:
    """The display that the pictures were mastered on (SMPTE ST 2086; mdcv, SmDm).

    Attributes:
        primaries: x and y of red, green and blue (CIE 1931).
        white_point: x and y.
        max_luminance, min_luminance: cd/m2.

    >>> MasteringDisplay(
    ...     (0.7, 0.3, 0.2, 0.7, 0.1, 0.05), (0.3127, 0.329), 1000, 0.001
    ... ).max_luminance
    1000
    """

    primaries: tuple[float, ...]
    white_point: tuple[float, ...]
    max_luminance: float
    min_luminance: float


@dataclass(frozen=True, slots=True)
class ContentLight:
    """The brightest pixel and frame (CTA-861.3; clli, CoLL), in cd/m2.

    >>> ContentLight(1000, 400).max_frame_average
    400
    """

    max_content: int
    max_frame_average: int


@dataclass(frozen=True, slots=True)
class DolbyVision:
    """A Dolby Vision configuration (dvcC, dvvC, dvwC).

    Attributes:
        profile, level: as in the codec string.
        compatibility: dv_bl_signal_compatibility_id: what the base layer is without Dolby Vision;
            0: nothing, 1: HDR10, 2: SDR, 4: HLG.

    >>> DolbyVision(8, 6, 1).profile
    8
    """

    profile: int
    level: int
    compatibility: int


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of a Nero chapter list (chpl).

    Attributes:
        start: in units of 100 ns of the presentation.
        title: as the file has it.

    >>> Chapter(15_000_000, "Two").seconds
    1.5
    """

    start: int
    title: str

    @property
    def seconds(self) -> float:
        """Where it starts."""
        return self.start / 10_000_000
