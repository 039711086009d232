"""Addresses that end: a film's name, until when, and a signature of both, in front of the path.

The signature stands in the path, not behind a question mark, so that the addresses in playlists
and manifests, which are relative, carry it on: `/UNTIL/SIGNATURE/film.mp4/hls/master.m3u8`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

__all__ = ["may_pass", "signed"]


def signed(secret: str, film: str, until: int) -> str:
    """What stands in front of a film's path for it to be served until a time.

    Args:
        secret: known to who signs and to the server.
        film: its name as in addresses, with commas where it has several files; "" for the list
            of all films, whose addresses are signed until the same time.
        until: seconds since 1970.

    >>> signed("secret", "film.mp4", 2_000_000_000)
    '2000000000/tn0xq6gREtssCFyHh7OR4w'
    """
    return f"{until}/{_signature(secret, film, until)}"


def may_pass(secret: str, film: str, until: str, signature: str) -> bool:
    """Whether a signature is that of a film, and has not ended.

    >>> until, _, signature = signed("secret", "a/b.mp4", 4_000_000_000).partition("/")
    >>> may_pass("secret", "a/b.mp4", until, signature)
    True
    >>> may_pass("secret", "a/c.mp4", until, signature)
    False
    """
    if not (until.isascii() and until.isdigit() and len(until) <= 12) or int(until) < time.time():
        return False
    return hmac.compare_digest(_signature(secret, film, int(until)).encode(), signature.encode())


def _signature(secret: str, film: str, until: int) -> str:
    told = hmac.new(secret.encode(), f"{until}\n{film}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(told[:16]).decode().rstrip("=")
