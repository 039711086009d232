"""Published clients of tus upload to a running service that is killed meanwhile."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from service.killing import service
from service.serving import API, serving

NODE = Path(__file__).parent / "node"
CHUNK = 1 << 20

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules").is_dir(),
    reason="node, or the clients that ./dev setup installs with npm, are missing",
)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "film.bin"
    path.write_bytes(os.urandom(12 * CHUNK + 12_345))
    return path


def sending(client, url, key, film):
    """The lines that a client prints while it uploads."""
    command = ["node", NODE / "upload.mjs", client, f"{url}{API}/tus", key, film, CHUNK]
    with subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            for line in process.stdout:
                yield json.loads(line)
        finally:
            process.kill()


def need_whole(url, key, location, film):
    file = location.rpartition("/")[2]
    headers = {"Authorization": f"Bearer {key}"}
    record = httpx.get(
        f"{url}{API}/files/{file}", headers=headers, trust_env=False, timeout=60
    ).json()
    assert record["byte_size"] == record["next_byte"] == film.stat().st_size
    assert record["md5"].replace("-", "") == hashlib.md5(film.read_bytes()).hexdigest()


@needs_node
@pytest.mark.parametrize("client", ["tus", "uppy"])
def test_an_upload_outlives_kills(client, film, tmp_path):
    with service(tmp_path / "data") as served:
        kills, location = [3 * CHUNK, 8 * CHUNK], None
        for report in sending(client, served.url, served.key, film):
            assert "error" not in report
            location = report.get("url", location)
            if kills and report.get("sent", 0) >= kills[0]:
                kills.pop(0)
                served.kill()
                served.start()
        assert kills == []
        assert location is not None
        need_whole(served.url, served.key, location, film)


@needs_node
@pytest.mark.parametrize("client", ["creation", "parallel"])
def test_an_upload_by_what_the_protocol_adds(client, film, tmp_path):
    with serving(tmp_path) as served:
        *_, last = sending(client, served.url, served.key, film)
        need_whole(served.url, served.key, last["url"], film)


@needs_node
def test_a_page_of_another_origin_uploads(tmp_path, film):
    """The browser asks first (CORS), and lets the page read the protocol's headers."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium (on Debian: apt-get install chromium-headless-shell)")
    script = (NODE / "node_modules" / "tus-js-client" / "dist" / "tus.min.js").read_text("utf-8")
    with serving(tmp_path) as served, playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path)
        page = browser.new_page()
        # the same machine by another name is another origin
        page.goto(f"http://localhost:{served.address[1]}/healthz")
        page.add_script_tag(content=script)
        location = page.evaluate(
            """([endpoint, key]) => new Promise((resolve, reject) => {
                const file = new File(["x".repeat(300000)], "words.txt");
                const upload = new tus.Upload(file, {
                    endpoint, chunkSize: 100000, storeFingerprintForResuming: false,
                    headers: { Authorization: `Bearer ${key}` },
                    metadata: { filename: file.name },
                    onError: reject, onSuccess: () => resolve(upload.url),
                });
                upload.start();
            })""",
            [f"{served.url}{API}/tus", served.key],
        )
        browser.close()
        answer = served.client.head(location, headers={"Tus-Resumable": "1.0.0"})
        assert answer.headers["Upload-Offset"] == "300000"
