"""The tables that an index is made of, and descriptions of tracks: plain values."""
