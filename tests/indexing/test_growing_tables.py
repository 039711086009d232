"""A table that grows part by part holds what its parts hold, however they come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.fragments.table import FragmentTable, Growing

PARTS = st.lists(
    st.tuples(st.integers(0, 40), st.booleans(), st.sampled_from([None, 0.0, 0.3, 1.0])),
    max_size=8,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """So that little is reserved, and a table has to move."""
    monkeypatch.setattr("fragdex.fragments.table.SPARE", 2)


@given(PARTS)
def test_what_was_added_and_written_in_place_is_there(parts):
    growing, true = Growing(FragmentTable), [FragmentTable.empty()]
    for number, (count, in_place, done) in enumerate(parts):
        columns = {
            column.name: np.arange(count) + 100 * number + 1000 * place
            for place, column in enumerate(FragmentTable.schema())
        }
        if in_place:
            columns["flags"] = np.zeros(count)
            cells, start = growing.reserve(count, done)
            for row, name in zip(cells, columns, strict=False):
                row[start : start + count] = columns[name]
            growing.grow(count)
        else:
            growing.add(FragmentTable.of(columns), done)
        true.append(FragmentTable.of(columns))
        if sum(map(len, true)):
            last = next(table for table in reversed(true) if len(table))
            assert growing.last("size") == last.size[-1]
            assert growing.last("flags") == last.flags[-1]
    assert growing.taken() == FragmentTable.concat(true)


@given(st.integers(0, 40))
def test_rows_that_were_written_and_not_counted_are_not_there(count):
    growing = Growing(FragmentTable)
    growing.reserve(count)[0][:] = 7
    growing.add(FragmentTable.of({c.name: [1, 2] for c in FragmentTable.schema()}))
    growing.reserve(count)[0][:, 2:] = 7
    assert growing.taken().dts.tolist() == [1, 2]
