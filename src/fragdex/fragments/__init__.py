"""The tables that an index is made of, and what is said of tracks: plain values."""
