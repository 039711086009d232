"""Renders over HTTP: a service that waits with them, and one that works on them."""

import pytest

from service.serving import API

SPINNER = """<!doctype html><style>body{margin:0;background:#123}
div{width:40px;height:40px;background:#fc0;animation:go 1s linear infinite}
@keyframes go{to{transform:translateX(100px)}}</style><div></div>"""


@pytest.fixture
def begun(client):
    """Makes renders; answers with their records."""

    def begin(**body):
        answer = client.post(f"{API}/renders", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    return begin
