"""One recorded run through the whole CLI, and `clawtrace --help`: whole processes, median of several runs.

    python benchmarks/recorded_run.py [RUNS]

The recording is a trace of 100 spans (an agent with model and tool calls), judged by ten assertions. Byte code is
compiled first, as an installation has it. Figures are only comparable within one call: quote the ratios.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
MILLISECOND = 1_000_000

ASSERTIONS = """
assertions:
  - {type: tool_sequence, expected: [lookup, pay]}
  - {type: tool_sequence, mode: contains, expected: [pay, lookup]}
  - {type: llm_call_count, min: 1, max: 60}
  - {type: model_used, expected: gpt-4o}
  - {type: delegation_path, expected: [assistant]}
  - {type: trace_token_budget, max_input_tokens: 100000}
  - {type: trace_cost, max_usd: 5}
  - {type: trace_duration, max_ms: 30000}
  - {type: no_span_errors}
  - {type: tool_not_invoked, tool: close_account}
"""


def attributes(**values: object) -> list[dict[str, object]]:
    """Return OTLP attributes; a double underscore in a name is a dot."""
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [{"key": key.replace("__", "."), "value": {kinds[type(value)]: value}} for key, value in values.items()]


def trace(number: int = 7) -> dict[str, object]:
    """A run of 100 spans: one agent, model calls and tool calls in turn. Its number makes its ids."""
    spans = []
    for n in range(100):
        start = 1_700_000_000_000_000_000 + n * MILLISECOND
        ids = {"traceId": f"{number:032x}", "spanId": f"{1000 * number + n:016x}"}
        span: dict[str, object] = {**ids, "startTimeUnixNano": str(start)}
        if n == 0:
            said = attributes(gen_ai__operation__name="invoke_agent", gen_ai__agent__name="assistant")
            span |= {"name": "invoke_agent assistant", "endTimeUnixNano": str(start + 200 * MILLISECOND)}
        elif n % 2:
            said = attributes(
                gen_ai__operation__name="chat", gen_ai__provider__name="openai", gen_ai__request__model="gpt-4o",
                gen_ai__response__model="gpt-4o-2024-08-06", gen_ai__response__id=f"r{n}", gen_ai__usage__input_tokens=900,
                gen_ai__usage__output_tokens=20, operation__cost=0.002,
            )  # fmt: skip
            span |= {"name": "chat gpt-4o", "endTimeUnixNano": str(start + MILLISECOND // 2)}
        else:
            name = "lookup" if n < 98 else "pay"
            said = attributes(
                gen_ai__operation__name="execute_tool", gen_ai__tool__name=name, gen_ai__tool__call__id=f"c{n}",
                gen_ai__tool__call__arguments=json.dumps({"n": n}),
            )  # fmt: skip
            span |= {"name": f"execute_tool {name}", "endTimeUnixNano": str(start + MILLISECOND // 2)}
        spans.append(span | {"parentSpanId": "" if n == 0 else f"{1000 * number:016x}", "attributes": said, "kind": 1})
    scope = {"scope": {"name": "bench"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": attributes(service__name="bench")}, "scopeSpans": [scope]}]}


def median(command: list[str], runs: int, folder: str) -> float:
    """Seconds of the whole process, median of `runs` after one that is not counted."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(command, check=True, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    compileall.compile_dir(str(SOURCE), quiet=1)
    clawtrace = str(Path(sys.executable).with_name("clawtrace"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "trace.json").write_text(json.dumps(trace()), encoding="utf-8")
        Path(folder, "assertions.yaml").write_text(ASSERTIONS, encoding="utf-8")
        click = median([sys.executable, "-c", "import click"], runs, folder)
        libraries = median([sys.executable, "-c", "import click, duckdb, nanoarrow, pydantic.main, yaml"], runs, folder)
        shown = median([clawtrace, "--help"], runs, folder)
        judged = median(
            [clawtrace, "eval", "--traces", "trace.json", "--assertions", "assertions.yaml", "--quiet"], runs, folder
        )
    print(f"python -c 'import click'          {click * 1000:6.0f} ms")
    print(f"clawtrace --help                  {shown * 1000:6.0f} ms   {shown / click:4.1f} x import click (bar: 3 x)")
    print(f"import of the libraries           {libraries * 1000:6.0f} ms")
    print(
        f"eval, 100 spans, 10 assertions    {judged * 1000:6.0f} ms   {judged / libraries:4.1f} x the libraries (bar: 500 ms)"
    )


if __name__ == "__main__":
    main()
