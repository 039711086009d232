"""A receiver of webhooks on a real socket, which answers as a test says."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.0/8"


@dataclass
class Receiver:
    """What came: (headers, body) of each request; `answers` are given in turn, then `status`."""

    url: str
    status: int = 204
    came: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, true, patience=60):
        """What came, once something is true of it."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: true(self.came), patience), self.came
            return list(self.came)


@contextmanager
def receiving():
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with receiver.arrived:
                receiver.came.append((dict(self.headers), body))
                answer = receiver.answers.pop(0) if receiver.answers else receiver.status
                receiver.arrived.notify_all()
            if callable(answer):
                answer(self)
                return
            status, headers = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0" if status == 204 else "5")
            self.end_headers()
            if status != 204:
                self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
