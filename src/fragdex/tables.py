"""The tables of an index, for programs that read their columns: `fragdex.tables`."""

from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SampleTable, SyncTable

__all__ = ["NULL", "FragmentFlags", "FragmentTable", "SampleTable", "SyncTable"]
