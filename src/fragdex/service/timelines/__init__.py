"""Recordings: several ISOBMFF files one after the other, played as one."""
