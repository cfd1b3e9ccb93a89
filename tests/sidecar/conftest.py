"""A running control service in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served import Served

from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client
from clawtrace.sidecar.serving import Service


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Session.open(tmp_path / "spans.duckdb") as session:
        service = Service(session, token="control")
        http = service.start().http
        yield Served(http, "control", Client.at(http, "control"), service, session)
        service.drain()
