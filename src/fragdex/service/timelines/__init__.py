"""Recordings: several ISOBMFF files one behind the other, played as one."""
