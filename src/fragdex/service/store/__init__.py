"""Bytes by key: the contract, the local disk, object stores."""

from __future__ import annotations

from fragdex.service.store.contract import Draft, Store
from fragdex.service.store.opening import open_store

__all__ = ["Draft", "Store", "open_store"]
