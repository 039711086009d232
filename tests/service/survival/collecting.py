"""A collector of OpenTelemetry's protocol (OTLP over HTTP, protobuf) on a socket.

What is sent to its `/hook` are deliveries of webhooks: of these it keeps the headers.
"""

import gzip
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass
class Collected:
    """A span as it came."""

    name: str
    kind: str
    id: str
    parent: str
    trace: str
    process: int
    service: str
    failed: bool
    attributes: dict


class Collector:
    def __init__(self, url):
        self.url, self.spans, self.raw = url, [], b""
        self.deliveries = []

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def take(self, body):
        request = ExportTraceServiceRequest.FromString(body)
        self.raw += body
        for group in request.resource_spans:
            resource = values(group.resource.attributes)
            self.spans += [
                Collected(
                    span.name,
                    Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.trace_id.hex(),
                    resource["process.pid"],
                    resource["service.name"],
                    span.status.code == Status.STATUS_CODE_ERROR,
                    values(span.attributes),
                )
                for scope in group.scope_spans
                for span in scope.spans
            ]


def values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting():
    """A collector that takes all spans."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                collector.take(body)
            else:
                collector.deliveries.append(dict(self.headers))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
