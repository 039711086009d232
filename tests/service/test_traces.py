"""Spans as the SDK gets them, in this process: what they say, what they never say, when there are
none."""

import io
import logging
import sys
from contextlib import ExitStack

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fragdex.service.logs import SafeFormatter
from fragdex.traces import Traces, current_ids, inner_span, trace_context
from service.serving import API, serving

TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{ABOVE}-01"
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


class Kept:
    """What gets the spans of a process, as `Traces` of it makes them."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.traces = Traces(provider)

    def spans(self):
        spans = self.exporter.get_finished_spans()
        self.exporter.clear()
        return spans


@pytest.fixture(scope="module")
def kept():
    return Kept()


@pytest.fixture(scope="module")
def served(kept, tmp_path_factory):
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Traces, "of_environment", classmethod(lambda _: kept.traces))
            served = stack.enter_context(serving(tmp_path_factory.mktemp("traced")))
        yield served


@pytest.mark.parametrize(
    ("sent", "continued"),
    [
        ([("traceparent", PARENT)], True),
        ([], False),
        ([("traceparent", "00-no")], False),
        ([("traceparent", f"00-{'0' * 32}-{ABOVE}-01")], False),
        ([("traceparent", PARENT), ("traceparent", PARENT)], False),
    ],
)
def test_a_client_s_trace_is_continued_where_it_is_one(served, kept, sent, continued):
    kept.spans()
    assert served.client.get(f"{API}/files", headers=sent).status_code == 200
    (span,) = kept.spans()
    assert span.name == f"GET {API}/files"
    assert span.kind.name == "SERVER"
    assert (f"{span.context.trace_id:032x}" == TRACE) is continued
    assert (span.parent is not None) is continued


@pytest.mark.parametrize(("size", "is_kept"), [(500, True), (600, False)])
def test_a_long_trace_state_is_left_behind(served, kept, size, is_kept):
    kept.spans()
    half = size // 2 - 2
    state = [("tracestate", f"a={'x' * half}"), ("tracestate", f"b={'y' * half}")]
    served.client.get(f"{API}/files", headers=[("traceparent", PARENT), *state])
    (span,) = kept.spans()
    assert bool(span.context.trace_state) is is_kept


def test_spans_have_templates_and_no_word_of_a_client(served, kept):
    kept.spans()
    client = served.client
    assert client.get(f"{API}/files/secret-1?token=secret-2").status_code in (404, 422)
    assert client.get("/secret-3").status_code == 404
    assert client.request("PROPFIND", f"{API}/files").status_code == 405
    for path in ("/healthz", "/readyz", "/metrics"):
        assert client.get(path).status_code == 200
    spans = kept.spans()
    assert [span.name for span in spans] == [f"GET {API}/files/{{id}}", "GET", f"HTTP {API}/files"]
    assert "secret" not in "".join(span.to_json() for span in spans).lower()
    assert spans[0].attributes["fragdex.tenant"] == served.tenant
    assert not any(span.status.is_ok is False for span in spans)  # a client's fault is none of ours


def test_what_is_raised_is_named_and_not_quoted(kept):
    kept.spans()
    with pytest.raises(KeyError), kept.traces.span("a job"):
        raise KeyError("the secret")
    (span,) = kept.spans()
    assert not span.status.is_ok
    assert span.attributes == {"error.type": "KeyError"}
    assert "secret" not in span.to_json()


def test_a_span_below_another_is_its_child_and_the_log_names_both(kept):
    kept.spans()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(SafeFormatter("%(message)s"))
    with inner_span("nothing is above it") as span:
        assert span is None
        assert trace_context() == {}
    with kept.traces.span("outer", parent={"traceparent": PARENT}), inner_span("inner"):
        fields = trace_context()
        handler.handle(logging.makeLogRecord({"msg": "a line"}))
    inner, outer = kept.spans()
    assert inner.parent.span_id == outer.context.span_id
    assert fields == {"traceparent": f"00-{TRACE}-{inner.context.span_id:016x}-01"}
    assert stream.getvalue() == f"a line [trace {TRACE}]\n"
    assert current_ids() is None


@pytest.mark.parametrize(
    ("variables", "are_on", "said"),
    [
        ({}, False, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False, ""),
        ({"OTEL_SERVICE_NAME": "media"}, False, ""),
        (ENDPOINT, True, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, ""),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False, ""),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "TRUE"}, False, ""),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False, "protocol grpc"),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "zipkin"}, False, "not zipkin"),
        (ENDPOINT | {"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, False, "max_queue_size"),
    ],
)
def test_the_variables_of_opentelemetry_decide(monkeypatch, caplog, variables, are_on, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    traces = Traces.of_environment()
    try:
        assert traces.are_on is are_on
    finally:
        traces.close()
    warned = [one.getMessage() for one in caplog.records if one.name == "fragdex.service"]
    assert [said in text for text in warned] == ([True] if said else [])
    assert not traces.are_on


def test_without_the_extra_a_warning_says_so(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert not Traces.of_environment().are_on
    assert "fragdex[service]" in caplog.text


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "fragdex"),
        ({"OTEL_SERVICE_NAME": "media"}, "media"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=films,team=a"}, "films"),
    ],
)
def test_the_service_has_a_name(monkeypatch, variables, name):
    for key, value in variables.items() | {("OTEL_TRACES_EXPORTER", "console")}:
        monkeypatch.setenv(key, value)
    traces = Traces.of_environment()
    with traces.span("a job") as active:
        assert active.span.resource.attributes["service.name"] == name
        assert active.span.resource.attributes["process.pid"]
    traces.close()


def test_a_sampler_that_takes_nothing_leaves_the_ids(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    traces = Traces.of_environment()
    with traces.span("a job", parent={"traceparent": PARENT}) as active:
        assert not active.span.is_recording()
        assert current_ids()[0] == TRACE
        assert trace_context()["traceparent"].endswith("-00")
        active.describe("another name", a__b=1)
        active.failed("KeyError")
    traces.close()
