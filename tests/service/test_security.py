"""Walls of the threat model (docs/threat-model.md) that no other test is about."""

import jwt

from service.serving import API, client_of, serving

URL = {"url": f"{API}/files"}


def test_forwarded_fields_of_strangers_are_not_believed(tmp_path):
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    for believed, scheme in (("127.0.0.1", "https"), ("203.0.113.1", "http"), ("", "http")):
        folder = tmp_path / f"by-{believed}"
        with serving(folder, forwarded_allow_ips=believed) as served:
            answer = served.client.post(f"{API}/url-token", json=URL, headers=headers)
            token = answer.json()["token"]
            claims = jwt.decode(token, options={"verify_signature": False})
            assert claims["origin"].startswith(f"{scheme}://"), believed
            # and so a token of one scheme opens nothing under the other
            with client_of(served.url, token) as client:
                plain, claimed = (
                    client.get(f"{API}/files"),
                    client.get(f"{API}/files", headers=headers),
                )
            expected = (403, 200) if scheme == "https" else (200, 200)
            assert (plain.status_code, claimed.status_code) == expected


def test_no_answer_lets_pages_send_credentials(tmp_path):
    origin = {"Origin": "https://evil.example"}
    preflight = {**origin, "Access-Control-Request-Method": "DELETE"}
    with serving(tmp_path, cors_origins=("*",)) as served:
        answers = [
            served.anyone.options(f"{API}/files", headers=preflight),
            served.anyone.get(f"{API}/files", headers=origin),
            served.client.get(f"{API}/files", headers={**origin, "Cookie": "key=1"}),
            served.anyone.get(f"{API}/files", headers={"Cookie": f"key={served.key}"}),
        ]
    assert [answer.status_code for answer in answers] == [200, 401, 200, 401]
    for answer in answers:
        assert "access-control-allow-credentials" not in answer.headers
        assert "set-cookie" not in answer.headers
