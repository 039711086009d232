"""`fragdex worker`, for whom every name leads to this machine, which counts as public."""

import functools
import sys

from fragdex.__main__ import main
from fragdex.rendering import web as hosts


def hosts_here():
    """`AllowedHosts` that way; whom it trusts, SSL_CERT_FILE says."""

    def resolve(host, port, **_):
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    return functools.partial(hosts.AllowedHosts, reachable=lambda _: True, resolve=resolve)


if __name__ == "__main__":
    hosts.AllowedHosts = hosts_here()
    sys.exit(main(["worker", *sys.argv[1:]]))
