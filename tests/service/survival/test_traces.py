"""Traces as a collector gets them: of requests, their jobs, slices and children, in one tree."""

import json
import socket

import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from service.survival.collecting import collecting
from service.survival.processes import Site, until
from service.working import fixture_bytes, md5_of

FILM = fixture_bytes("faststart.mp4")
TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PAGE = (
    "<style>@keyframes a { to { left: 9px } } p { animation: a 1s; position: absolute }</style><p>a"
)


@pytest.fixture
def collector():
    with collecting() as new_collector:
        yield new_collector


@pytest.fixture
def traced(tmp_path, collector, monkeypatch):
    """A site whose processes send traces, quickly."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    site = Site(tmp_path)
    yield site
    site.close()


def lines(child):
    return [json.loads(line) for line in child.log.read_text().splitlines()]


def path_up(collector, span):
    """The names of a span and of all above it, and the processes that they were in."""
    known = {one.id: one for one in collector.spans}
    names, processes = [], []
    while span is not None:
        names.append(span.name)
        processes.append(span.process)
        above = known.get(span.parent)
        assert above is None or above.trace == span.trace
        span = above
    return names, processes


def test_an_upload_and_a_render_are_one_trace_each_from_request_to_child(traced, collector):
    try:
        find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    seen = {"log_format": "json", "webhook_networks": "127.0.0.0/8"}
    api = traced.serve(job_workers=0, access_log="true", **seen)
    worker = traced.worker(**seen)
    with traced.client(api) as client:
        assert client.post("/webhooks", json={"url": f"{collector.url}/hook"}).status_code == 201
        new = {"filename": "a.mp4", "type": "video", "byte_size": len(FILM), "md5": md5_of(FILM)}
        file = client.post("/files", json=new).json()
        sent = {"traceparent": f"00-{TRACE}-{ABOVE}-01", "tracestate": "ours=1"}
        answer = client.post(f"/files/{file['id']}/upload", content=FILM, headers=sent)
        assert answer.status_code == 201, answer.text
        size = {"width": 64, "height": 64, "duration_ms": 200, "fps": 10}
        render = client.post("/renders", json={"html": PAGE, **size}).json()
        # no secret of a URL goes into a span
        assert client.get("/files?token=a.secret.one").status_code == 200
        assert client.get("/nowhere/with.a.secret.two").status_code == 404
        until(lambda: client.get(f"/files/{file['id']}").json()["status"] == "ready")
        until(lambda: client.get(f"/renders/{render['id']}").json()["status"] == "complete")
    until(lambda: len(collector.deliveries) == 3)
    until(lambda: [one for one in lines(worker) if one.get("record") == render["id"]])
    worker.end()
    api.end()
    assert {span.service for span in collector.spans} == {"fragdex"}
    assert b".secret." not in collector.raw

    (upload,) = collector.named("POST /api/v1/files/{id}/upload")
    assert (upload.trace, upload.parent, upload.kind) == (TRACE, ABOVE, "server")
    assert upload.attributes["http.response.status_code"] == 201
    assert upload.attributes["http.route"] == "/api/v1/files/{id}/upload"
    (render_span,) = collector.named("POST /api/v1/renders")
    trees = {one.trace: [] for one in (upload, render_span)}
    for span in collector.spans:
        if span.name.startswith("child ") and span.trace in trees:
            trees[span.trace].append(path_up(collector, span))
    processed = [names for names, _ in trees[upload.trace]]
    assert any(names[-1] == upload.name and names[1].startswith("job ") for names in processed)
    drawn = ["child draw", "slice render-slice", "job render", render_span.name]
    assert drawn in [names for names, _ in trees[render_span.trace]]
    ours = {worker.process.pid: "worker", api.process.pid: "api"}
    for names, processes in trees[render_span.trace]:
        if names == drawn:
            assert [ours[pid] for pid in processes] == ["worker"] * 3 + ["api"]
    # the receiver of a webhook may continue the trace, and gets nothing else of it
    sent = [headers["traceparent"][:-3] for headers in collector.deliveries]
    spans = collector.named("POST webhook")
    assert sorted(sent) == sorted(f"00-{span.trace}-{span.id}" for span in spans)
    assert {span.trace for span in spans} == {upload.trace, render_span.trace}
    assert {path_up(collector, span)[0][1] for span in spans} == {"job webhook"}
    assert not any("tracestate" in headers for headers in collector.deliveries)
    # a health check is not a span, and the log names the trace
    assert not [span for span in collector.spans if "healthz" in span.name]
    (access,) = (one for one in lines(api) if one.get("trace_id") == upload.trace)
    assert access["span_id"] == upload.id
    assert access["request_id"] == upload.attributes["fragdex.request_id"]
    (done,) = (one for one in lines(worker) if one.get("record") == render["id"])
    assert done["trace_id"] == render_span.trace
    assert done["request_id"] == render_span.attributes["fragdex.request_id"]


def test_a_collector_that_hangs_or_is_gone_holds_nothing_up(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes connections, answers none
        port = mute.getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        # what is not sent is dropped, at a bound
        monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
        site = Site(tmp_path)
        try:
            child = site.serve(job_workers=0)
            with site.client(child) as client:
                for _ in range(100):
                    assert client.get("/files").status_code == 200
            mute.accept()[0].close()
            child.end()
        finally:
            site.close()
