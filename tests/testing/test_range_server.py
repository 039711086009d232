"""The range server answers as RFC 9110 wants, and wrongly only on demand."""

import contextlib
import email.policy
import gzip
import http.client
import socket
import threading
from urllib.parse import urlsplit

import pytest

from fragdex.testing import Faults, RangeServer

CONTENT = bytes(range(256)) * 40
SIZE = len(CONTENT)


def ask(url, method="GET", **headers):
    """Ask with the standard library's client, so that nothing of ours reads the answer."""
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    with contextlib.closing(http.client.HTTPConnection(parts.netloc, timeout=10)) as connection:
        connection.request(
            method, path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.fixture
def server():
    with RangeServer(CONTENT) as running:
        yield running


class TestAGoodServer:
    def test_everything(self, server):
        status, headers, body = ask(server.url)
        assert (status, body) == (200, CONTENT)
        assert headers["Accept-Ranges"] == "bytes"
        assert headers["Content-Length"] == str(SIZE)

    @pytest.mark.parametrize(
        ("asked", "told", "part"),
        [
            ("bytes=0-9", f"bytes 0-9/{SIZE}", slice(0, 10)),
            ("bytes=-10", f"bytes {SIZE - 10}-{SIZE - 1}/{SIZE}", slice(-10, None)),
            ("bytes=10-99999", f"bytes 10-{SIZE - 1}/{SIZE}", slice(10, None)),
        ],
    )
    def test_a_range(self, server, asked, told, part):
        status, headers, body = ask(server.url, Range=asked)
        assert (status, headers["Content-Range"], body) == (206, told, CONTENT[part])

    def test_a_range_past_the_end(self, server):
        status, headers, body = ask(server.url, Range=f"bytes={SIZE}-")
        assert (status, headers["Content-Range"], body) == (416, f"bytes */{SIZE}", b"")

    @pytest.mark.parametrize("asked", ["bytes=5-4", "lines=0-1", "bytes=0-1,6-5"])
    def test_a_range_it_ignores(self, server, asked):
        assert ask(server.url, Range=asked)[0] == 200

    def test_several_ranges(self, server):
        status, headers, body = ask(server.url, Range="bytes=0-1,300-302")
        kind, _, boundary = headers["Content-Type"].partition("; boundary=")
        assert (status, kind) == (206, "multipart/byteranges")
        # read by the standard library's parser of messages; the content has no line ends here
        message = email.message_from_bytes(
            b"Content-Type: multipart/mixed; boundary=" + boundary.encode() + b"\r\n" + body,
            policy=email.policy.HTTP,
        )
        parts = [
            (part["Content-Range"], part.get_payload(decode=True)) for part in message.iter_parts()
        ]
        assert parts == [
            (f"bytes 0-1/{SIZE}", CONTENT[:2]),
            (f"bytes 300-302/{SIZE}", CONTENT[300:303]),
        ]

    def test_head(self, server):
        status, headers, body = ask(server.url, "HEAD", Range="bytes=0-9")
        assert (status, headers["Content-Length"], body) == (200, str(SIZE), b"")

    def test_conditions(self, server):
        tag = ask(server.url)[1]["ETag"]
        assert ask(server.url, If_None_Match=tag)[0] == 304
        assert ask(server.url, Range="bytes=0-9", If_Range=tag)[0] == 206
        assert ask(server.url, Range="bytes=0-9", If_Range='"other"')[0] == 200

    def test_what_is_not_there(self, server):
        assert ask(server.at("other"))[0] == 404

    def test_several_paths(self):
        with RangeServer({"a b/ü.mp4": b"one", "/two.mp4": b"two"}) as server:
            assert ask(server.url)[2] == b"one"
            assert ask(server.at("a b/ü.mp4"))[2] == b"one"
            assert ask(server.at("two.mp4"))[2] == b"two"

    def test_keeps_its_connections(self, server):
        with contextlib.closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as one:
            for _ in range(3):
                one.request("GET", "/content")
                assert one.getresponse().read() == CONTENT
                assert one.sock is not None

    def test_remembers_what_it_was_asked(self, server):
        ask(server.url, Range="bytes=0-9")
        ask(server.at("none"), "HEAD")
        first, second = server.requests
        assert (first.method, first.path, first.range) == ("GET", "/content", "bytes=0-9")
        assert (first.status, first.sent) == (206, 10)
        assert (second.method, second.range, second.status, second.sent) == ("HEAD", None, 404, 0)
        assert server.bytes_sent == 10

    def test_serves_several_at_once(self):
        with RangeServer(CONTENT, faults=Faults(latency_s=0.05)) as server:
            threads = [threading.Thread(target=ask, args=(server.url,)) for _ in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert server.bytes_sent == 8 * SIZE

    def test_is_gone_afterwards(self):
        server = RangeServer(CONTENT)
        with pytest.raises(RuntimeError, match="not running"):
            _ = server.url
        with server:
            url = urlsplit(server.url)
        with pytest.raises(OSError):
            socket.create_connection((url.hostname, url.port), timeout=1)
        with server:
            assert ask(server.url)[0] == 200


class TestFaults:
    def ask(self, faults, **headers):
        with RangeServer(CONTENT, faults=faults) as server:
            return ask(server.url, **headers)

    def test_ignored_ranges(self):
        status, headers, body = self.ask(Faults(ignore_range=True), Range="bytes=0-9")
        assert (status, body, headers["Accept-Ranges"]) == (200, CONTENT, None)

    def test_short_answers(self):
        with pytest.raises(http.client.IncompleteRead) as raised:
            self.ask(Faults(short_answers=100))
        assert raised.value.partial == CONTENT[:100]

    def test_partial_answers(self):
        status, headers, body = self.ask(Faults(partial_answers=4), Range="bytes=10-19")
        assert (status, headers["Content-Range"]) == (206, f"bytes 10-13/{SIZE}")
        assert body == CONTENT[10:14]

    def test_misplaced_answers(self):
        status, headers, body = self.ask(Faults(misplaced=5), Range="bytes=10-19")
        assert (status, headers["Content-Range"]) == (206, f"bytes 15-24/{SIZE}")
        assert body == CONTENT[15:25]

    def test_what_content_range_can_lack(self):
        lacking = self.ask(Faults(no_content_range=True), Range="bytes=0-9")
        assert (lacking[0], lacking[1]["Content-Range"]) == (206, None)
        unknown = self.ask(Faults(unknown_total=True), Range="bytes=0-9")
        assert unknown[1]["Content-Range"] == "bytes 0-9/*"
        past = self.ask(Faults(unknown_total=True), Range="bytes=99999-")
        assert (past[0], past[1]["Content-Range"]) == (416, None)

    def test_tags(self):
        with RangeServer(CONTENT, faults=Faults(changing_etag=True)) as server:
            assert ask(server.url)[1]["ETag"] != ask(server.url)[1]["ETag"]
            server.faults = Faults(etag="none")
            assert ask(server.url)[1]["ETag"] is None
            server.faults = Faults(etag="weak")
            tag = ask(server.url)[1]["ETag"]
            assert tag.startswith('W/"')
            # RFC 9110, 13.1.5: a weak tag never satisfies If-Range
            assert ask(server.url, Range="bytes=0-9", If_Range=tag)[0] == 200

    def test_changing_length(self):
        with RangeServer(CONTENT, faults=Faults(changing_length=True)) as server:
            assert [len(ask(server.url)[2]) for _ in range(3)] == [SIZE, SIZE + 1, SIZE + 2]

    def test_statuses(self):
        with RangeServer(CONTENT, faults=Faults(status_once=503, retry_after="1")) as server:
            status, headers, _ = ask(server.url)
            assert (status, headers["Retry-After"]) == (503, "1")
            assert ask(server.url)[0] == 200
            server.faults = Faults(status=500, after=2, times=2)
            assert [ask(server.url)[0] for _ in range(3)] == [500, 500, 200]

    def test_dropped_connections(self):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            self.ask(Faults(drop_connections=True))

    def test_redirects(self):
        with RangeServer(CONTENT, faults=Faults(redirects=1)) as server:
            status, headers, _ = ask(server.url)
            assert (status, headers["Location"]) == (302, "/content?hop=1")
            assert ask(server.url + "?hop=1")[0] == 200

    def test_compressed(self):
        status, headers, body = self.ask(Faults(gzip=True))
        assert (status, headers["Content-Encoding"]) == (200, "gzip")
        assert gzip.decompress(body) == CONTENT

    def test_an_old_server(self):
        status, headers, body = self.ask(Faults(http_1_0=True), Range="bytes=0-9")
        assert (status, headers["Content-Length"], body) == (206, None, CONTENT[:10])

    def test_a_drip_ends_with_the_server(self):
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(RangeServer(CONTENT, faults=Faults(drip=(1, 30.0))))
            at = urlsplit(server.url)
            one = stack.enter_context(socket.create_connection((at.hostname, at.port), timeout=5))
            one.sendall(b"GET /content HTTP/1.1\r\nHost: x\r\n\r\n")
            one.recv(1)
        assert server.bytes_sent <= 2
