"""Sources in, indexes out: the room where reading, scanning and assembling meet."""

from fragdex.build.growing import extend
from fragdex.build.indexer import Indexer
from fragdex.build.making import index

__all__ = ["Indexer", "extend", "index"]
