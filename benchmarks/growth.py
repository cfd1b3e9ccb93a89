"""How the cost of one run grows with its spans, for every shape that a run can have.

    python benchmarks/growth.py [--spans 25000] [--times 4] [SHAPE...]
    python benchmarks/growth.py --large 400000 [SHAPE...]

Each run of `run_shapes.py` is written as a recording and judged by `clawtrace eval --traces` in a separate process, with
`spans` spans and with `times` as many. Printed are the CPU seconds of each (user and system, less those of a run of one span)
and the exponent: 1 is in proportion. With `--large` one run of each shape is judged, by the clock, and its memory printed.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from run_shapes import SHAPES, written

BAR = 1.3
LARGE_SECONDS, LARGE_MB = 60, 2_000

ASSERTIONS = """
assertions:
  - {type: delegation_occurred, to_agent: helper}
  - {type: delegation_path, expected: [assistant, helper]}
  - {type: final_response, contains: sunny}
  - {type: llm_call_count, min: 1}
  - {type: model_used, not_expected: gpt-4o-mini}
  - {type: no_loops}
  - {type: no_secret_leak}
  - {type: no_span_errors}
  - {type: per_span_budget, max_tokens: 4000}
  - {type: span_duration, span_type: tool, max_ms: 2000, quantile: 0.95}
  - {type: tool_call, tool: weather, args: {city: "glob:P*"}, status: ok}
  - {type: tool_call_count, tool: weather, min: 1}
  - {type: tool_not_invoked, tool: rm}
  - {type: tool_not_permitted, allowed_tools: [look, weather, "glob:tool*"]}
  - {type: tool_sequence, expected: [look, look]}
  - {type: tool_sequence, mode: contains, expected: [look, weather]}
  - {type: ran, pattern: ls}
  - {type: trace_cost, max_usd: 5}
  - {type: trace_duration, max_ms: 30000}
  - {type: trace_token_budget, max_input_tokens: 100000}
  - {type: tool_call_count, tool: look, max: 5, agent: helper}
  - {type: llm_call_count, max: 5, turn: last}
"""


class Judged(NamedTuple):
    """What judging one recording took."""

    spans: int
    megabytes: float
    """Of the recording."""
    cpu: float
    wall: float
    memory: float
    """MB, at its height."""


def judge(folder: Path, shape: str, spans: int, limit: float) -> Judged:
    """Write a run of a shape and judge it in a separate process."""
    recording = folder / "run.jsonl"
    number, size = written(recording, SHAPES[shape](spans))
    Path(folder, "assertions.yaml").write_text(ASSERTIONS, encoding="utf-8")
    clawtrace = str(Path(sys.executable).with_name("clawtrace"))
    command = [
        clawtrace, "eval", "--traces", str(recording), "--one-run", "run", "--assertions", "assertions.yaml", "--quiet",
    ]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    code, used = _ended(process, began + limit)
    wall = time.perf_counter() - began
    if code not in (0, 1, 3):
        raise SystemExit(f"{shape}, {number} spans: exit code {code}: {process.stderr.read().decode()[-2000:]}")
    memory = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return Judged(number, size / 1e6, used.ru_utime + used.ru_stime, wall, memory)


def _ended(process: subprocess.Popen, until: float) -> tuple[int, object]:
    """Wait for a process; end it when the time is over."""
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used
        if time.perf_counter() > until:
            process.kill()
            process.wait()
            raise SystemExit("it takes longer than --limit")
        time.sleep(0.02)


def grow(shapes: list[str], spans: int, times: int, limit: float) -> bool:
    """Print the exponent of each shape; return whether all meet the bar."""
    met = True
    with tempfile.TemporaryDirectory() as name:
        fixed = judge(Path(name), "flat", 1, limit).cpu
        print(
            f"{'shape':22} {'spans':>16} {'MB':>13} {'CPU s':>15}  exponent (bar {BAR}); a run of one span: {fixed:.2f} s"
        )
        for shape in shapes:
            few, many = (judge(Path(name), shape, number, limit) for number in (spans, spans * times))
            cost = max(many.cpu - fixed, 1e-3) / max(few.cpu - fixed, 1e-3)
            # Of a conversation that grows the bytes are what grows.
            exponent = math.log(cost) / math.log(many.megabytes / few.megabytes)
            met = met and exponent <= BAR
            print(
                f"{shape:22} {few.spans:7,} {many.spans:8,} {few.megabytes:6.1f} {many.megabytes:6.1f} "
                f"{few.cpu:7.2f} {many.cpu:7.2f}  {exponent:.2f}{'' if exponent <= BAR else '  above the bar'}",
                flush=True,
            )
    return met


def large(shapes: list[str], spans: int, limit: float) -> bool:
    """Print what one large run of each shape takes; return whether all meet the bar."""
    met = True
    print(
        f"{'shape':22} {'spans':>8} {'MB':>6} {'seconds':>8} {'CPU s':>7} {'memory':>8}  bar {LARGE_SECONDS} s, {LARGE_MB} MB"
    )
    with tempfile.TemporaryDirectory() as name:
        for shape in shapes:
            took = judge(Path(name), shape, spans, limit)
            within = took.wall <= LARGE_SECONDS and took.memory <= LARGE_MB
            met = met and within
            print(
                f"{shape:22} {took.spans:8,} {took.megabytes:6.0f} {took.wall:8.1f} {took.cpu:7.1f} {took.memory:5.0f} MB"
                f"{'' if within else '  beyond the bar'}",
                flush=True,
            )
    return met


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"of {', '.join(SHAPES)}; all when none is named")
    options.add_argument("--spans", type=int, default=25_000)
    options.add_argument("--times", type=int, default=4)
    options.add_argument("--large", type=int, metavar="SPANS", help="judge one run of each shape with so many spans")
    options.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    given = options.parse_args()
    unknown = [shape for shape in given.shapes if shape not in SHAPES]
    if unknown:
        options.error(f"there is no shape {unknown[0]!r}; there are {', '.join(SHAPES)}")
    shapes = given.shapes or list(SHAPES)
    if given.large:
        met = large(shapes, given.large, given.limit)
    else:
        met = grow(shapes, given.spans, given.times, given.limit)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
