"""The only opener of files: sources over paths, bytes, open files, HTTP and object stores.

Everything above is given bytes, or asks for a range and is given it; here stand the opening, the
mapping, the retries, and the counting of requests and bytes.
"""

from fragdex.sources.base import PIECE_SIZE, Source
from fragdex.sources.files import give_back
from fragdex.sources.hashing import md5, md5_beside
from fragdex.sources.opening import open_source

__all__ = ["PIECE_SIZE", "Source", "give_back", "md5", "md5_beside", "open_source"]
