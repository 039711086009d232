"""https is verified as httpx does it, and costs nothing where there is none."""

import asyncio
import datetime
import http.server
import ipaddress
import ssl
import threading

import pytest

import fragdex
from fragdex.client import (
    AsyncClient,
    Client,
    NotFound,
    Retries,
    ServiceUnreachable,
    UnexpectedResponse,
    api,
)
from fragdex.errors import SourceUnavailable
from fragdex.testing import RangeServer, movie

x509 = pytest.importorskip("cryptography.x509")
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402

MOVIE = movie(fragments=2)
ONCE = Retries(most=0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a key and its own certificate, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    own_certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + own_certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def https_url(certificate):
    """The URL of a movie on an https server whose certificate nobody else has signed."""

    class Whole(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            first, last = self.headers.get("Range", "bytes=0-9")[len("bytes=") :].split("-")
            part = MOVIE[int(first) : int(last) + 1]
            self.send_response(206)
            end = int(first) + len(part) - 1
            self.send_header("Content-Range", f"bytes {first}-{end}/{len(MOVIE)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Whole)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/movie.mp4"
    server.shutdown()
    thread.join()
    server.server_close()


def ask_blocking(url):
    with Client(url, retries=ONCE) as client:
        client.send(api.get_file("0193"))


def ask_by_asyncio(url):
    async def ask():
        async with AsyncClient(url, retries=ONCE) as client:
            await client.send(api.get_file("0193"))

    asyncio.run(ask())


def test_a_certificate_that_nobody_vouches_for_is_refused(https_url, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(SourceUnavailable, match=r"(?i)certificate"):
        fragdex.index(https_url, retries=0)


@pytest.mark.parametrize("ask", [ask_blocking, ask_by_asyncio])
def test_clients_of_the_service_are_as_strict(https_url, certificate, monkeypatch, ask):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(ServiceUnreachable, match=r"(?i)certificate"):
        ask(https_url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(UnexpectedResponse):
        ask(https_url)


def test_a_certificate_that_the_environment_vouches_for_is_taken(
    https_url, certificate, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert fragdex.index(https_url).tracks == fragdex.index(MOVIE).tracks


def test_http_reads_no_certificates(monkeypatch):
    def read(*_, **__):
        raise AssertionError("certificates were read")

    with RangeServer(MOVIE) as server:
        monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", read)
        assert fragdex.index(server.url).tracks == fragdex.index(MOVIE).tracks
        for ask in (ask_blocking, ask_by_asyncio):
            with pytest.raises(NotFound):
                ask(server.url)
