"""What the kernel tells of a port's connections."""

from __future__ import annotations

import socket
import sys

import pytest

from clawtrace.receiver import kernel_sockets
from clawtrace.receiver.kernel_sockets import PortState, port_state

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of connections")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("netlink", [True, False])
def test_open_and_ended_connections(
    family: socket.AddressFamily, netlink: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Netlink and the text tables tell the same: which peers are open, and that one has ended that nobody accepted."""
    if not netlink:
        monkeypatch.setattr(kernel_sockets, "_from_netlink", lambda: None)
    address = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        peers = [socket.create_connection((address, port)) for _ in range(3)]
        ports = [peer.getsockname()[1] for peer in peers]

        assert port_state(port) == PortState(frozenset(ports), False)

        peers[0].sendall(b"last words")
        peers[0].close()

        assert port_state(port) == PortState(frozenset(ports[1:]), True)

        for peer in peers[1:]:
            peer.close()


def test_a_kernel_that_refuses_netlink_is_read_from_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the place of netlink's answer leaves the text tables."""
    monkeypatch.setattr(kernel_sockets, "_BY_FAMILY", 0xFFFF)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as peer:
            assert kernel_sockets._from_netlink() is None
            assert port_state(port) == PortState(frozenset({peer.getsockname()[1]}), False)
