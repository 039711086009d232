"""What an operator's balancer sees of a service that is about to end, and of its browser."""

import signal
import socket
import sys
from importlib.metadata import version
from urllib.parse import urlsplit

import httpx
import pytest

from fragdex.rendering.browser.finding import VARIABLE
from service.serving import serving
from service.survival.processes import until


def asked(url, path, **more):
    return httpx.get(url + path, trust_env=False, timeout=20, verify=False, **more)


def listens(url):
    """Whether the port takes connections."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_draining_is_told_before_the_port_closes(site, number):
    child = site.serve(job_workers=0, drain_notice_seconds=600)
    url = child.url
    assert asked(url, "/readyz").json()["draining"] == "no"
    child.process.send_signal(number)
    # 600 seconds of notice: all of this happens in them, however slow the machine is
    readiness = until(lambda: (r := asked(url, "/readyz")).status_code == 503 and r).json()
    assert readiness["status"] == "unavailable"
    assert readiness["draining"] == "yes"
    assert (readiness["database"], readiness["store"]) == ("ok", "ok")
    assert asked(url, "/healthz").status_code == 200
    with site.client(child) as client:
        assert client.get("/files").status_code == 200, "requests are still taken"
        with client.stream("GET", "/image_files") as answer:
            assert answer.status_code == 200
    # the second signal ends the notice
    child.process.send_signal(number)
    child.ended()
    assert not listens(url)


def test_after_its_notice_the_port_closes(site):
    child = site.serve(job_workers=0, drain_notice_seconds=1)
    child.process.send_signal(signal.SIGTERM)
    until(lambda: not listens(child.url))
    child.ended()


def test_without_a_notice_it_ends_at_once(site):
    child = site.serve(job_workers=0)
    child.end()
    assert not listens(child.url)


def program(path, text):
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


def test_readyz_tells_the_browser_and_its_version(site, tmp_path):
    chromium = program(tmp_path / "chromium-headless-shell", "print('Chromium 130.0.1 built on x')")
    child = site.serve(chromium=chromium, job_workers=1)
    answer = asked(child.url, "/readyz")
    assert (answer.status_code, answer.json()["browser"]) == (200, "Chromium 130.0.1 built on x")
    assert answer.json()["engine"] == f"moonshine {version('moonshine-voice')}"
    child.end()


@pytest.mark.parametrize(("needed", "status"), [("false", 200), ("true", 503)])
def test_a_worker_without_a_browser_is_ready_unless_it_is_set_otherwise(site, needed, status):
    more = {"chromium": "/no/such/program", "ready_needs_browser": needed}
    more |= {"speech_engine": "faster-whisper", "whisper_model": "/no/such/folder"}
    child = site.serve(job_workers=1, **more)
    answer = asked(child.url, "/readyz")
    assert answer.status_code == status
    assert answer.json()["browser"] == "not found"
    assert "not found" in answer.json()["engine"]
    assert answer.json()["database"] == "ok"
    child.end()
    # a process that works on no jobs renders nothing
    other = site.serve(job_workers=0, **more)
    answer = asked(other.url, "/readyz")
    assert (answer.status_code, answer.json()["browser"]) == (200, "not used here")
    assert answer.json()["engine"] == "not used here"
    other.end()


def test_a_browser_that_does_not_answer_holds_readyz_up_once(tmp_path):
    calls = tmp_path / "calls"
    hangs = program(
        tmp_path / "headless", f"open({str(calls)!r}, 'a').write('x')\nimport time\ntime.sleep(600)"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(hangs))
        patch.setattr("fragdex.rendering.browser.finding.VERSION_SECONDS", 0.5)
        with serving(tmp_path / "data") as served:
            object.__setattr__(served.context, "settings", _with_workers(served.context.settings))
            for _ in range(3):
                answer = served.anyone.get("/readyz")
                assert answer.json()["browser"] == f"{hangs.name}, its version is not known"
    assert calls.read_text() == "x"


def _with_workers(settings):
    return settings.model_copy(update={"job_workers": 1})
