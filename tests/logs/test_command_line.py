"""`--log` on the command line, and `logs` of the command runner: transcripts next to spans, and in their place."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

HERE = Path(__file__).parent
CASE = HERE / "transcripts" / "openclaw" / "one_tool"
SESSION = CASE / "agents" / "support" / "sessions" / "sess-one-tool.jsonl"
GATEWAY = HERE / "samples" / "gateway-plain.log"

Invoke = Callable[..., Result]


def runs(result: Result) -> list[dict[str, Any]]:
    """The runs that `inspect --json` printed."""
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout)["runs"])


def test_a_transcript_alone_is_a_run(invoke: Invoke) -> None:
    """A transcript that is given with --log is a run of its session's id, or of the id that --one-run gives."""
    (own,) = runs(invoke("inspect", "--log", SESSION, "--json"))
    (given,) = runs(invoke("inspect", "--log", SESSION, "--one-run", "mine", "--json"))

    assert (own["run_id"], given["run_id"]) == ("sess-one-tool", "mine")
    assert own["totals"]["input_tokens"] == given["totals"]["input_tokens"] == 2142
    assert own["dialects"] == ["log-transcript"]


def test_each_run_of_a_gateway_log_is_a_run(invoke: Invoke) -> None:
    """A log of many runs makes each of them; one that another run started is a part of that."""
    assert [run["run_id"] for run in runs(invoke("inspect", "--log", GATEWAY, "--json"))] == ["r1", "r10"]


def test_a_transcript_fills_the_run_of_its_folder(invoke: Invoke) -> None:
    """With --run-per-dir a transcript says more of the run in whose folder it lies."""
    folder = HERE / "transcripts" / "openclaw"
    logs = [arg for path in sorted(folder.glob("*/agents/*/sessions/*.jsonl")) for arg in ("--log", path)]
    found = {run["run_id"]: run for run in runs(invoke("inspect", folder, "--run-per-dir", *logs, "--json"))}

    assert found["one_tool"]["totals"]["input_tokens"] == 2142
    assert found["two_tools_repeat"]["totals"]["input_tokens"] == 5280
    assert found["delegation"]["delegations"] == [["support", "researcher"]]


def test_a_folder_passes_transcripts_over(invoke: Invoke) -> None:
    """Transcripts in a folder of recordings make no run of their own; they are counted."""
    result = invoke("inspect", CASE, "--run-per-dir", "--json")

    assert [run["run_id"] for run in runs(result)] == ["one_tool"]
    assert "skipped 2 files that are not OTLP" in result.stderr


def test_a_transcript_named_as_a_recording_says_how_to_give_it(invoke: Invoke) -> None:
    """--traces takes OTLP only; the error names --log."""
    result = invoke("inspect", "--traces", SESSION)

    assert result.exit_code == 2
    assert "is not OTLP" in result.stderr
    assert "--log" in result.stderr


def test_a_file_that_is_no_log_is_an_error(invoke: Invoke, tmp_path: Path) -> None:
    """A file of no known form ends the command with exit code 2 and what to do."""
    (tmp_path / "prose.txt").write_text("It was a dark and stormy night.\n")
    result = invoke("inspect", "--log", "prose.txt")

    assert result.exit_code == 2
    assert "is in no known format" in result.stderr


def test_recorded_logs_are_judged(invoke: Invoke, tmp_path: Path) -> None:
    """Runs that logs make are judged by every assertion, and a log cannot be given with a suite."""
    (tmp_path / "checks.yaml").write_text("""
assertions:
  - {type: tool_sequence, mode: strict, expected: [exec]}
  - {type: trace_token_budget, max_total_tokens: 2202}
  - {type: llm_call_count, min: 2, max: 2}
  - {type: final_response, contains: printed hello}
""")
    judged = invoke("eval", "--log", SESSION, "--assertions", "checks.yaml")
    refused = invoke("eval", "--suite", "x", "--log", SESSION)

    assert judged.exit_code == 0, judged.output
    assert refused.exit_code == 2


AGENT = """
import json, os, pathlib, shutil, sys, urllib.request
source = pathlib.Path(sys.argv[1])
shutil.copytree(source / "agents", "state/agents")
pathlib.Path("state/agents/support/sessions/sessions.json").write_text("{}")
if sys.argv[2] == "spans":
    headers = dict(pair.split("=", 1) for pair in os.environ["OTEL_EXPORTER_OTLP_HEADERS"].split(","))
    for line in (source / "traces.otlp.jsonl").read_text().splitlines():
        request = json.loads(line)
        for group in request["resourceSpans"]:
            group["resource"]["attributes"] = [a for a in group["resource"]["attributes"] if a["key"] != "clawtrace.run_id"]
        urllib.request.urlopen(urllib.request.Request(
            os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces", json.dumps(request).encode(),
            headers | {"content-type": "application/json"}))
print("done")
"""


def _suite(folder: Path, how: str) -> None:
    case = folder / "configs" / "cases" / "c"
    case.mkdir(parents=True)
    (folder / "configs" / "suites").mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "configs" / "suites" / "s.yaml").write_text(
        "schema_version: 1\nsuite_id: s\ntitle: s\ncase_selection: {include_case_ids: [c]}\n"
    )
    command = json.dumps([sys.executable, str(folder / "agent.py"), str(CASE), how])
    (case / "test.yaml").write_text(f"""
schema_version: 1
case_id: c
title: c
runner: {{type: command, command: {command}, logs: ["state/agents/*/sessions/*"]}}
input: {{messages: [{{role: user, content: go}}]}}
assertions:
  - {{type: tool_call, tool: exec, args: {{command: echo hello}}}}
  - {{type: trace_token_budget, max_total_tokens: 2202}}
  - {{type: llm_call_count, min: 2, max: 2}}
  - {{type: tool_not_called, tool: write, log_path: state/agents/support/sessions/sess-one-tool.jsonl}}
""")


def _judged(invoke: Invoke, folder: Path, how: str) -> dict[str, Any]:
    _suite(folder, how)
    result = invoke("eval", "--suite", "s", "--report", "json=out.json")
    assert result.exit_code == 0, result.output
    run: dict[str, Any] = json.loads((folder / "out.json").read_text())["cases"][0]["runs"][0]
    return run


def test_transcripts_of_a_live_run_fill_its_spans(invoke: Invoke, tmp_path: Path) -> None:
    """Tokens and arguments that the agent's spans lack come from its transcript, and the run says so."""
    run = _judged(invoke, tmp_path, "spans")

    assert any("has more details of 3 model and tool calls" in text for text in run["diagnostics"])
    assert any("sessions.json` is in no known format" in text for text in run["diagnostics"])
    assert "was not read: the run has spans." in run["assertions"][3]["message"]


def test_transcripts_of_a_live_run_stand_in_for_spans(invoke: Invoke, tmp_path: Path) -> None:
    """An agent that exports nothing is judged by its transcript, and the run says so."""
    run = _judged(invoke, tmp_path, "nothing")

    assert any(text.startswith("it sent no spans: these were made from the log") for text in run["diagnostics"])


def test_secrets_of_transcripts_are_redacted(invoke: Invoke, tmp_path: Path) -> None:
    """What a transcript records is redacted as spans are."""
    key = "sk-" + "ant-api03-" + "A1b2C3d4E5f6G7h8" * 5
    (tmp_path / "s.jsonl").write_text(SESSION.read_text().replace("echo hello", f"echo {key}"))
    shown = invoke("inspect", "--log", "s.jsonl", "--json")

    assert key not in shown.output
    assert "REDACTED" in shown.output


def test_a_log_in_the_workspace_answers_for_its_run(invoke: Invoke, tmp_path: Path) -> None:
    """`log_path` is relative to the run's workspace, and `{{run_id}}` is the id that the agent was given."""
    _suite(tmp_path, "nothing")
    case = tmp_path / "configs" / "cases" / "c" / "test.yaml"
    log = 'echo "run_id=$CLAWTRACE_RUN_ID tool=search" > gateway.log; echo "run_id=${CLAWTRACE_RUN_ID}0 tool=rm" >> gateway.log'
    case.write_text(f"""
schema_version: 1
case_id: c
title: c
runner: {{type: command, command: {json.dumps(log)}}}
input: {{messages: [{{role: user, content: go}}]}}
assertions:
  - {{type: tool_was_called, tool: search, log_path: gateway.log, run_id: "{{{{run_id}}}}"}}
  - {{type: tool_not_called, tool: rm, log_path: gateway.log}}
""")
    result = invoke("eval", "--suite", "s", "--report", "json=out.json")
    (run,) = json.loads((tmp_path / "out.json").read_text())["cases"][0]["runs"]

    assert [one["status"] for one in run["assertions"]] == ["pass", "pass"], result.output


def test_a_line_of_a_log_is_no_duration(invoke: Invoke, tmp_path: Path) -> None:
    """A line says that something was done and not how long it took: no limit is kept by that, and none broken."""
    (tmp_path / "gateway.log").write_text(
        "2026-11-20T10:00:00Z run_id=r1 tool=fetch\n2026-11-20T10:00:09Z run_id=r1 tool=store\n"
        "2026-11-20T10:00:00Z run_id=r2 tool=fetch\n"
        "2026-11-20T10:00:00Z run_id=r3 tool=fetch status=started\n2026-11-20T10:00:04Z run_id=r3 tool=fetch status=ok\n"
        "2026-11-20T10:00:00Z run_id=r4 tool=fetch status=started\n2026-11-20T10:00:02Z run_id=r4 tool=store\n"
        "2026-11-20T10:00:04Z run_id=r4 tool=fetch status=ok\n"
    )
    (tmp_path / "checks.yaml").write_text(
        "assertions:\n"
        "  - {type: span_duration, max_ms: 5000, span_type: tool, id: tools}\n"
        "  - {type: trace_duration, max_ms: 5000, id: wall}\n"
        "  - {type: trace_duration, max_ms: 5000, measure: busy, id: busy}\n"
    )
    invoke(
        "eval", "--log", tmp_path / "gateway.log", "--assertions", tmp_path / "checks.yaml", "--report", "json=out.json"
    )
    facts = {
        run["run_id"]: {one["id"]: one["status"] for one in run["assertions"]}
        for case in json.loads((tmp_path / "out.json").read_text())["cases"]
        for run in case["runs"]
    }

    assert facts == {
        "r1": {"tools": "inconclusive", "wall": "fail", "busy": "inconclusive"},
        "r2": {"tools": "inconclusive", "wall": "inconclusive", "busy": "inconclusive"},
        "r3": {"tools": "pass", "wall": "pass", "busy": "pass"},
        "r4": {"tools": "inconclusive", "wall": "pass", "busy": "pass"},  # the line lies within work that was measured
    }
