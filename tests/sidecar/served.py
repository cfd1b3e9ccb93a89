"""A running control service and its client."""

from __future__ import annotations

from typing import NamedTuple

from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client
from clawtrace.sidecar.serving import Service

__all__ = ["Served"]


class Served(NamedTuple):
    """A service that runs in this process."""

    http: str
    token: str
    client: Client
    service: Service
    session: Session
