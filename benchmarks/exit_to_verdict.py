"""From an agent's exit to the verdict: how long a developer waits after the agent itself has ended.

    python benchmarks/exit_to_verdict.py [RUNS]

A light agent makes ten spans with opentelemetry-sdk, flushes its exporter, writes down the time and ends at once
(`os._exit`, so that the end of its interpreter is not measured). The run is closed because its process has exited; ten
assertions are asked. Median and worst of the runs after one that is not counted. Needs the extra `agents`.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from recorded_run import ASSERTIONS

from clawtrace.campaign.running.wrap import run_command
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.projects.project_file import load_project
from clawtrace.session.session import Session

BAR_MS = 100.0

AGENT = """
import os, sys, time
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("bench")
above = extract({"traceparent": os.environ.get("AGENT_TRACEPARENT", "")})
with tracer.start_as_current_span("invoke_agent assistant", above, attributes={
    "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"}):
    for name in ("lookup",) * 8 + ("pay",):
        with tracer.start_as_current_span(f"execute_tool {name}", attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}):
            pass
provider.shutdown()
with open(sys.argv[1], "w") as file:
    file.write(str(time.time_ns()))
os._exit(0)
"""


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    waits = []
    with tempfile.TemporaryDirectory() as folder, Session.open(receive=True) as session:
        Path(folder, "assertions.yaml").write_text(ASSERTIONS, encoding="utf-8")
        asked = load_assertions_file(f"{folder}/assertions.yaml", load_project(Path(folder), os.environ), os.environ)
        ended = Path(folder, "ended")
        for _ in range(runs + 1):
            run = run_command(
                [sys.executable, "-c", AGENT, str(ended)], session, os.environ, assertions=asked.assertions
            )
            waits.append((time.time_ns() - int(ended.read_text())) / 1e6)
            assert run.result.spans == 10, run.result
            assert run.record.closed_by == "exit", run.record
    median = statistics.median(waits[1:])
    print(
        f"exit to verdict: {median:.0f} ms, worst {max(waits[1:]):.0f} ms; {median / BAR_MS:.2f} x the bar of {BAR_MS:g} ms"
    )
    print(f"  the first run of a session, which loads the dialects: {waits[0]:.0f} ms")


if __name__ == "__main__":
    main()
