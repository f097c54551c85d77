"""Block the network in every Python process that starts with this folder on PYTHONPATH.

Each attempt to reach another host raises an error and is logged in the file CGMM_NETWORK_LOG.
"""

import os
import sys

HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", None}
LOOKED_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def refuse(event: str, arguments: tuple) -> None:
    """Raise an error on network events; Python cannot remove this audit hook again."""
    if event in LOOKED_UP:
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = arguments[1]
        # Other addresses are files (Unix sockets), or missing (the socket is already connected).
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host in HERE:
        return
    log = os.environ.get("CGMM_NETWORK_LOG")
    if log:
        with open(log, "a", encoding="utf8") as file:
            file.write(f"{sys.argv[:2]} {event} {arguments[1:]} {host}\n")
    raise PermissionError(f"no network here: {event} {host}")


sys.addaudithook(refuse)
