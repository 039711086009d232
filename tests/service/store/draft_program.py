"""Appends to a draft until it is killed; prints what is durable. Started by test_disk.py."""

import sys

from fragdex.service.store import open_store

CONTENT = bytes(range(251)) * 5000
"""What `conformance.CONTENT` is: tests are no package that a program could import."""

if __name__ == "__main__":
    draft = open_store(sys.argv[1]).draft("killed")
    at = draft.size()
    while True:
        # sizes without a pattern, across the ends of pages
        piece = (CONTENT * 2)[at % 251 :][: 1 + at * 7919 % 70_001]
        draft.append(at, piece)
        at += len(piece)
        if at % 3 == 0:
            print(draft.sync(), flush=True)
