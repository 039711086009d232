"""The Huffman codebooks of AAC, as far as the length of a frame depends on them.

All of them are canonical: codewords of one length are consecutive numbers, shorter ones come first.
So a codebook is what its codewords stand for, in their order, length by length (ISO/IEC 14496-3,
Tables 4.A.1 to 4.A.12). Of spectral values only this counts: how many bits of sign follow (those
that are not 0, in unsigned codebooks), and how many escape sequences (values of 16 in codebook 11).
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import Final

LONGEST: Final = 16
"""Bits of the longest codeword of a spectral codebook."""
ESCAPE: Final = 11
"""The codebook with escape sequences."""

# signed values: no bits behind the codeword. length -> codewords
_SIGNED: Final[dict[int, dict[int, int]]] = {
    1: {1: 1, 5: 8, 7: 24, 9: 24, 10: 8, 11: 16},
    2: {3: 1, 4: 1, 5: 7, 6: 24, 7: 15, 8: 19, 9: 14},
    5: {1: 1, 4: 4, 5: 4, 7: 4, 8: 12, 9: 12, 10: 12, 11: 18, 12: 10, 13: 4},
    6: {4: 9, 6: 16, 7: 13, 8: 8, 9: 23, 10: 8, 11: 4},
}
# length -> of each codeword the bits of sign; a: one and an escape, b: two and one, c: two and two
_UNSIGNED: Final[dict[int, dict[int, str]]] = {
    3: {
        1: "0",
        4: "1111",
        5: "22",
        6: "222323",
        7: "433",
        8: "11223",
        9: "232331221224334",
        10: "323244332333223",
        11: "24334423",
        12: "333334444",
        13: "223",
        14: "343",
        15: "44432",
        16: "33",
    },
    4: {
        4: "4333312022",
        5: "221211",
        7: "444433333",
        8: "333333322222222222211",
        9: "11444444",
        10: "33333333343334",
        11: "44222222433",
        12: "33",
    },
    7: {
        1: "0",
        3: "11",
        4: "2",
        6: "2211",
        7: "22211",
        8: "2222222211",
        9: "22212122222222",
        10: "211222222222222",
        11: "11222222",
        12: "2222",
    },
    8: {
        3: "2",
        4: "21212",
        5: "0112222",
        6: "2222211222",
        7: "22222221212222",
        8: "222121222222222",
        9: "22121222",
        10: "2112",
    },
    9: {
        1: "0",
        3: "11",
        4: "2",
        6: "2211",
        7: "222",
        8: "11222222",
        9: "22112222222",
        10: "12122222222122222222",
        11: "1222122221222211222222222222212",
        12: "22122222222222222222222122122222221222",
        13: "22222222222212212222122222222222",
        14: "22222222222222",
        15: "2222",
    },
    10: {
        4: "222",
        5: "21122222",
        6: "11222202211222",
        7: "22222222212122222",
        8: "2222222121222222222222222",
        9: "2221222221222222222222222221212",
        10: "22222212222221222222222222222221212122222",
        11: "2222222222121222122212",
        12: "22222122",
    },
    11: {
        4: "02",
        5: "c11222",
        6: "2221212",
        7: "2222221122222222",
        8: "2222222bbbbb2b121b2bbbb22222bb22bbb22b2bbb2b22bb2221bb22221",
        9: "2bb22b2b2222222b221222222122222222222222122222222222a22",
        10: "2222a212222222222222222222222222222221222222222222222222122222222222222222222222"
        "222211222222222",
        11: "2222222222222222212212122212222211222212212",
        12: "112112",
    },
}
_MEANING: Final = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "3": (3, 0), "4": (4, 0)} | {
    "a": (1, 1),
    "b": (2, 1),
    "c": (2, 2),
}

DELTA_BITS: Final = 19
"""Bits of the longest codeword of a difference of scale factors."""
_DELTA_COUNTS: Final = {1: 1, 3: 1, 4: 3, 5: 2, 6: 4, 7: 3, 8: 5, 9: 4, 10: 6, 11: 6} | {
    12: 6,
    13: 5,
    14: 8,
    15: 4,
    16: 7,
    17: 3,
    18: 7,
    19: 46,
}
# fmt: off
_DELTAS: Final = (
    0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, 6, -6, 7, -7, 8, -8, 9, -9, 10, -10, -11, 11, 12, -12,
    13, -13, 14, -14, 16, 15, 17, 18, -15, -17, -16, 19, -18, -19, 20, -20, 21, -21, 22, -22, 23,
    -23, -25, 25, -27, -24, -26, 24, -28, 27, 29, -30, -29, 26, -31, -34, -33, -32, -36, 28, -35,
    -38, -37, 30, -39, -41, -57, -59, -58, -60, 38, 39, 40, 41, 42, 57, 37, 31, 32, 33, 34, 35, 36,
    44, 51, 52, 53, 54, 55, 56, 50, 45, 46, 47, 48, 49, 58, -54, -52, -51, -50, -55, 43, 60, 59,
    -56, -53, -45, -44, -42, -40, -43, -49, -48, -46, -47,
)
# fmt: on


@cache
def spectral(codebook: int) -> array[int]:
    """What each 16 bits begin with: bits of codeword and signs, plus 64 for each escape.

    >>> spectral(1)[0], len(spectral(11))
    (1, 65536)
    """
    if codebook in _SIGNED:
        words = [(size, 0, 0) for size, n in _SIGNED[codebook].items() for _ in range(n)]
    else:
        words = [
            (size, *_MEANING[mark]) for size, marks in _UNSIGNED[codebook].items() for mark in marks
        ]
    table = array("H")
    for size, signs, escapes in words:
        table.extend([size + signs + 64 * escapes] * (1 << LONGEST - size))
    return table


@cache
def deltas() -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Of each length of codewords: bits, the first number of 19 bits behind them, and the deltas.

    >>> deltas()[0]
    (1, 262144, (0,))
    """
    made: list[tuple[int, int, tuple[int, ...]]] = []
    at = first = 0
    for size, count in _DELTA_COUNTS.items():
        at += count << DELTA_BITS - size
        made.append((size, at, _DELTAS[first : first + count]))
        first += count
    return tuple(made)


_LONG: Final = {
    "96": "14*1 5*2 5*3 2*4 6 7 9 11 11*16",
    "64": "14*1 4*2 3*3 3*4 5 2*6 7 9 18*10",
    "48": "10*1 7*2 4*3 2*4 2*5 2*6 2*7 19*8 24",
    "32": "10*1 7*2 4*3 2*4 2*5 2*6 2*7 22*8",
    "24": "11*1 10*2 4*3 3*4 2*5 2*6 2*7 8 2*9 10 11 12 2*13 5*16",
    "16": "11*2 9*3 4*4 3*5 2*6 2*7 8 9 2*10 11 12 13 14 15 3*16",
    "8": "13*3 7*4 4*5 3*6 2*7 8 2*9 10 11 12 13 14 15 16 20",
}
_SHORT: Final = {
    "96": "6*1 3*2 4 7 9",
    "48": "5*1 3*2 3*3 3*4",
    "24": "7*1 3*2 2*3 2*4 5",
    "16": "8*1 2*2 2*3 4 2*5",
    "8": "7*1 4*2 3 4 2*5",
}
"""Widths of bands in units of four coefficients, and how many follow one another."""
_BANDS: Final = (
    *(("96", "96"), ("96", "96"), ("64", "96"), ("48", "48"), ("48", "48"), ("32", "48")),
    *(("24", "24"), ("24", "24"), ("16", "16"), ("16", "16"), ("16", "16"), ("8", "8"), ("8", "8")),
)
"""samplingFrequencyIndex → scale factor bands of long and of short windows."""


@cache
def bands(rate_index: int, short: bool) -> tuple[int, ...]:
    """Where scale factor bands begin, in coefficients of a window, and where the last one ends.

    ISO/IEC 14496-3, Tables 4.129 to 4.147, for frames of 1024.

    >>> bands(3, False)[-2:], bands(3, True)[-1]
    ((928, 1024), 128)
    """
    widths = (_SHORT if short else _LONG)[_BANDS[rate_index][short]]
    made = [0]
    for run in widths.split():
        count, _, width = run.rpartition("*")
        made += [made[-1] + 4 * int(width) * step for step in range(1, int(count or 1) + 1)]
    return tuple(made)
