"""What in an agent's own files keeps its spans from coming here whole: addresses, sampling, content that is switched off."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

__all__ = ["agent_findings", "listening"]

_ENDINGS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx"})
_LEFT_OUT = frozenset({"node_modules", "outputs", "venv", "dist", "build", "site-packages", "tests", "test"})
_MOST_FILES = 500
_LARGEST = 1 << 20
_USUAL_PORTS = (4317, 4318)

_IN_CODE = (
    (
        re.compile(r"""\bOTLP\w*Exporter\s*\([^)]*?\b(?:endpoint|url)\s*[=:]\s*["'`]([^"'`]+)""", re.DOTALL),
        "an exporter has the address {0!r} in code: it sends there, wherever clawtrace receives.",
        "Construct it without an address: it then reads OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
    (
        re.compile(r"\b(TraceIdRatioBased\w*|ALWAYS_OFF|AlwaysOffSampler|ParentBasedTraceIdRatio)\b\s*[(,)]"),
        "the sampler `{0}` can drop spans.",
        "Set no sampler in code: clawtrace switches sampling off by OTEL_TRACES_SAMPLER.",
    ),
    (
        re.compile(
            r"\b(include_content\s*=\s*False|hide_(?:inputs|outputs)\s*[=:]\s*[Tt]rue|record(?:In|Out)puts:\s*false)"
        ),
        "`{0}` keeps messages, arguments or results out of the spans.",
        "Assertions about them will be inconclusive. Leave it out in tests.",
    ),
)
_IN_ENV = (
    (re.compile(r"^\s*(?:export\s+)?OTEL_SDK_DISABLED\s*=\s*[\"']?(true)", re.IGNORECASE | re.MULTILINE),
     "OTEL_SDK_DISABLED switches the SDK off where the agent loads this file.",
     "Remove it: clawtrace takes it out of the environment, but not out of a file."),
)  # fmt: skip


def agent_findings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what keeps spans away, of the source files and `.env` files of a folder, each with advice."""
    from clawtrace.config.files.document import display

    for path in _files(folder):
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= _LARGEST else ""
        except OSError:
            continue
        for pattern, message, advice in _IN_ENV if path.name.startswith(".env") else _IN_CODE:
            if found := pattern.search(text):
                line = text.count("\n", 0, found.start(1)) + 1
                yield f"{display(path)}:{line}: {message.format(found[1])}", advice


def listening() -> list[int]:
    """Return the ports, of those that exporters use by default, on which a Collector or another receiver listens."""
    return [port for port in _USUAL_PORTS if _answers(port)]


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return True
    except OSError:
        return False


def _files(folder: Path) -> Iterator[Path]:
    number = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for name in sorted(names):
            if name.startswith(".env") or Path(name).suffix in _ENDINGS:
                number += 1
                if number > _MOST_FILES:
                    return
                yield Path(place, name)
