"""Where a server listens."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address

from recollect.values.errors import InputError

_BACKLOG = 512


def host_and_port(address: str, option: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(option, "must be a host and a port, such as 127.0.0.1:8377 or [::1]:8377")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int, option: str) -> socket.socket:
    """Taken before anything slow, so that a port in use is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where TCP is named does asyncio send small answers at once; otherwise each waits for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # where it does not mean that another process may take the port, too
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise InputError(option, f"cannot listen on {quoted(host)}:{port}: {error.strerror}") from None
    return listening


def quoted(host: str) -> str:
    return f"[{host}]" if ":" in host else host
