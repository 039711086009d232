"""Repairs of files whose index is lost or wrong, as jobs."""
