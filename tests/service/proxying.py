"""A small reverse proxy that serves another server below a path, as nginx would."""

import http.client
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Proxy(ThreadingHTTPServer):
    """Passes on what is asked below `prefix`; all else is a stray, and 404.

    Attributes:
        target: (host, port) of the server behind it.
        strips: whether it takes the prefix away.
    """

    daemon_threads = True

    def __init__(self, prefix, strips):
        super().__init__(("127.0.0.1", 0), Handler)
        self.prefix, self.strips = prefix, strips
        self.target, self.strays, self.asked = None, [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}{self.prefix}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        proxy = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy.asked.append(self.path)
        if not f"{self.path}/".startswith(f"{proxy.prefix}/"):
            proxy.strays.append(self.path)
            self.send_error(404)
            return
        path = (self.path.removeprefix(proxy.prefix) or "/") if proxy.strips else self.path
        behind = http.client.HTTPConnection(*proxy.target, timeout=30)
        try:
            behind.request(self.command, path, body, dict(self.headers))
            response = behind.getresponse()
            content = response.read()
        finally:
            behind.close()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = answer

    def log_message(self, *_):
        pass


@contextmanager
def proxying(prefix="/media", *, strips=True):
    """A proxy that listens; name its `target` before the first request."""
    proxy = Proxy(prefix, strips)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join(30)
        proxy.server_close()
