"""A running control service in this process."""

from __future__ import annotations

import subprocess
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


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, the service's certificate and a client's."""
    folder = tmp_path_factory.mktemp("certificates")

    def run(*args: object) -> None:
        subprocess.run(["openssl", *map(str, args)], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 refuses an authority without
    run(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", 2, "-subj", "/CN=ca", *usage)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in ("server", "client"):
        run(*new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2),
            *("-extfile", "names", "-out", f"{name}.pem"),
        )
    (folder / "client-both.pem").write_text((folder / "client.pem").read_text() + (folder / "client.key").read_text())
    return folder
