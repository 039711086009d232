"""Records of health. Written by tools/make_client.py."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Health"]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """That the process answers."""

    status: Literal["ok"]
