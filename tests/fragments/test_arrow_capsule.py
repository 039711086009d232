"""Tables handed to other libraries without any Arrow library: same values, nothing leaks."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragdex.fragments import arrow_capsule
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable, Table


def held() -> int:
    gc.collect()
    return len(arrow_capsule._HELD) + len(arrow_capsule._CAPSULES)


@pytest.fixture(autouse=True)
def nothing_stays() -> Any:
    before = held()
    yield
    assert held() == before


def example(rows: int = 5, kind: type[Table] = FragmentTable) -> Table:
    columns = {c.name: np.arange(rows) for c in kind.schema()}
    for column in kind.schema():
        if column.nullable and rows:
            columns[column.name][rows // 2] = NULL
    return kind.of(columns)


def values_of(table: Table) -> dict[str, list[Any]]:
    return {
        c.stored: [None if c.nullable and v == NULL else v for v in column.tolist()]
        for c, column in zip(table.schema(), table.columns().values(), strict=True)
    }


@pytest.mark.parametrize("kind", [FragmentTable, SampleTable, SyncTable])
@pytest.mark.parametrize("rows", [0, 1, 8, 1000])
def test_pyarrow_takes_it(kind: type[Table], rows: int) -> None:
    pa = pytest.importorskip("pyarrow")
    table = example(rows, kind)
    for taken in (pa.table(table), pa.record_batch(table)):
        taken.validate(full=True)
        assert taken.to_pydict() == values_of(table)
    schema = pa.schema(table)
    assert schema == pa.table(table).schema
    for column in kind.schema():
        field = schema.field(column.stored)
        assert field.nullable == column.nullable
        assert field.metadata[b"meaning"].decode() == column.meaning
        assert field.metadata.get(b"unit", b"").decode() == column.unit


def test_metadata_can_be_given_along() -> None:
    pa = pytest.importorskip("pyarrow")

    class Named:
        def __arrow_c_schema__(self) -> object:
            return arrow_capsule.schema_capsule(SyncTable.schema(), metadata={"table": "sync"})

    assert pa.schema(Named()).metadata == {b"table": b"sync"}


@given(st.lists(st.sampled_from([NULL, 0, -1, 2**63 - 1]), max_size=40))
def test_nulls_are_where_they_were(values: list[int]) -> None:
    pa = pytest.importorskip("pyarrow")
    table = FragmentTable.of({c.name: np.array(values, "i8") for c in FragmentTable.schema()[:-1]}
                             | {"flags": np.zeros(len(values))})  # fmt: skip
    taken = pa.table(table)
    assert taken["dts"].to_pylist() == [None if v == NULL else v for v in values]
    assert taken["dts"].null_count == values.count(NULL)
    assert taken["offset"].to_pylist() == values


def test_values_are_not_copied() -> None:
    pa = pytest.importorskip("pyarrow")
    table = example()
    taken = pa.table(table)
    assert taken["dts"].chunk(0).buffers()[1].address == table.dts.ctypes.data
    assert taken["dts"].chunk(0).buffers()[0] is not None
    assert taken["offset"].chunk(0).buffers()[0] is None  # all known: no bitmap at all


def test_columns_with_gaps_in_memory_are_taken_too() -> None:
    pa = pytest.importorskip("pyarrow")
    table = example(10).rows(slice(None, None, 3))
    assert pa.table(table).to_pydict() == values_of(table)


def test_polars_takes_it() -> None:
    pl = pytest.importorskip("polars")
    for kind in (FragmentTable, SampleTable, SyncTable):
        table = example(9, kind)
        assert pl.DataFrame(table).to_dict(as_series=False) == values_of(table)


def test_pandas_takes_it() -> None:
    pd = pytest.importorskip("pandas")
    if not hasattr(pd.DataFrame, "from_arrow"):
        pytest.skip("this pandas does not take Arrow tables")
    frame = pd.DataFrame.from_arrow(example(9))
    assert frame["offset"].tolist() == list(range(9))
    assert frame["dts"].isna().tolist() == [i == 4 for i in range(9)]


def test_duckdb_asks_it_by_name() -> None:
    duckdb = pytest.importorskip("duckdb")
    fragments = example(9)
    query = "select count(*), count(dts), sum(size) from fragments where flags < 8"
    with duckdb.connect() as connection:
        assert connection.execute(query).fetchall() == [(8, 7, 28)]
        # a stream can be asked for anew
        assert connection.execute(query).fetchall() == [(8, 7, 28)]
    assert fragments is not None


def test_the_arrays_live_as_long_as_the_consumer_and_no_longer() -> None:
    pa = pytest.importorskip("pyarrow")
    table = example(1000)
    array = table.dts
    gone = weakref.ref(array)
    taken = pa.table(table)
    column = taken["dts"].chunk(0)
    del table, taken, array
    gc.collect()
    assert gone() is not None
    assert column[999].as_py() == 999
    del column
    gc.collect()
    assert gone() is None


def test_a_part_that_is_moved_out_outlives_the_rest() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch(example(100))
    column = batch.column(2)
    del batch
    gc.collect()
    assert column.to_pylist()[99] == 99


@pytest.mark.parametrize("method", ["schema", "array", "stream"])
def test_a_capsule_that_nobody_takes_frees_itself(method: str) -> None:
    table = example(10)
    gone = weakref.ref(table.offset)
    capsule = getattr(table, f"__arrow_c_{method}__")()
    assert held() > 0
    del capsule, table
    assert held() == 0
    assert gone() is None


def test_thousands_of_exports_leave_nothing_behind() -> None:
    pa = pytest.importorskip("pyarrow")
    table = example(50)
    before = sys.getrefcount(table.dts)
    for _ in range(1000):
        pa.table(table)
        table.__arrow_c_array__()
        table.__arrow_c_stream__()
    gc.collect()
    after = sys.getrefcount(table.dts)
    assert after == before


def test_consumers_in_other_threads() -> None:
    pa = pytest.importorskip("pyarrow")
    table = example(2000)
    sums: list[int] = []

    def work() -> None:
        sums.append(sum(pa.table(table)["size"][1999].as_py() for _ in range(100)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [199_900] * 4


# ---- the C structures by hand, as the specification words them


def _structure(capsule: object, kind: type, name: bytes) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind)).contents


def test_a_released_structure_has_a_null_release_and_a_second_one_is_harmless() -> None:
    capsule = example().__arrow_c_schema__()
    schema = _structure(capsule, arrow_capsule._Schema, b"arrow_schema")
    assert schema.format == b"+s"
    assert schema.n_children == len(FragmentTable.schema())
    assert schema.children[0].contents.name == b"offset"
    schema.release(ctypes.byref(schema))
    assert not schema.release
    del capsule  # its destructor sees the null release


def test_a_stream_gives_one_batch_and_then_the_end() -> None:
    capsule = example(3).__arrow_c_stream__()
    stream = _structure(capsule, arrow_capsule._Stream, b"arrow_array_stream")
    array = arrow_capsule._Array()
    assert stream.get_next(ctypes.byref(stream), ctypes.byref(array)) == 0
    assert (array.length, array.n_children) == (3, len(FragmentTable.schema()))
    # a consumer moves a child out: copies it, marks the source released, releases the parent
    child = arrow_capsule._Array()
    ctypes.memmove(ctypes.byref(child), array.children[5], ctypes.sizeof(child))
    array.children[5].contents.release = arrow_capsule._ArrayRelease()
    array.release(ctypes.byref(array))
    assert not array.release
    assert child.length == 3
    values = ctypes.cast(child.buffers[1], ctypes.POINTER(ctypes.c_int64))
    assert values[2] == 2
    child.release(ctypes.byref(child))
    assert stream.get_next(ctypes.byref(stream), ctypes.byref(array)) == 0
    assert not array.release
    assert not stream.get_last_error(ctypes.byref(stream))


@settings(max_examples=20)
@given(st.lists(st.booleans(), max_size=70))
def test_bools_are_packed_to_bits(values: list[bool]) -> None:
    pa = pytest.importorskip("pyarrow")
    numbers = np.arange(len(values))
    table = SampleTable.of({c.name: numbers for c in SampleTable.schema()[:-1]} | {"sync": values})
    assert pa.table(table)["sync"].to_pylist() == values
