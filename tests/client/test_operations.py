"""Each operation of the client asks for what the OpenAPI document says."""

import inspect
import json
import re
from pathlib import Path

import pytest

from fragdex.byterange import ByteRange
from fragdex.client import api

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method != "parameters"
}


def operation_of(name):
    """The function of an operation; operations that differ by a suffix alone are one."""
    if hasattr(api, name):
        return getattr(api, name), []
    name, _, suffix = name.rpartition("_")
    return getattr(api, name), [suffix]


def filled(function):
    """Arguments for a function: all that it needs, and all that it may be given."""
    positional, named = [], {}
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is inspect.Parameter.KEYWORD_ONLY:
            named[name] = ByteRange(2, 5) if "ByteRange" in one.annotation else "a b"
        elif name != "suffix":
            positional.append(b"bytes" if one.annotation == "bytes" else "a/b")
    return positional, named


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_asks_for_what_the_document_says(name):
    method, path, operation = OPERATIONS[name]
    function, suffix = operation_of(name)
    positional, named = filled(function)
    request = function(*positional, *suffix, **named)
    assert request.method == method
    assert request.path == re.sub(r"\{\w+\}", "a%2Fb", path)
    given = operation.get("parameters", ())
    in_query = {one["name"] for one in given if one["in"] == "query"}
    assert request.parameters().keys() == in_query
    in_header = {one["name"] for one in given if one["in"] == "header"}
    assert in_header <= request.fields().keys()
    if "Range" in in_header:
        assert request.fields()["Range"] == "bytes=2-4"
    has_body = "requestBody" in operation
    assert (request.payload() is not None) == has_body
