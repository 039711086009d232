"""Bytes by key: the contract, the local disk, object stores, objects composed of others."""
