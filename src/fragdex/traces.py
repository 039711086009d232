"""OpenTelemetry traces: request → job → slice → child process. Off unless the environment asks.

The extra `service` brings what sends them. Nothing of OpenTelemetry is imported here before spans
are requested: whoever starts children needs this file. The span of the moment is a context
variable of our own, not OpenTelemetry's, so that libraries that look for one add nothing: FastAPI
would add the query of a URL, with its token.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Literal

from fragdex.record import record

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger("fragdex.service")

Kind = Literal["internal", "server", "client", "consumer"]
Value = str | int | float | bool

_PROTOCOL: Final = "http/protobuf"
_ENDING_SECONDS: Final = 5.0
"""So long the end of a process waits for a collector; the SDK would wait for half a minute."""


@record(frozen=True, slots=True)
class ActiveSpan:
    """A running span, and who makes those below it."""

    traces: Traces
    span: Span

    def describe(self, name: str | None = None, **attributes: Value | None) -> None:
        """Set its attributes, `__` in a name for a dot, and its name; None sets nothing."""
        if name is not None:
            self.span.update_name(name)
        for key, value in attributes.items():
            if value is not None:
                self.span.set_attribute(key.replace("__", "."), value)

    def failed(self, reason: str) -> None:
        """It did not end well; the reason is a name (of an error, a status), never a message."""
        from opentelemetry.trace import StatusCode

        self.span.set_attribute("error.type", reason)
        self.span.set_status(StatusCode.ERROR)


_current: ContextVar[ActiveSpan | None] = ContextVar("fragdex_span", default=None)


class Traces:
    """Makes the spans of a process.

    Args:
        provider: gets them; without one there are none.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer: Tracer | None = None
        if provider is not None:
            self._tracer = provider.get_tracer("fragdex", version("fragdex"))

    @classmethod
    def of_environment(cls) -> Traces:
        """Sends spans where the variables of OpenTelemetry say so; whatever is wrong is logged."""
        exporters = _exporters()
        if not exporters:
            return cls()
        try:
            return cls(_provider(exporters))
        except ImportError:
            log.warning("traces are enabled but cannot be sent: pip install 'fragdex[service]'")
        except ValueError as error:
            log.warning("traces are not sent: a variable of OpenTelemetry: %s", error)
        return cls()

    @property
    def are_on(self) -> bool:
        """Whether spans are made."""
        return self._tracer is not None

    @contextmanager
    def span(
        self,
        name: str,
        *,
        kind: Kind = "internal",
        parent: Mapping[str, str] | None = None,
        attributes: Mapping[str, Value] | None = None,
    ) -> Iterator[ActiveSpan | None]:
        """A span around the block, in this thread or task; None where traces are off.

        An `Exception` that passes makes it a failed one; its message is not recorded.

        Args:
            parent: `traceparent` and `tracestate` (W3C Trace Context) from elsewhere; empty: none.
                None: the current span.
        """
        if self._tracer is None:
            yield None
            return
        from opentelemetry import trace
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = Context()
        if parent is not None:
            above = TraceContextTextMapPropagator().extract(parent, above)
        elif (outer := _current.get()) is not None:
            above = trace.set_span_in_context(outer.span, above)
        span = self._tracer.start_span(
            name, above, trace.SpanKind[kind.upper()], dict(attributes or {}),
            record_exception=False, set_status_on_exception=False,
        )  # fmt: skip
        active = ActiveSpan(self, span)
        token = _current.set(active)
        try:
            yield active
        except Exception as error:
            active.failed(type(error).__name__)
            raise
        finally:
            _current.reset(token)
            span.end()

    def close(self) -> None:
        """Send the rest, for a few seconds, and make no more spans."""
        provider, self._provider, self._tracer = self._provider, None, None
        if provider is None:
            return
        ending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(_ENDING_SECONDS)


@contextmanager
def inner_span(
    name: str, *, kind: Kind = "internal", attributes: Mapping[str, Value] | None = None
) -> Iterator[ActiveSpan | None]:
    """A span below the current one; where there is none, none is made."""
    outer = _current.get()
    if outer is None:
        yield None
        return
    with outer.traces.span(name, kind=kind, attributes=attributes) as span:
        yield span


def trace_context() -> dict[str, str]:
    """`traceparent` and `tracestate` of the current span; empty without one."""
    active = _current.get()
    if active is None:
        return {}
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    fields: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(fields, trace.set_span_in_context(active.span))
    return fields


def current_ids() -> tuple[str, str] | None:
    """The ids of the current trace and span, as logs name them; None without one."""
    active = _current.get()
    if active is None:
        return None
    ids = active.span.get_span_context()
    return f"{ids.trace_id:032x}", f"{ids.span_id:016x}"


def _exporters() -> set[str]:
    """Where spans go to; nothing where no variable enables it, or one disables it."""
    given = os.environ.get
    if given("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return set()
    listed = given("OTEL_TRACES_EXPORTER", "")
    if not (
        listed
        or given("OTEL_EXPORTER_OTLP_ENDPOINT")
        or given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    ):
        return set()
    names = {name.strip().lower() for name in (listed or "otlp").split(",")} - {"none", ""}
    if unknown := sorted(names - {"otlp", "console"}):
        log.warning("traces: OTEL_TRACES_EXPORTER is otlp, console or none, not %s", unknown[0])
    protocol = (
        given("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or given("OTEL_EXPORTER_OTLP_PROTOCOL")
        or _PROTOCOL
    )
    if "otlp" in names and protocol != _PROTOCOL:
        log.warning("traces are not sent: the protocol %s is not there, only %s",
                    protocol, _PROTOCOL)  # fmt: skip
        names.discard("otlp")
    return names & {"otlp", "console"}


def _provider(exporters: set[str]) -> TracerProvider:
    """A provider over exporters, each of which reads its own variables.

    Raises:
        ImportError: the extra is not installed.
        ValueError: a variable has no value that it may have.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    own: dict[str, Value] = {
        "service.name": "fragdex",
        "service.version": version("fragdex"),
        # API and workers have one name: these tell them apart
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
    }
    given = Resource.create()
    unnamed = str(given.attributes.get("service.name", "")).startswith("unknown_service")
    resource = Resource(own).merge(given)
    if unnamed:
        resource = resource.merge(Resource({"service.name": "fragdex"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    if "otlp" in exporters:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if "console" in exporters:
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
    return provider
