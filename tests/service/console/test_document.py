"""The console as answers: one document at every address, and a policy that runs its files only."""

import re
from urllib.parse import urljoin

import pytest

from fragdex.service import console
from service.serving import serving

ADDRESSES = ("/", *(f"/{one}{rest}" for one in console.SECTIONS for rest in ("", "/x")))
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


def parts_of(answer):
    """The URLs of all that the document names, seen from its base."""
    base = urljoin(str(answer.url), re.search(r'<base href="([^"]+)">', answer.text)[1])
    named = re.findall(r"""(?:src|href)="([^"]*)""", answer.text)
    return {urljoin(base, one) for one in named if one.startswith("console/")}


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_has_the_same_console(served, address):
    answer = served.anyone.get(address)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    parts = parts_of(answer)
    assert parts == parts_of(served.anyone.get("/"))
    assert len(parts) > 5


def test_nothing_runs_but_its_own_files(served):
    answer = served.anyone.get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    assert directives["default-src"] == "'none'"
    for name in ("script-src", "style-src", "connect-src"):
        assert directives[name] == "'self'"
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|javascript:", answer.text)


def test_its_files_are_kept_by_browsers_and_small(served):
    first = served.anyone.get("/")
    sizes = [len(first.content)]
    for name in console.parts():
        answer = served.anyone.get(f"/console/{console.version()}/{name}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        kind = "css" if name.endswith(".css") else "javascript"
        assert answer.headers["content-type"] == f"text/{kind}; charset=utf-8"
        # another version's address is answered too, and not kept
        other = served.anyone.get(f"/console/0123/{name}")
        assert (other.content, other.headers["cache-control"]) == (answer.content, "no-cache")
        sizes.append(len(answer.content))
    assert sum(sizes) < MOST_BYTES
    for name in ("none.js", "console.html", "__init__.py", "..%2f__init__.py"):
        assert served.anyone.get(f"/console/{console.version()}/{name}").status_code == 404


def test_it_is_not_sent_twice(served):
    for address in ("/", f"/console/{console.version()}/app.js"):
        first = served.anyone.get(address)
        again = served.anyone.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        head = served.anyone.head(address)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(first.content))
        assert served.anyone.post(address).status_code == 405
