"""What a process of the service holds in memory is mostly what it imported: it imports no more
than it uses."""

import os
import re
import subprocess
import sys
from pathlib import Path

from service.serving import API, client_of
from service.working import FIXTURES, md5_of

# Beside what the process tells itself, so that nothing else is loaded for the question.
PROGRAM = """
import runpy, sys
told = sys.argv.pop(1)
try:
    runpy.run_module("fragdex", run_name="__main__")
finally:
    with open(told, "w") as file:
        file.write(" ".join(sorted(sys.modules)))
"""

DECLARED = """
from fragdex.service.app import ROUTERS
from fragdex.service.web.fields import ApiModel

def models(of):
    for one in of.__subclasses__():
        yield one
        yield from models(one)

for router in ROUTERS:
    for route in router.routes:
        if "dependant" in route.__dict__:
            print(route)
for model in models(ApiModel):
    if model.__pydantic_complete__:
        print(model)
print(len(list(models(ApiModel))) > 50)
"""
"""Routes that were analysed and models that were made ready because they are declared."""

NEVER = {"av", "rich", "httpx", "boto3", "hypothesis"}
NEVER |= {"opentelemetry.sdk", "opentelemetry.exporter", "requests"}  # traces that nobody asked for
"""What a process that answers has no use for."""

OF_UPGRADES = {"alembic", "mako", "pygments"}
OF_IMAGES = {"PIL", "defusedxml"}
OF_TOKENS = {"jwt", "cryptography"}


def served(folder: Path, *calls):
    """Names of packages, and of those in them, that `fragdex serve` imported until its end."""
    modules_path = folder / "modules"
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        modules_path,
        "serve",
        "--port",
        "0",
        "--data",
        folder,
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FRAGDEX_", "OTEL_"))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    output = ""
    try:
        for line in process.stdout:
            output += line
            if match := re.match(r"Serving (http://\S+)", line):
                break
        key_file = folder / "key"
        if key_match := re.search(r"^ef_\S+$", output, re.MULTILINE):
            key_file.write_text(key_match[0])
        with client_of(match[1], key_file.read_text()) as client:
            for call in calls:
                call(client)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    names = [name.split(".") for name in modules_path.read_text().split()]
    return {name[0] for name in names} | {".".join(name[:2]) for name in names}


def a_film_is_uploaded_and_asked_for(client):
    data = (FIXTURES / "frag-audio.m4a").read_bytes()
    new = {"filename": "a.mp4", "byte_size": len(data), "md5": md5_of(data)}
    record = client.post(f"{API}/unprocessed_files", json=new).json()
    path = f"{API}/unprocessed_files/{record['id']}"
    assert client.post(f"{path}/upload", content=data).status_code == 201
    process = client.post(f"{path}/process").json()
    file = f"{API}/isobmff_files/{process['isobmff_file_id']}"
    for url in (file, f"{file}/index", f"{file}/seek?time_ms=0", f"{API}/unprocessed_files"):
        assert client.get(url).status_code == 200, url


def an_image_is_uploaded(client):
    data = b"\x89PNG\r\n\x1a\nno"
    record = client.post(
        f"{API}/image_files", json={"filename": "a.png", "byte_size": len(data)}
    ).json()
    answer = client.post(f"{API}/image_files/{record['id']}/upload", content=data)
    assert answer.status_code == 422


def a_url_token_is_asked_for(client):
    answer = client.post(f"{API}/url-token", json={"url": f"{API}/image_files"})
    assert answer.status_code in (200, 201), answer.text


def test_serving_from_sqlite_imports_what_it_uses(tmp_path):
    """A new database gets its tables at once: no start has to do with upgrades."""
    assert served(tmp_path) & (NEVER | OF_UPGRADES) == set()
    imported = served(tmp_path, a_film_is_uploaded_and_asked_for)
    needless = NEVER | OF_UPGRADES | OF_IMAGES | OF_TOKENS
    assert imported & needless == set()


def test_what_is_used_seldom_is_imported_then(tmp_path):
    imported = served(tmp_path, an_image_is_uploaded, a_url_token_is_asked_for)
    assert "jwt" in imported
    # images are measured in processes of their own
    assert imported & (NEVER | OF_IMAGES) == set()


def test_what_draws_pages_waits_for_no_library_of_media_or_numbers():
    """A render begins with imports, in two processes one after the other."""
    program = (
        "import sys, fragdex.rendering.render, fragdex.rendering.child\n"
        "import fragdex.rendering.slice\n"
        "from fragdex.cli.options import parse_time\n"
        "parse_time('10')\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(process.stdout.split()) & {"numpy", "av", "PIL", "pydantic", "sqlalchemy"} == set()
    assert "fragdex" in process.stdout


def test_nothing_of_a_route_or_a_model_is_made_when_the_service_is_imported():
    process = subprocess.run(
        [sys.executable, "-c", DECLARED], capture_output=True, check=True, text=True
    )
    assert process.stdout == "True\n"
