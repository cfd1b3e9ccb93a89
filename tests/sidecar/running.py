"""`clawtrace serve` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from clawtrace.sidecar.client import Client

__all__ = ["Running", "clawtrace", "environment"]

PROGRAM = Path(sys.executable).parent / "clawtrace"


def environment(**more: str) -> dict[str, str]:
    unwanted = ("OTEL_", "CLAWTRACE_", "NO_COLOR", "CI", "COLUMNS", "TRACEPARENT")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)} | more


def clawtrace(folder: Path, *args: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [str(PROGRAM), *map(str, args)]
    return subprocess.run(command, cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=60)


class Running:
    """A service that has said that it listens."""

    def __init__(self, folder: Path, *flags: str, **env: str) -> None:
        self.folder = folder
        self.ready = folder / "sidecar.json"
        command = [
            str(PROGRAM),
            "serve",
            "--grpc-port",
            "0",
            "--http-port",
            "0",
            "--ready-file",
            str(self.ready),
            *flags,
        ]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("listening on http://"), line
        self.said: dict[str, Any] = json.loads(self.ready.read_text())
        self.http: str = self.said["http"]

    @property
    def client(self) -> Client:
        return Client.at(str(self.ready))

    def clawtrace(self, *args: object, **env: str) -> subprocess.CompletedProcess[str]:
        return clawtrace(self.folder, *args, **env)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return exit code and what was said on stderr."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stderr
