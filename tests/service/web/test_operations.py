"""What docs/operations.md has people put into other programs, in these programs."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time

import httpx
import pytest
import sqlalchemy as sa

from fragdex.service.records.tables import uploads
from service.serving import API, serving
from service.working import fixture_bytes, md5_of, uploaded

nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


@pytest.fixture(scope="module")
def blocks(root):
    """The code of the page, by its language."""
    text = (root / "docs" / "operations.md").read_text("utf-8")
    code_blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return lambda language: [code for name, code in code_blocks if name == language]


@nginx
def test_nginx_sends_the_bytes_and_nobody_else_does(tmp_path, blocks):
    (directives,) = (code for code in blocks("nginx") if "internal;" in code)
    store = tmp_path / "store"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(tmp_path / "data", store_url=store.as_uri(), x_accel_prefix="/inside/") as served:
        directives = directives.replace("127.0.0.1:8000", served.url.removeprefix("http://"))
        directives = directives.replace("/srv/fragdex/store/", f"{store}/")
        directives = directives.replace("listen 80;", f"listen 127.0.0.1:{port};")
        folders = "".join(
            f"{name}_temp_path {tmp_path}/{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(
            f"{user}\npid {tmp_path}/pid;\ndaemon off;\nerror_log {tmp_path}/errors;\n"
            f"events {{}}\nhttp {{\n{folders}access_log off;\n{directives}}}\n"
        )
        command = ["nginx", "-p", tmp_path, "-c", configuration, "-e", tmp_path / "errors"]
        process = subprocess.Popen(command)
        try:
            _until_it_listens(port)
            headers = {"authorization": f"Bearer {served.key}"}
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as client:
                _walk(client, served)
                _an_image_keeps_its_policy(client)
        finally:
            process.terminate()
            process.wait(30)


def _until_it_listens(port):
    for _ in range(200):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nginx does not begin")


def _walk(client, served):
    data = fixture_bytes("frag-audio.m4a")
    record = uploaded(client, data)
    process = client.post(f"{API}/unprocessed_files/{record['id']}/process").json()
    track = f"{API}/isobmff_tracks/{process['isobmff_file_id']}/1"
    whole = client.get(track)
    assert whole.content == data
    assert whole.headers["server"].startswith("nginx")
    part = client.get(track, headers={"range": "bytes=5-99"})
    assert (part.status_code, part.content) == (206, data[5:100])
    same = client.get(track, headers={"if-none-match": whole.headers["etag"]})
    assert same.status_code == 304
    _the_answer_is_that_of_the_service(client, served, track, data)
    assert client.get(track, headers={"authorization": ""}).status_code == 401
    assert client.get("/inside/objects").status_code == 404
    # a token is bound to the origin that the client sees
    token = client.post(f"{API}/url-token", json={"url": track}).json()["token"]
    url = f"{client.base_url}{track}".replace("//api", "/api")
    assert httpx.get(url, params={"token": token}, trust_env=False, timeout=60).content == data
    assert served.anyone.get(track, params={"token": token}).status_code == 403
    _a_body_without_length_is_not_held_back(client, served)


def _the_answer_is_that_of_the_service(client, served, track, data):
    for origin in ({}, {"origin": "https://a.example"}):
        own = served.client.get(track, headers=origin).headers
        through = client.get(track, headers=origin).headers
        lost = {name: through.get(name) for name in own if own[name] != through.get(name)}
        # named to nginx, a file has no length of its own, and nginx dates what it sends
        assert lost.keys() <= {"content-length", "x-accel-redirect", "date", "x-request-id"}, lost
        assert through["accept-ranges"] == "bytes"
    etag = own["etag"]
    for condition, status in ((etag, 206), ('"another"', 200)):
        asked = {"range": "bytes=0-9", "if-range": condition}
        assert client.get(track, headers=asked).status_code == status
    beyond = client.get(track, headers={"range": "bytes=999999999-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(data)}")


def _an_image_keeps_its_policy(client):
    drawn = b'<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"/>'
    new = {"filename": "a.svg", "byte_size": len(drawn)}
    record = client.post(f"{API}/image_files", json=new).json()
    path = f"{API}/image_files/{record['id']}"
    assert client.post(f"{path}/upload", content=drawn).status_code == 201
    shown = client.get(path)
    assert shown.content == drawn
    assert "default-src 'none'" in shown.headers["content-security-policy"]


def _a_body_without_length_is_not_held_back(client, served):
    data = bytes(100_000)
    new = {"filename": "a.bin", "byte_size": len(data), "md5": md5_of(data)}
    record = client.post(f"{API}/unprocessed_files", json=new).json()
    path = f"{API}/unprocessed_files/{record['id']}/upload"
    mine, writing = uploads.c.record_id == record["id"], []

    def body():
        yield data[:50_000]
        for _ in range(200):
            with served.context.database.read() as connection:
                writing.append(connection.scalar(sa.select(uploads.c.lease_holder).where(mine)))
            if writing[-1]:
                break
            time.sleep(0.05)
        yield data[50_000:]

    assert client.post(path, content=body()).status_code == 201
    assert writing[-1], "the service heard of the body while half of it was sent"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path, blocks):
    (unit,) = blocks("ini")
    path = tmp_path / "fragdex.service"
    path.write_text(re.sub(r"ExecStart=\S+ ", f"ExecStart={sys.executable} ", unit))
    done = subprocess.run(
        ["systemd-analyze", "verify", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
