"""An agent that exports what lies in a file: argument 1 is a recording, each of whose lines is one request.

It does what an exporter does with the environment that it was given: endpoint, headers, resource attributes. Argument 2
says how often each request is sent, as by an exporter that never saw the answer. What it prints is argument 3.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from urllib.parse import unquote


def headers_of(variable: str) -> dict[str, str]:
    """Return the pairs of a variable such as ``OTEL_EXPORTER_OTLP_HEADERS``."""
    pairs = (pair.partition("=") for pair in os.environ.get(variable, "").split(",") if pair)
    return {name: unquote(value) for name, _, value in pairs}


def main(recording: str, times: str = "1", says: str = "") -> None:
    """Send every request."""
    resource = [
        {"key": key, "value": {"stringValue": value}} for key, value in headers_of("OTEL_RESOURCE_ATTRIBUTES").items()
    ]
    with Path(recording).open(encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            for group in data["resourceSpans"]:
                group["resource"]["attributes"] += resource
            for _ in range(int(times)):
                request = urllib.request.Request(
                    f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces", json.dumps(data).encode(),
                    {"content-type": "application/json", **headers_of("OTEL_EXPORTER_OTLP_HEADERS")},
                )  # fmt: skip
                with urllib.request.urlopen(request, timeout=30) as answer:
                    answer.read()
    print(says)


if __name__ == "__main__":
    main(*sys.argv[1:])
