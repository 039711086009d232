"""From sources to indexes, as data falls: reading, scanning, runs and tables, assembling."""

from fragdex.indexing.growing import Indexer, extend
from fragdex.indexing.making import index

__all__ = ["Indexer", "extend", "index"]
