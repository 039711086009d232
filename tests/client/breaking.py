"""A TCP proxy on loopback that breaks connections."""

import socket
import threading
from contextlib import contextmanager, suppress


class Breaking:
    """Passes bytes on to a server; breaks each connection after so many of them.

    Attributes:
        up, down: bytes of a connection to and from the server after which it breaks; None: never.
        breaks: how many connections it broke; `most` at most.
        sent: bytes that it passed on to the server.
    """

    def __init__(self, target):
        self.target = target
        self.up = self.down = None
        self.most, self.breaks, self.sent = 10**9, 0, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            self._open |= {client, server}
            for pair in ((client, server, "up"), (server, client, "down")):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, sink, way):
        passed = 0
        with suppress(OSError):
            while data := source.recv(1 << 16):
                most = getattr(self, way)
                if most is not None and passed + len(data) > most and self.breaks < self.most:
                    sink.sendall(data[: max(most - passed, 0)])
                    self.sent += max(most - passed, 0) * (way == "up")
                    self.breaks += 1
                    break
                sink.sendall(data)
                passed += len(data)
                self.sent += len(data) * (way == "up")
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self):
        self._listening.close()
        for one in self._open:
            with suppress(OSError):
                one.close()


@contextmanager
def breaking(target):
    proxy = Breaking(target)
    try:
        yield proxy
    finally:
        proxy.close()
