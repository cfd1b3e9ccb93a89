"""The official OpenTelemetry Collector, where it was built with ``collector-config/builder.yaml``; run with a configuration of that folder."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from free_port import free_port

__all__ = ["CONFIGS", "PROGRAM", "Collector"]

PROGRAM = Path(os.environ.get("CLAWTRACE_OTELCOL", "~/.cache/clawtrace/otelcol-0.161.0")).expanduser()
CONFIGS = Path(__file__).parent.parent / "collector-config"

_START_SECONDS = 20


class Collector:
    """A running Collector.

    Args:
        config: name of its configuration, without the ending.
        folder: where its log is written.
        values: the variables of the configuration.
    """

    def __init__(self, config: str, folder: Path, **values: str) -> None:
        self.grpc, self.http = free_port(), free_port()
        self.address = f"http://127.0.0.1:{self.http}"
        self.log = folder / "otelcol.log"
        own = {"OTLP_GRPC": f"127.0.0.1:{self.grpc}", "OTLP_HTTP": f"127.0.0.1:{self.http}"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--config", CONFIGS / f"{config}.yaml"], env=os.environ | own | values, stderr=log
            )
        self._wait()

    def stop(self) -> None:
        """End it; it sends what it holds first."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """End it at once, with what it holds."""
        self.process.kill()
        self.process.wait()

    def _wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.http), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"the Collector did not start: {self.log.read_text()}") from None
                time.sleep(0.05)
