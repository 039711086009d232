"""Resumable uploads by tus 1.0, over the same files, bytes and leases as all other uploads."""
