"""The page as an answer: complete in itself, under a policy that lets nothing else run."""

import base64
import hashlib
import re

import pytest

from service.serving import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_it_is_one_document_that_needs_nothing_else(served):
    answer = served.anyone.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    addresses = re.findall(r"""(?:src|href)="([^"]*)""", answer.text)
    assert [one for one in addresses if not one.startswith("data:")] == ["docs"]
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text


def test_the_policy_names_the_scripts_and_styles_that_are_inside(served):
    answer = served.anyone.get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["connect-src"] == "'self'"
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        (inside,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert directives[name] == f"'sha256-{digest}'"


def test_it_is_not_sent_twice(served):
    first = served.anyone.get("/")
    again = served.anyone.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = served.anyone.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(first.content))
    assert served.anyone.post("/").status_code == 405
