"""Block the network in every Python process that starts with this folder on PYTHONPATH.

What somebody tried to reach is refused, and written to the file that CGMM_NETWORK_LOG names.
"""

import os
import sys

HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", None}
LOOKED_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def refuse(event: str, arguments: tuple) -> None:
    """Refuse network events, as an audit hook, which code cannot remove again."""
    if event in LOOKED_UP:
        host = arguments[0]
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = arguments[1]
        # A path in the file system, or no address: the connection was refused earlier.
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
