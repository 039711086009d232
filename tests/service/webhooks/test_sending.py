"""Requests to receivers: names that lie, servers that stall, redirects; and the pauses between."""

import socket
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fragdex.service.config import Settings
from fragdex.service.webhooks.worker import PAUSES, NotSent, Sender, pause
from service.webhooks.receiving import LOOPBACK, receiving

HEADERS = {"Content-Type": "application/json"}


@pytest.fixture
def receiver():
    with receiving() as new_receiver:
        yield new_receiver


def of(*addresses):
    """A resolver that has these addresses, one list after the other."""
    turns = list(addresses)

    def resolve(host, port, **_):
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    return resolve


def port_of(receiver):
    return receiver.url.rsplit(":", 1)[1].partition("/")[0]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "fd00::1",
     "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_not_asked(address):
    sender = Sender(5, resolve=of([address]))
    with pytest.raises(NotSent, match="which is not public"):
        sender.post("https://hooks.example.org/", HEADERS, b"{}")
    mixed = Sender(5, resolve=of(["93.184.215.14", address]))
    with pytest.raises(NotSent, match="which is not public") as refused:
        mixed.post("https://hooks.example.org/", HEADERS, b"{}")
    with pytest.raises(NotSent) as nowhere:
        Sender(5, resolve=of([])).post("https://hooks.example.org/", HEADERS, b"{}")
    assert str(refused.value) == str(nowhere.value), "what names resolve to inside is not told"


def test_a_name_that_points_elsewhere_a_moment_later_changes_nothing(receiver):
    """It is resolved once: the second answer of the resolver is never asked for."""
    resolve = of(["127.0.0.1"], ["10.255.255.1"])
    sender = Sender(5, [LOOPBACK], resolve)
    url = f"http://hooks.example.org:{port_of(receiver)}/hook"
    assert sender.post(url, HEADERS, b"{}").accepted
    with pytest.raises(NotSent, match="which is not public"):
        sender.post(url, HEADERS, b"{}")
    assert len(receiver.came) == 1
    assert receiver.came[0][0]["Host"].startswith("hooks.example.org")


def test_http_is_for_the_networks_of_the_setting_alone(receiver):
    with pytest.raises(NotSent, match="with https is expected"):
        Sender(5).post(receiver.url, HEADERS, b"{}")
    public = Sender(5, ["10.0.0.0/8"], of(["93.184.215.14"]))
    with pytest.raises(NotSent, match="webhook_networks"):
        public.post("http://hooks.example.org/", HEADERS, b"{}")
    assert receiver.came == []


def test_redirects_are_not_followed(receiver):
    with receiving() as inside:
        receiver.answers = [(307, {"Location": inside.url})]
        answer = Sender(5, [LOOPBACK]).post(receiver.url, HEADERS, b"{}")
        assert (answer.status, answer.accepted) == (307, False)
        assert inside.came == []


def test_a_receiver_that_stalls_is_cut(receiver):
    def trickle(handler):
        try:
            while True:
                handler.wfile.write(b"H")
                time.sleep(0.05)
        except OSError:
            return

    receiver.answers = [trickle]
    with pytest.raises(NotSent, match=r"no response within 0\.5 s"):
        Sender(0.5, [LOOPBACK]).post(receiver.url, HEADERS, b"{}")


def test_of_a_long_response_the_beginning_is_read(receiver):
    def long(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            handler.wfile.write(b"\x1b[31m\xff" + b"a" * (8 << 20))
        except OSError:
            return

    receiver.answers = [long]
    answer = Sender(10, [LOOPBACK]).post(receiver.url, HEADERS, b"{}")
    assert answer.accepted
    assert answer.body.startswith(" [31m aaa")
    assert len(answer.body) <= 1000


def test_who_is_not_there_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotSent, match="ConnectionRefusedError"):
        Sender(5, [LOOPBACK]).post(f"http://127.0.0.1:{port}/", HEADERS, b"{}")
    with pytest.raises(NotSent, match="has no address"):
        Sender(5, [], of([])).post("https://nowhere.example.org/", HEADERS, b"{}")


def test_tls_is_checked(receiver):
    """A server that speaks no TLS, at an address that is allowed."""
    with pytest.raises(NotSent, match="could not be reached: SSLError"):
        Sender(5, [LOOPBACK]).post(f"https://localhost:{port_of(receiver)}/", HEADERS, b"{}")
    assert receiver.came == []


@example(8, 9, None, 1.0)  # the longest of one attempt, and the shortest of the next
@given(st.integers(1, 12), st.integers(1, 10), st.none() | st.floats(0, 1e9), st.floats(0, 1))
def test_pauses_grow_and_end(attempts, limit, retry_after, chance):
    seconds = pause(attempts, limit, retry_after, chance)
    if attempts >= limit:
        assert seconds is None
        return
    assert PAUSES[attempts - 1] <= seconds <= 1.2 * 86_400
    if retry_after is None:
        assert seconds <= 1.2 * PAUSES[attempts - 1]
        next_one = pause(attempts + 1, 10, None, 0.0)
        assert next_one is None or next_one >= seconds
    else:
        assert seconds >= min(retry_after, 86_400)


def test_networks_of_the_setting_are_networks():
    assert Settings(webhook_networks="10.0.0.0/8, fd00::/8").webhook_networks == (
        "10.0.0.0/8", "fd00::/8",
    )  # fmt: skip
    with pytest.raises(ValueError, match="webhook_networks"):
        Settings(webhook_networks="10.0.0.1/8")
