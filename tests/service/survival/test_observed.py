"""What operators see of an API and a worker that run apart: logs as JSON, health, metrics."""

import json
import socket

import httpx
from prometheus_client.parser import text_string_to_metric_families

from service.survival.processes import Site, until
from service.working import fixture_bytes, md5_of

FILM = fixture_bytes("faststart.mp4")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def lines(child):
    return [json.loads(line) for line in child.log.read_text().splitlines()]


def metrics_of(url):
    """(name, labels without braces) → value."""
    text = httpx.get(f"{url}/metrics", timeout=60).text
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_request_is_followed_from_the_api_to_the_worker_s_metrics(tmp_path):
    site = Site(tmp_path)
    seen = {"log_format": "json", "access_log": "true"}
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    try:
        api = site.serve(job_workers=0, **seen)
        with site.client(api) as client:
            body = {"filename": "a.mp4", "byte_size": len(FILM), "md5": md5_of(FILM)}
            answer = client.post("/unprocessed_files", json=body)
            # what could not stand in a log is replaced
            path = f"/unprocessed_files/{answer.json()['id']}"
            odd = client.get(path, headers={"X-Request-ID": "two words"})
            assert len(odd.headers["x-request-id"]) == 32
            assert client.post(f"{path}/upload", content=FILM).status_code == 201
            ordered = client.post(f"{path}/process", headers={"X-Request-ID": "order-7"})
            assert ordered.headers["x-request-id"] == "order-7"
            id = ordered.json()["id"]
            waiting = metrics_of(api.url)
            (work,) = {key[1] for key in waiting if key[0] == "fragdex_oldest_waiting_job_seconds"}
            assert waiting["fragdex_jobs", *sorted((work, "waiting"))] == 1
            assert waiting["fragdex_oldest_waiting_job_seconds", work] >= 0
            assert waiting["fragdex_workers",] == 0
            assert waiting["fragdex_database_up",] == 1
            worker = site.worker(worker_port=port, **seen)
            assert httpx.get(f"{url}/readyz", timeout=60).json()["database"] == "ok"
            assert httpx.get(f"{url}/api/v1/files", timeout=60).status_code == 404
            until(lambda: client.get(f"/process_isobmff/{id}").json()["completed_at"])
            key = ("fragdex_job_attempt_seconds_count", *sorted((work, "done")))
            until(lambda: metrics_of(url).get(key) == 1)
            metrics = metrics_of(url)
            assert metrics["fragdex_job_wait_seconds_count", work] == 1
            assert metrics["fragdex_job_attempts_running", work] == 0
        worker.end()
        api.end()
        (access,) = (one for one in lines(api) if one.get("request_id") == "order-7")
        assert access["logger"] == "fragdex.access"
        assert access["status"] == ordered.status_code
        assert access["bytes"] == len(ordered.content)
        assert access["tenant"]
        (done,) = (one for one in lines(worker) if one.get("request_id") == "order-7")
        assert done["record"] == id
        assert done["work"] == work
    finally:
        site.close()
