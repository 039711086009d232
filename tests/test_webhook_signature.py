"""Signatures of webhooks: the vector that the specification's libraries share, and laws."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.client import InvalidSignature, verify_webhook
from fragdex.webhook_signature import secret_bytes, secret_text, sign, signature_problem

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEYS = st.binary(min_size=24, max_size=64)
IDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
TIMES = st.integers(0, 10**10)


def said(key, id_, at, body):
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(key, id_, at, body),
    }


def test_the_published_vector():
    key, id_, at = secret_bytes(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    body = b'{"test": 2432232314}'
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(key, id_, at, body) == wanted
    assert signature_problem(said(key, id_, at, body), body, [SECRET], at) is None


@given(KEYS, KEYS, IDS, TIMES, st.binary(max_size=200), st.integers(-300, 300))
def test_what_was_signed_is_believed_and_nothing_else(key, other, id_, at, body, away):
    headers, secret, now = said(key, id_, at, body), secret_text(key), at + away
    assert secret_bytes(secret) == key
    assert (
        signature_problem({k.upper(): v for k, v in headers.items()}, body, [secret], now) is None
    )
    both = headers | {"webhook-signature": f"v1,AAAA {headers['webhook-signature']}"}
    assert signature_problem(both, body, [secret_text(other), secret], now) is None
    wrong = [(headers, body + b"."), (headers | {"webhook-id": id_ + "."}, body)]
    wrong.append((headers | {"webhook-timestamp": str(at + 1)}, body))
    wrong.append((headers | {"webhook-signature": headers["webhook-signature"][3:]}, body))
    for changed, sent in wrong:
        assert signature_problem(changed, sent, [secret], at) == "no signature fits"
    if other != key:
        assert signature_problem(headers, body, [secret_text(other)], now) == "no signature fits"
    for late in (at + 301, at - 301):
        assert "300 s are allowed" in signature_problem(headers, body, [secret], late)


@given(
    st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", "Webhook-Signature", "x"]), st.text()
    ),
    st.binary(),
)
def test_whatever_comes_has_an_answer(headers, body):
    assert signature_problem(headers, body, [SECRET], 0.0)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_***", "whsec_AAA", "whsec_ä"])
def test_a_secret_that_is_none_is_the_receivers_own_fault(secret):
    with pytest.raises(ValueError, match="whsec_"):
        secret_bytes(secret)


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", json.dumps("x").encode()])
def test_a_body_that_is_no_message_is_refused(body):
    with pytest.raises(InvalidSignature, match="JSON object"):
        verify_webhook(said(secret_bytes(SECRET), "1", 100, body), body, SECRET, now=100)
