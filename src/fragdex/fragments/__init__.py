"""The tables that an index is made of, and descriptions of tracks: plain values."""

NULL = -(2**63)
"""What stands in an int64 column for "this index cannot tell"."""

FAR = 1 << 62
"""Bytes, ticks and sample numbers stay below: sums and differences of two fit in 64 bits."""
FARTHEST = FAR // 2
"""Positions and decode times that a file states stay below, so that sizes and durations fit too."""
