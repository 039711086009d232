"""Recordings: several ISOBMFF files one behind the other, played as one.

model       what requests and answers say
operations  make, find, list, delete; no HTTP
joined      the files of a timeline as one title
child       their indexes, made in a process of its own
routes      over HTTP
"""
