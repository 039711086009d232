"""Columns handed to other libraries by the Arrow C data interface, without any Arrow library.

A consumer (pandas, polars, duckdb, pyarrow …) asks a table for a PyCapsule that holds a C
structure, moves the structure's content out, and calls its `release` when it is done. The values
are not copied: the buffers are the numpy arrays themselves, kept alive by `_HELD` until the
release. NULL becomes a validity bitmap, and bools are packed to bits, as Arrow wants them.

Layout and ownership follow the Arrow specification, "C data interface", "C stream interface" and
"PyCapsule interface".
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fragdex.fragments.table import Column

FORMATS = {"i8": b"l", "u4": b"I", "?": b"b"}
"""numpy dtype of a column → Arrow's format string (int64, uint32, bit-packed bool)."""

FLAG_NULLABLE = 2
INVALID, NO_MEMORY = 22, 12  # EINVAL and ENOMEM, which the interface numbers so everywhere


class _Schema(Structure):
    """struct ArrowSchema."""


class _Array(Structure):
    """struct ArrowArray."""


class _Stream(Structure):
    """struct ArrowArrayStream."""


_SchemaRelease = ctypes.CFUNCTYPE(None, POINTER(_Schema))
_ArrayRelease = ctypes.CFUNCTYPE(None, POINTER(_Array))
_StreamRelease = ctypes.CFUNCTYPE(None, POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))
# c_void_p, for a c_char_p returned from Python would not outlive the call.
_GetLastError = ctypes.CFUNCTYPE(c_void_p, POINTER(_Stream))

_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)),
    ("release", _SchemaRelease),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", POINTER(_Array)),
    ("release", _ArrayRelease),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetLastError),
    ("release", _StreamRelease),
    ("private_data", c_void_p),
]

_HELD: dict[int, Any] = {}
"""What exported structures point to, by the number in their private_data, until their release."""

_numbers = itertools.count(1)


def _hold(what: Any) -> int:
    number = next(_numbers)
    _HELD[number] = what
    return number


# ---- filling structures

Arrays = Sequence[npt.NDArray[Any]]


def _metadata(pairs: Mapping[str, str]) -> bytes:
    """Key-value metadata as the C data interface encodes it: lengths in native byte order."""
    encoded = struct.pack("=i", len(pairs))
    for text in itertools.chain.from_iterable(pairs.items()):
        data = text.encode()
        encoded += struct.pack("=i", len(data)) + data
    return encoded


def _fill_schema(
    schema: _Schema,
    columns: Sequence[Column] | None,
    format: bytes = b"+s",
    name: str = "",
    metadata: Mapping[str, str] | None = None,
    nullable: bool = False,
) -> None:
    children = [_Schema() for _ in columns or ()]
    for child, column in zip(children, columns or (), strict=True):
        about = {"meaning": column.meaning}
        if column.unit:
            about["unit"] = column.unit
        _fill_schema(child, None, FORMATS[column.dtype], column.stored, about, column.nullable)
    pointers = (POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    texts = (format, name.encode(), _metadata(metadata) if metadata else None)
    schema.format, schema.name, schema.metadata = texts
    schema.flags = FLAG_NULLABLE if nullable else 0
    schema.n_children, schema.dictionary = len(children), None
    schema.children = ctypes.cast(pointers, POINTER(POINTER(_Schema))) if children else None
    schema.release = _RELEASE_SCHEMA
    schema.private_data = _hold((texts, children, pointers))


def _fill_array(
    array: _Array, length: int, buffers: Sequence[npt.NDArray[Any] | None], null_count: int = 0
) -> None:
    addresses = (c_void_p * len(buffers))(*(b if b is None else b.ctypes.data for b in buffers))
    array.length, array.null_count, array.offset = length, null_count, 0
    array.n_buffers, array.n_children = len(buffers), 0
    array.buffers = ctypes.cast(addresses, POINTER(c_void_p))
    array.children, array.dictionary = None, None
    array.release = _RELEASE_ARRAY
    array.private_data = _hold((buffers, addresses))


def _fill_column(array: _Array, column: Column, values: npt.NDArray[Any], null: int | None) -> None:
    validity, null_count = None, 0
    if column.dtype == "?":
        data = np.packbits(values, bitorder="little")
    else:
        data = np.ascontiguousarray(values, column.dtype)
        if column.nullable and null is not None:
            known = values != null
            null_count = len(values) - int(np.count_nonzero(known))
            if null_count:
                validity = np.packbits(known, bitorder="little")
    _fill_array(array, len(values), (validity, data), null_count)


def _fill_struct(
    array: _Array, columns: Sequence[Column], arrays: Arrays, null: int | None
) -> None:
    children = [_Array() for _ in columns]
    for child, column, values in zip(children, columns, arrays, strict=True):
        _fill_column(child, column, values, null)
    pointers = (POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    _fill_array(array, len(arrays[0]) if len(arrays) else 0, (None,))
    array.n_children = len(children)
    array.children = ctypes.cast(pointers, POINTER(POINTER(_Array)))
    _HELD[array.private_data] += (children, pointers)


# ---- releasing: each marks its structure released by a null `release`, then lets go


def _release_parts(structure: Any, no_release: Any) -> None:
    for number in range(structure.n_children):
        child = structure.children[number]
        # A consumer may have moved a child out; then its own release comes later.
        if child.contents.release:
            child.contents.release(child)
    key = structure.private_data
    structure.release = no_release
    _HELD.pop(key, None)


def _release_schema(pointer: Any) -> None:
    _release_parts(pointer.contents, _SchemaRelease())


def _release_array(pointer: Any) -> None:
    _release_parts(pointer.contents, _ArrayRelease())


def _release_stream(pointer: Any) -> None:
    stream = pointer.contents
    key = stream.private_data
    stream.release = _StreamRelease()
    _HELD.pop(key, None)


# ---- the stream: one batch, then the end


def _get_schema(stream: Any, out: Any) -> int:
    table = _HELD.get(stream.contents.private_data)
    if table is None:
        return INVALID
    _fill_schema(out.contents, table["columns"], metadata=table["metadata"])
    return 0


def _get_next(stream: Any, out: Any) -> int:
    table = _HELD.get(stream.contents.private_data)
    if table is None:
        return INVALID
    if table["given"]:
        out.contents.release = _ArrayRelease()  # a released array is the end of the stream
        return 0
    table["given"] = True
    try:
        _fill_struct(out.contents, table["columns"], table["arrays"], table["null"])
    except MemoryError:  # for a validity bitmap; an exception cannot cross to the consumer
        return NO_MEMORY
    return 0


def _get_last_error(stream: Any) -> None:
    return None


# What C calls; kept here for ever, since a consumer may call any of them at any time.
_RELEASE_SCHEMA = _SchemaRelease(_release_schema)
_RELEASE_ARRAY = _ArrayRelease(_release_array)
_RELEASE_STREAM = _StreamRelease(_release_stream)
_GET_SCHEMA, _GET_NEXT = _GetSchema(_get_schema), _GetNext(_get_next)
_GET_LAST_ERROR = _GetLastError(_get_last_error)


# ---- capsules

_DESTRUCTOR = ctypes.CFUNCTYPE(None, c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = [c_void_p, c_char_p, c_void_p], ctypes.py_object
# The capsule comes as a plain pointer: in a destructor it has no references left, and counting
# one up and down again would destroy it a second time.
_content = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

_CAPSULES: dict[int, Any] = {}
"""Structures inside living capsules, by address."""

SCHEMA_NAME, ARRAY_NAME, STREAM_NAME = b"arrow_schema", b"arrow_array", b"arrow_array_stream"


def _destructor(name: bytes) -> Any:
    def destroy(capsule: int) -> None:
        structure = _CAPSULES.pop(_content(capsule, name), None)
        # Moved out: a null release. Never taken: nobody else will release it.
        if structure is not None and structure.release:
            structure.release(byref(structure))

    return _DESTRUCTOR(destroy)


_DESTRUCTORS = {name: _destructor(name) for name in (SCHEMA_NAME, ARRAY_NAME, STREAM_NAME)}


def _capsule(structure: Any, name: bytes) -> object:
    address = ctypes.addressof(structure)
    _CAPSULES[address] = structure
    return _new(address, name, ctypes.cast(_DESTRUCTORS[name], c_void_p))


def schema_capsule(
    columns: Sequence[Column], *, metadata: Mapping[str, str] | None = None
) -> object:
    """A capsule `arrow_schema`: a struct with a field for each column.

    Unit and meaning of a column stand in the metadata of its field.
    """
    schema = _Schema()
    _fill_schema(schema, columns, metadata=metadata)
    return _capsule(schema, SCHEMA_NAME)


def array_capsules(
    columns: Sequence[Column],
    arrays: Arrays,
    *,
    null: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> tuple[object, object]:
    """Capsules `arrow_schema` and `arrow_array` of a struct array, one row a row of the columns.

    Args:
        arrays: one for each column, of equal length; not copied, so they must not change.
        null: the value in nullable columns that stands for "unknown".
    """
    array = _Array()
    _fill_struct(array, columns, arrays, null)
    return schema_capsule(columns, metadata=metadata), _capsule(array, ARRAY_NAME)


def stream_capsule(
    columns: Sequence[Column],
    arrays: Arrays,
    *,
    null: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> object:
    """A capsule `arrow_array_stream` with the columns as its only batch.

    Args: as `array_capsules`.
    """
    stream = _Stream()
    stream.get_schema, stream.get_next = _GET_SCHEMA, _GET_NEXT
    stream.get_last_error, stream.release = _GET_LAST_ERROR, _RELEASE_STREAM
    stream.private_data = _hold(
        {"columns": columns, "arrays": arrays, "null": null, "metadata": metadata, "given": False}
    )
    return _capsule(stream, STREAM_NAME)
