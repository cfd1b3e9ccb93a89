"""Judging, start-up and size: whole processes, in seconds of CPU where nothing else is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from exit_to_verdict import AGENT
from peers import Peer, command, environ, installed
from recorded_run import ASSERTIONS, trace
from serving import NotRunError, free_port

Figures = dict[str, list[float]]
RUNS = 300
"""Of the recording with many."""
ASKED = 1_000
"""Runs that are at hand when questions are asked of them."""
SPAWN = """
import { execFile } from "node:child_process";
import { promisify } from "node:util";
export default class {
  id() { return "agent"; }
  async callApi(prompt, context) {
    const env = { ...process.env, AGENT_TRACEPARENT: context.traceparent, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:@PORT" };
    await promisify(execFile)("@PYTHON", ["agent.py", "ended"], { env });
    return { output: "done" };
  }
}
"""
"""A provider of promptfoo that starts the agent."""


def prepare(folder: Path) -> None:
    """Write what is judged, and by what, in each peer's form."""
    tools = [{"name": "lookup", "args": {"n": n}} for n in range(2, 98, 2)] + [{"name": "pay", "args": {"n": 98}}]
    turn = {"invocation_id": "1", "user_content": {"role": "user", "parts": [{"text": ""}]}}
    case = {"eval_id": "case", "conversation": [turn | {"intermediate_data": {"tool_uses": tools}}]}
    asked = [
        {"type": "trace-span-count", "value": {"pattern": "execute_tool *", "min": 9, "max": 9}},
        {"type": "trace-error-spans", "value": {"max_count": 0}},
    ]
    http = {"enabled": True, "port": (port := free_port()), "host": "127.0.0.1"}
    held = {
        "prompts": ["go"], "providers": ["file://agent.mjs"], "tests": [{"assert": asked}],
        "tracing": {"enabled": True, "otlp": {"http": http}},
    }  # fmt: skip
    for name, text in {
        "one.json": json.dumps(trace()),
        "many.jsonl": "".join(f"{json.dumps(trace(number))}\n" for number in range(1, RUNS + 1)),
        "assertions.yaml": ASSERTIONS,
        "two.yaml": "assertions: [{type: tool_call_count, count: 9}, {type: no_span_errors}]",
        "expected.json": json.dumps({"eval_set_id": "bench", "name": "bench", "eval_cases": [case]}),
        "agent.py": AGENT,
        "agent.mjs": SPAWN.replace("@PORT", str(port)).replace("@PYTHON", sys.executable),
        "judged.json": json.dumps(held),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def spent(
    words: list[str], folder: Path, may_end: tuple[int, ...] = (0,), more: Mapping[str, str] | None = None
) -> tuple[float, str]:
    """Return the CPU seconds of a process and those it waited for, and what it printed.

    Raises:
        NotRunError: its exit code is none of `may_end`.
    """
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(words, cwd=folder, env=environ(folder, more), stdout=said, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode not in may_end:
        raise NotRunError(f"`{' '.join(words[:3])} …` exited with {process.returncode}: {text[-300:].strip()}")
    return used.ru_utime + used.ru_stime, text


def measure(peer: Peer, folder: Path, times: int) -> Figures:
    """Measure what a peer has of these, `times` times after one that is not counted."""
    prepare(folder)
    figures: Figures = {"install size (MB)": [size(installed(peer))]}

    def repeat(name: str, words: tuple[str, ...], **places: object) -> float:
        taken = [spent(command(peer, words, **places), folder)[0] for _ in range(times + 1)][1:]
        figures[name] = taken
        return min(taken)

    repeat("start-up, help or import (CPU s)", peer.starts)
    if peer.judges:
        one = repeat("one recorded run, whole process (CPU s)", peer.judges, recording="one.json")
        taken = [spent(command(peer, peer.judges, recording="many.jsonl"), folder)[0] for _ in range(times)]
        figures["judging a recording of many runs (runs/CPU s)"] = [(RUNS - 1) / (cpu - one) for cpu in taken]
    if peer.asks:
        script = str(Path(__file__).with_name("inside.py"))
        asked = command(peer, ("python", script, peer.asks, str(ASKED)))
        figures["8 questions of runs at hand (runs/CPU s)"] = [float(spent(asked, folder)[1]) for _ in range(times)]
    if peer.runs:
        figures["agent's exit to the end of its command (s, wall)"] = [waited(peer, folder) for _ in range(times + 1)][
            1:
        ]
    return figures


def waited(peer: Peer, folder: Path) -> float:
    """Return the seconds from an agent's end until the command that started and judged it has ended."""
    spent(command(peer, peer.runs), folder)
    return time.time() - int((folder / "ended").read_text()) / 1e9


def size(folder: Path) -> float:
    """Return the MB of an installation without compiled byte code, each file counted once."""
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc" and path.is_file() and not path.is_symlink())
    return sum({(found := path.stat()).st_ino: found.st_size for path in files}.values()) / 1e6
