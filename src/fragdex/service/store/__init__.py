"""Bytes by key: the contract, the local disk, object stores, objects composed of others."""

from __future__ import annotations

from fragdex.service.store.composing import ComposingStore
from fragdex.service.store.contract import Draft, Store
from fragdex.service.store.opening import open_store

__all__ = ["ComposingStore", "Draft", "Store", "open_store"]
