"""From an upload to `fragdex webhook listen`: the engine, and real processes."""

import json
import subprocess
import sys
from contextlib import contextmanager

from fragdex.service.config import Settings
from service.serving import API
from service.webhooks.receiving import LOOPBACK
from service.working import uploaded, working

VTT = b"WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n"


@contextmanager
def listening(*flags, port=0):
    """`fragdex webhook listen`, and its URL."""
    command = [sys.executable, "-m", "fragdex", "webhook", "listen", "--port", str(port), *flags]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as child:
        try:
            yield child, child.stderr.readline().strip().removeprefix("Listening at ")
        finally:
            child.kill()


def test_what_happens_is_sent_and_checked(tmp_path):
    config = tmp_path / "fragdex.toml"
    config.write_text(f'webhook_networks = ["{LOOPBACK}"]\n')
    with working(tmp_path / "data", "--config", str(config)) as served:
        with listening("--count", "1", "--json") as (child, url):
            hook = served.client.post(f"{API}/webhooks", json={"url": url}).json()
            record = uploaded(served.client, VTT, "a.vtt", "caption_files")
            delivery = json.loads(child.stdout.readline())
            assert child.wait(60) == 0
        assert delivery["signature"] == "not checked"
        assert delivery["message"]["data"]["id"] == record["id"]
        path = f"{API}/webhooks/{hook['id']}"
        types = ["render.*"]
        for secret, status, code in ((hook["secret"], "valid", 0), ("whsec_AAAA", "no signat", 1)):
            with listening("--secret", secret, "--count", "1") as (child, url):
                served.client.patch(path, json={"url": url, "types": types})
                served.client.post(f"{path}/ping")
                line = child.stdout.readline()
                assert "webhook.ping" in line
                assert f"[signature {status}" in line
                assert child.wait(60) == code


def test_a_secret_that_is_none_is_refused():
    with listening("--secret", "abc") as (child, line):
        assert "whsec_" in line
        assert child.wait(60) == 2


def test_the_secret_may_be_in_the_environment_of_a_service(monkeypatch):
    from fragdex.service.config import load_settings

    monkeypatch.setenv("FRAGDEX_WEBHOOK_SECRET", "whsec_AAAA")
    assert load_settings().port == Settings().port
