"""The official OpenTelemetry Collector, built with ``collector-config/builder.yaml``; run with a configuration of that folder.

python tests/otelcol.py      # builds it once, into the environment's folder, where Go is; exit code 0: it is there
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from free_port import free_port

__all__ = ["CONFIGS", "PROGRAM", "Collector", "build"]

PROGRAM = Path(os.environ.get("CLAWTRACE_OTELCOL") or Path(sys.prefix) / "otelcol-0.161.0")
CONFIGS = Path(__file__).parent.parent / "collector-config"

_START_SECONDS = 20
_BUILD_SECONDS = 1_500
_BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.161.0"


class Collector:
    """A running Collector.

    Args:
        config: name of its configuration, without the ending.
        folder: where its log is written.
        options: more arguments, such as ``--set=processors::batch::timeout=1s``.
        instead_of: a Collector that has ended, whose ports it takes.
        values: the variables of the configuration.
    """

    def __init__(
        self,
        config: str,
        folder: Path,
        *,
        options: Sequence[str] = (),
        instead_of: Collector | None = None,
        **values: str,
    ) -> None:
        ports = (free_port(), free_port()) if instead_of is None else (instead_of.grpc, instead_of.http)
        self.grpc, self.http = ports
        self.address = f"http://127.0.0.1:{self.http}"
        self.log = folder / "otelcol.log"
        own = {"OTLP_GRPC": f"127.0.0.1:{self.grpc}", "OTLP_HTTP": f"127.0.0.1:{self.http}"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--config", CONFIGS / f"{config}.yaml", *options], env=os.environ | own | values, stderr=log
            )
        self._wait()

    def stop(self) -> None:
        """End it; it sends what it holds first."""
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()

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


def build() -> bool:
    """Build the program if it is not there; return whether it is."""
    if PROGRAM.is_file():
        return True
    go = shutil.which("go")
    if go is None:
        return False
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAM.parent) as folder:
        shutil.copy(CONFIGS / "builder.yaml", folder)
        end = time.monotonic() + _BUILD_SECONDS
        for command in ([go, "install", _BUILDER], [f"{folder}/builder", "--config", "builder.yaml"]):
            try:
                left = max(end - time.monotonic(), 1)
                subprocess.run(command, cwd=folder, env=os.environ | {"GOBIN": folder}, check=True, timeout=left)
            except (subprocess.SubprocessError, OSError) as error:
                sys.stderr.write(f"the Collector could not be built: {error}\n")
                return False
        Path(folder, "otelcol", "otelcol").rename(PROGRAM)
    return True


if __name__ == "__main__":
    sys.exit(not build())
