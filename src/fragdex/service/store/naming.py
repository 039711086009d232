"""The rule that keys and names of drafts follow, tested at every door of every store.

Such a name cannot leave its folder, hide, or mean two things on a file system that does not tell
upper from lower case.
"""

from __future__ import annotations

import re

__all__ = ["MAX_KEY_LENGTH", "checked"]

MAX_KEY_LENGTH = 400
"""Characters of a whole key; object stores end at 1,024 bytes, prefix included."""

# A segment never begins with a dot, so that neither `..` nor hidden files can be named. 120
# characters leave room for what a store adds in file names (255 bytes).
_KEY = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,119}(/[a-z0-9_-][a-z0-9._-]{0,119})*", re.ASCII)


def checked(key: str) -> str:
    """Return a key or name of a draft as it is, or raise ValueError.

    >>> checked("blobs/0199/5d/5d41402a")
    'blobs/0199/5d/5d41402a'
    >>> checked("../5d")
    Traceback (most recent call last):
    ...
    ValueError: this is no key of a store: '../5d'
    """
    if len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key):
        raise ValueError(f"this is no key of a store: {key[:80]!r}")
    return key
