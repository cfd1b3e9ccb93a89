"""What the Linux kernel knows of the connections of a listening port (``/proc/net/tcp``, ``tcp6``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["PortState", "port_state"]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED, _FIN_WAIT1, _CLOSE_WAIT = "01", "04", "08"


@dataclass(frozen=True, slots=True)
class PortState:
    """The connections of one listening port."""

    open_peers: frozenset[int]
    """Peer ports of connections whose other end is open."""
    ending: bool
    """Whether a connection's other end is closed and what it sent may not have been read to its end."""


def port_state(port: int) -> PortState | None:
    """Return the connections of the local listening `port`, None where the system does not tell."""
    lines: list[str] = []
    for table in _TABLES:
        try:
            lines += table.read_text("ascii").splitlines()[1:]
        except OSError:
            if table is _TABLES[0]:
                return None
    wanted = f"{port:04X}"
    peers: set[int] = set()
    ending = False
    for line in lines:
        if wanted not in line:
            continue
        _, local, remote, state, _ = line.split(None, 4)
        if local.endswith(f":{wanted}"):
            if state == _ESTABLISHED:
                peers.add(int(remote.rpartition(":")[2], 16))
            ending = ending or state == _CLOSE_WAIT
        elif remote.endswith(f":{wanted}"):
            ending = ending or state == _FIN_WAIT1
    return PortState(frozenset(peers), ending)
