"""A port for a program that takes its number from us."""

from __future__ import annotations

import random
import socket

_EPHEMERAL = 32_768
"""The first port that Linux gives to connections that go out (net.ipv4.ip_local_port_range)."""


def free_port() -> int:
    """Return a port that nothing listens on. Unlike one of port 0, no outgoing connection is given it before it is used."""
    while True:
        port = random.SystemRandom().randrange(20_000, _EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
