"""Appends to a draft until it is killed; prints what is durable. Started by test_disk.py."""

import sys

from fragdex.service.store import open_store
from fragdex.service.store.conformance import CONTENT

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
