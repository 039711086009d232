"""From boxes to fragment tables: which samples a fragment has, when, and where their bytes are."""
