"""Named limits: what no honest file passes, so that no claim of a file costs time or memory.

Nothing is allocated by a number that a file claims; these bound what its bytes can really hold.
"""

from __future__ import annotations

MAX_DEPTH = 32
"""Boxes inside boxes. The deepest that the standards nest (moov to tenc) is eleven."""

MAX_BOXES = 1 << 20
"""Boxes side by side: an hour and a half of one-frame fragments has that many."""

MAX_BOXES_PER_ROOT = 1 << 16
"""Boxes inside one top-level box: a moov of a thousand tracks has forty thousand."""

MAX_IMPLIED_ROWS = 1 << 28
"""Rows that take no bytes because every value has a default: ninety minutes of 48 kHz PCM, each
sample its own row, in one run."""

MAX_ITEMS = 1 << 20
"""Items of one list that is not a table of rows: eight hours of video with a part list a frame."""

MAX_MADE_SAMPLES = 1 << 25
"""Samples of a track that is made into fragments, where each takes a hundred bytes of memory: two
weeks of video. Of PCM, up to 1,024 count as one: a week of 48 kHz, which a timeline, that counts
each, has for eleven minutes."""

MAX_MOOV_SIZE = 1 << 29
"""Bytes of a moov or moof that is read as a whole: a day of video and audio needs some 100 MB."""

MAX_TRACKS = 1 << 12
"""Tracks of one movie, those met in its fragments alone included: tiled and light-field video has
hundreds."""

MAX_PERIODS = 1 << 16
"""Movies (moov) of one file: an initialization segment before every second of 18 hours."""

MAX_OVERLAPPING = 1 << 18
"""Sync samples that overlap in time and come from defaults alone, of one file: runs of a second
of 48 kHz PCM that overlap by a tenth, for almost a minute; hours of coded sound."""

MAX_LENT_ROWS = 1 << 20
"""Rows of a sidx or mfra that stand for tracks which it does not name: 29 tracks of ten hours in
fragments of a second. One that would stand for more is not used; the fragments are read."""
