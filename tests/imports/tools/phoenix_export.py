"""Start a Phoenix server, send it the spans of a recording, and write what its client gives out: spans.json and spans.parquet."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from phoenix.client import Client
from sdk_spans import read

recording, folder, http, grpc = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
address = f"http://127.0.0.1:{http}"
environ = os.environ | {
    "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": http, "PHOENIX_GRPC_PORT": grpc, "PHOENIX_WORKING_DIR": str(folder),
    "PHOENIX_TELEMETRY_ENABLED": "false",
}  # fmt: skip


def until(done, seconds=300):
    """Ask the server until it answers as it should: it does not say when it is ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            if answer := done():
                return answer
        except Exception as error:
            print(f"not yet: {error}", file=sys.stderr)
        time.sleep(0.2)
    sys.exit("Phoenix did not answer")


with (folder / "server.log").open("w") as log:
    server = subprocess.Popen(
        [sys.executable, "-m", "phoenix.server.main", "serve"], env=environ, stdout=log, stderr=log
    )
try:
    until(lambda: httpx.get(f"{address}/healthz").is_success)
    sent = list(read(recording))
    OTLPSpanExporter(f"{address}/v1/traces").export(sent)
    spans = Client(base_url=address).spans

    def all_spans():
        found = spans.get_spans(project_identifier="default", limit=1000)
        return found if len(found) == len(sent) else None

    (folder / "spans.json").write_text(json.dumps(until(all_spans)))
    spans.get_spans_dataframe(project_identifier="default", limit=1000).to_parquet(folder / "spans.parquet")
finally:
    server.terminate()
    server.wait()
