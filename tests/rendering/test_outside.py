"""What pages may ask for beyond their site: real connections, and names that lie."""

import contextlib
import ipaddress
import socket
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.outgoing import SPECIAL, is_public
from fragdex.rendering.site import NOTHING, Answer, Blocked, FirstOf
from fragdex.rendering.web import AllowedHosts

NAME = "fonts.example.org"
PRIVATE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:53aa:64c::1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_lead_inside(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_addresses_of_the_public_internet(address):
    assert is_public(ipaddress.ip_address(address))


NOT_PUBLIC = [
    *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64"),
    *("2001::/32", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7"),
    *("fe80::/10", "fec0::/10", "ff00::/8", "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10"),
    *(
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/29",
        "192.0.0.128/25",
        "192.0.2.0/24",
    ),
    *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
]
"""Of IANA's registries of special addresses: no host of the internet, or a way to another."""


@pytest.mark.parametrize("network", SPECIAL, ids=str)
def test_each_row_of_the_registries_decides_at_its_edges(network, monkeypatch):
    """Whatever the Python that runs thinks: 192.0.0.0/24 was public to some."""
    for one in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        monkeypatch.setattr(one, "is_global", property(lambda _: pytest.fail("asked Python")))
    assert is_public(network[0]) is SPECIAL[network]
    assert is_public(network[-1]) is SPECIAL[network]


@pytest.mark.parametrize("network", [*map(ipaddress.ip_network, NOT_PUBLIC)], ids=str)
@given(data=st.data())
def test_no_address_of_a_special_network_is_public(network, data):
    """But those of IPv4 that stand for a public address, written in six bytes more."""
    address = network[data.draw(st.integers(0, network.num_addresses - 1))]
    mapped = getattr(address, "ipv4_mapped", None)
    assert not is_public(address) or (mapped is not None and is_public(mapped))


@given(st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_outside_of_global_unicast_nothing_is_public(address):
    if address not in ipaddress.ip_network("2000::/3") and address.ipv4_mapped is None:
        assert not is_public(address)


class Answering(BaseHTTPRequestHandler):
    """A server of a page's fonts, and of what breaks its readers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        kind = self.path.strip("/")
        if kind.startswith("to:"):
            self._answer(302, b"", Location=kind.removeprefix("to:"))
        elif kind == "large":
            self._answer(200, b"x" * 2000)
        elif kind == "short":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x")
            self.close_connection = True
        elif kind == "slow":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    self.wfile.write(b"x")
                    time.sleep(0.05)
        elif "Range" in self.headers:
            self._answer(206, b"ab", **{"Content-Range": "bytes 0-1/9"})
        else:
            self._answer(200, b"font", **{"Content-Type": "font/woff2", "Set-Cookie": "a=b"})

    def _answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},DNS:*.cdn.example.org",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.trust = ssl.create_default_context(cafile=folder / "cert.pem")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Names:
    """A resolver: each question takes the next answer; the last one stays."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, host, port, **_):
        self.asked.append(host)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not addresses:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]


@pytest.fixture
def outside(server):
    """Allowed hosts on the test's server, which counts as public here."""

    def make(*names, hosts=(NAME,), **more):
        port = server.server_address[1]
        more = {"reachable": lambda _: True, "tls": server.trust, "seconds": 10, **more}
        return AllowedHosts(
            [f"{host}:{port}" for host in hosts], resolve=Names(*(names or [["127.0.0.1"]])), **more
        )

    return make


@pytest.fixture
def url(server):
    server.asked.clear()
    return f"https://{NAME}:{server.server_address[1]}"


def reason(outside, url):
    with pytest.raises(Blocked) as caught:
        outside.fetch(url, {})
    return caught.value.reason


def test_a_named_host_answers(outside, server, url):
    answer = outside().fetch(f"{url}/a.woff2?b", {"Cookie": "c", "User-Agent": "u", "Host": "x"})
    assert answer == Answer(200, {"content-type": "font/woff2"}, b"font")
    path, headers = server.asked[0]
    assert path == "/a.woff2?b"
    assert headers == {
        "Host": url.removeprefix("https://"),
        "User-Agent": "u",
        "Accept-Encoding": "identity",
    }


def test_ranges_are_asked_for(outside, url):
    answer = outside().fetch(f"{url}/film.mp4", {"Range": "bytes=0-1"})
    assert (answer.status, answer.headers["content-range"]) == (206, "bytes 0-1/9")


def test_names_below_a_name(outside, url):
    below = outside(hosts=["*.cdn.example.org"])
    there = url.replace(NAME, "a.cdn.example.org")
    assert below.fetch(f"{there}/", {}).body == b"font"
    for other in ("cdn.example.org", "xcdn.example.org", "a.cdn.example.org.evil.example"):
        assert "list" in reason(below, url.replace(NAME, other))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda url: url.replace("https", "http"), "only https"),
        (lambda url: "file:///etc/passwd", "only https"),
        (lambda url: "ftp://" + NAME, "only https"),
        (lambda url: "https://other.example.org/", "list"),
        (lambda url: f"https://{NAME}/", "list"),  # another port
        (lambda url: "https://127.0.0.1/", "list"),
        (lambda url: "https://169.254.169.254/latest/meta-data/", "list"),
        (lambda url: "https://[::1]/", "list"),
        (lambda url: url.replace("//", f"//{NAME}@"), "credentials"),
        (lambda url: f"{url}/a b", "not encoded"),
        (lambda url: f"{url}/a\r\nHost: x", "not encoded"),
        (lambda url: "https://[", "cannot be read"),
        (lambda url: "https://a:b/", "cannot be read"),
    ],
)
def test_what_is_not_asked_for(outside, server, url, made, said):
    assert said in reason(outside(), made(url))
    assert server.asked == []


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.0.1"])
def test_a_name_that_leads_inside(outside, server, url, address):
    public = outside([address], reachable=is_public)
    both = outside(["1.1.1.1", address], reachable=is_public)
    nowhere = outside([], reachable=is_public)
    reasons = {reason(one, f"{url}/") for one in (public, both, nowhere)}
    assert len(reasons) == 1, "a page would map the network by names"
    assert "which is not public" in reasons.pop()
    assert server.asked == []


def test_a_name_is_resolved_once_and_connected_where_it_was_looked_at(outside, server, url):
    """DNS rebinding: what the name says at the second question is never used."""
    rebinding = outside(["127.0.0.1"], ["203.0.113.1"])
    assert rebinding.fetch(f"{url}/", {}).status == 200
    assert rebinding._resolve.asked == [NAME]


def test_names_without_an_address(outside, url):
    assert "no address" in reason(outside([]), f"{url}/")


def test_redirects_are_looked_at_like_requests(outside, server, url):
    assert outside().fetch(f"{url}/to:/a.woff2", {}).body == b"font"
    for target in ("http://127.0.0.1/", "https://169.254.169.254/", "file:///etc/passwd"):
        assert reason(outside(), f"{url}/to:{target}")
    rebinding = outside(["127.0.0.1"], ["169.254.169.254"],
                        reachable=lambda one: not one.is_link_local)  # fmt: skip
    assert "which is not public" in reason(rebinding, f"{url}/to:/a")
    assert "redirects" in reason(outside(), f"{url}/to:/to:/to:/to:/to:/to:/to:/a")


def test_what_is_too_large_too_slow_or_cut_off(outside, url):
    assert "more than 1000 bytes" in reason(outside(max_bytes=1000), f"{url}/large")
    assert "more than 1 s" in reason(outside(seconds=1), f"{url}/slow")
    assert "could not be reached" in reason(outside(), f"{url}/short")


def test_a_certificate_of_another_name(outside, server, url):
    hosts = outside(hosts=["other.example.org"])
    assert "could not be reached" in reason(hosts, url.replace(NAME, "other.example.org"))


def test_nothing_and_one_after_the_other(outside, url):
    assert "no network" in reason(NOTHING, f"{url}/")
    assert FirstOf(NOTHING, outside()).fetch(f"{url}/", {}).status == 200
    assert "list" in reason(FirstOf(NOTHING, outside()), "https://other.example.org/")
