"""Bytes by key: the contract, and the stores that keep it."""
