"""Assertions that name a log: where the run has no spans its lines answer, else they are not read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.session.session import Session

HERE = Path(__file__).parent
GATEWAY = HERE / "samples" / "gateway-plain.log"
RECORDING = HERE / "transcripts" / "openclaw" / "one_tool" / "traces.otlp.jsonl"

Asked = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def asked(invoke: Callable[..., Result], tmp_path: Path) -> Asked:
    """Ask assertions of the run `r1`, which sent no spans; return the verdicts by id, the run under `run`."""

    def ask(*assertions: dict[str, Any], run_id: str = "r1", traces: Path | None = None) -> dict[str, dict[str, Any]]:
        (tmp_path / "empty.jsonl").write_text("")
        (tmp_path / "checks.yaml").write_text(yaml.safe_dump({"assertions": list(assertions)}))
        result = invoke(
            "eval", "--traces", traces or "empty.jsonl", "--one-run", run_id, "--assertions", "checks.yaml",
            "--report", f"json={tmp_path / 'out.json'}",
        )  # fmt: skip
        assert result.exit_code in (0, 1, 3, 4), result.output
        report = json.loads((tmp_path / "out.json").read_text())
        run = report["cases"][0]["runs"][0]
        return {one["id"]: one for one in run["assertions"]} | {"run": run | {"exit_code": report["exit_code"]}}

    return ask


def of(kind: str, log: Path | str = GATEWAY, **fields: Any) -> dict[str, Any]:
    """One assertion on a log."""
    return {"type": kind, "log_path": str(log), **fields}


def test_each_type_is_answered_by_the_plain_gateway_log(asked: Asked) -> None:
    """Every behavioural assertion of the seeds is answered from the log's lines of its run, all usage lines summed."""
    questions = [
        (of("tool_was_called", tool="memory.search"), "pass"),
        (of("tool_was_called", tool="resend.send"), "fail"),
        (of("tool_not_called", tool="resend.send"), "pass"),
        (of("tool_not_called", tool="write_file"), "fail"),
        (of("tool_not_permitted", allowed_tools=["memory.search", "write_file", "sessions_spawn"]), "pass"),
        (of("tool_not_permitted", allowed_tools=["memory.search"]), "fail"),
        (of("delegation_occurred", to_agent="agents-support-writer"), "pass"),
        (of("delegation_occurred", to_agent="agents-support-triage"), "fail"),
        (of("token_budget", max_total_tokens=2000, max_input_tokens=1400, max_output_tokens=600), "pass"),
        (of("token_budget", max_total_tokens=1999), "fail"),
    ]
    verdicts = asked(*(one | {"id": f"a{number}"} for number, (one, _) in enumerate(questions)))

    for number, (assertion, status) in enumerate(questions):
        assert verdicts[f"a{number}"]["status"] == status, assertion
        assert "This is from the log `gateway-plain.log`" in verdicts[f"a{number}"]["message"]


def test_t23_a_tool_that_an_agent_prints_is_no_tool(asked: Asked) -> None:
    """T23: `tool=rm agent=evil` inside of quoted arguments is neither a tool call nor a delegation."""
    found = asked(of("tool_not_called", tool="rm"), of("delegation_occurred", to_agent="evil"))

    assert found["tool_not_called"]["status"] == "pass"
    assert found["delegation_occurred"]["status"] == "fail"


def test_t29_run_r1_is_not_in_r10(asked: Asked) -> None:
    """T29: a run's id is compared whole; the assertion's own `run_id` says which run of the log is meant."""
    found = asked(
        of("tool_not_called", tool="resend.send", id="own"),
        of("tool_not_called", tool="resend.send", run_id="r10", id="ten"),
        of("tool_not_called", tool="memory.search", run_id="r10", id="not one"),
    )

    assert [found[name]["status"] for name in ("own", "ten", "not one")] == ["pass", "fail", "pass"]


def test_the_work_of_a_run_that_it_started_is_its_work(asked: Asked, tmp_path: Path) -> None:
    """What a child run did counts; a child whose lines are not in the log leaves an absence undecided."""
    lines = GATEWAY.read_text().replace("run_id=r1-child tool=write_file", "run_id=r1-child tool=danger")
    (tmp_path / "with.log").write_text(lines)
    (tmp_path / "without.log").write_text("".join(x for x in lines.splitlines(True) if " run_id=r1-child " not in x))
    found = asked(
        of("tool_not_called", "with.log", tool="danger", id="with"),
        of("tool_not_called", "without.log", tool="danger", id="without"),
    )

    assert found["with"]["status"] == "fail"
    assert found["without"]["status"] == "inconclusive"
    assert "the work of 'r1-child', which it started, is not in the log." in found["without"]["message"]


def test_no_log_and_no_spans_is_a_skip(asked: Asked) -> None:
    """A log that is missing, empty or silent about the run is a skip with what was found, and never a pass."""
    Path("empty.log").write_text("")
    found = asked(
        of("tool_not_called", "missing.log", tool="rm", id="missing"),
        of("tool_not_called", "empty.log", tool="rm", id="empty"),
        of("tool_not_called", tool="rm", run_id="r2", id="other"),
        of("tool_not_called", "missing.log", tool="rm", id="chosen", on_missing="fail"),
    )

    assert [found[name]["status"] for name in ("missing", "empty", "other", "chosen")] == ["skip"] * 3 + ["fail"]
    assert found["missing"]["hint"] == "The log `missing.log` does not exist."
    assert found["other"]["hint"] == (
        "The log `gateway-plain.log` (plain gateway log) has no line of run 'r2'; it is about 'r1', 'r10', 'r1-child'."
    )
    assert found["run"]["exit_code"] == 1


def test_a_log_of_no_known_form_is_an_error(asked: Asked) -> None:
    """A file that is there and that nothing recognises breaks the assertion, with what to do."""
    Path("prose.log").write_text("It was a dark and stormy night.\n")
    verdict = asked(of("tool_not_called", "prose.log", tool="rm"))["tool_not_called"]

    assert verdict["status"] == "error"
    assert "describe its lines under `log_adapters` in clawtrace.yaml" in verdict["message"]


def test_a_log_is_not_read_where_the_run_has_spans(asked: Asked) -> None:
    """Spans go before a log, and the verdict says that it was not read."""
    verdict = asked(of("tool_was_called", tool="memory.search"), traces=RECORDING)["tool_was_called"]

    assert verdict["status"] == "fail"
    assert verdict["message"].endswith(f"The log `{GATEWAY}` was not read: the run has spans.")


def test_a_log_answers_only_who_names_it(asked: Asked) -> None:
    """For an assertion without `log_path` the run has no trace, whatever a log of another assertion records."""
    found = asked(of("tool_was_called", tool="memory.search"), {"type": "tool_not_invoked", "tool": "rm"})

    assert found["tool_was_called"]["status"] == "pass"
    assert found["tool_not_invoked"]["status"] == "skip"


def test_two_logs_of_one_run_are_apart(asked: Asked) -> None:
    """Each assertion is answered by its own log, also where two logs record the same run."""
    Path("other.log").write_text("2026-11-20T10:00:00Z run_id=r1 tool=other\n")
    found = asked(
        of("tool_was_called", tool="memory.search", id="one"),
        of("tool_not_called", "other.log", tool="memory.search", id="two"),
        of("tool_was_called", "other.log", tool="other", id="three"),
        of("tool_not_called", tool="other", id="four"),
    )

    assert {found[name]["status"] for name in ("one", "two", "three", "four")} == {"pass"}


def test_lines_that_cannot_be_read_are_counted_and_shown(asked: Asked) -> None:
    """The run says how many lines could not be read, and shows some."""
    run = asked(of("tool_was_called", tool="memory.search"))["run"]

    (said,) = [text for text in run["diagnostics"] if "could not be read" in text]
    assert said.startswith("1 of 9 lines of the log `gateway-plain.log` (plain gateway log) could not be read: line 9:")


def test_a_damaged_line_of_the_run_leaves_an_absence_undecided(asked: Asked) -> None:
    """A line that names the run and cannot be read may be the call that is asked about."""
    Path("cut.log").write_text("2026-11-20T10:00:00Z run_id=r1 tool=a\n2026-11-20T10:00:01Z run_id=r1 tool=\n")
    found = asked(
        of("tool_not_called", "cut.log", tool="rm", id="absent"), of("tool_was_called", "cut.log", tool="a", id="there")
    )

    assert found["absent"]["status"] == "inconclusive"
    assert "line 2 of its log could not be read." in found["absent"]["message"]
    assert found["there"]["status"] == "pass"


def test_a_log_that_records_no_tool_proves_no_absence(asked: Asked) -> None:
    """Where no line of any run records a tool, the log may be one that never would."""
    Path("usage.log").write_text("2026-11-20T10:00:00Z run_id=r1 token_usage input=10 output=5\n")
    found = asked(
        of("tool_not_called", "usage.log", tool="rm", id="tools"),
        of("token_budget", "usage.log", max_total_tokens=15, id="tokens"),
        of("delegation_occurred", "usage.log", to_agent="x", id="agents"),
    )

    assert found["tools"]["status"] == "inconclusive"
    assert found["tokens"]["status"] == "pass"
    assert found["agents"]["status"] == "inconclusive"


def test_usage_that_is_recorded_in_part_leaves_the_budget_open(asked: Asked) -> None:
    """A usage line without its output makes no sum that is known, and the verdict names the line."""
    Path("part.log").write_text(
        "2026-11-20T10:00:00Z run_id=r1 token_usage input=10 output=5\n2026-11-20T10:00:01Z run_id=r1 token_usage input=10\n"
    )
    verdict = asked(of("token_budget", "part.log", max_total_tokens=1000))["token_budget"]

    assert verdict["status"] == "inconclusive"
    assert "line 2 of its log has usage without output tokens." in verdict["message"]


def test_a_log_without_usage_leaves_the_budget_unknown(asked: Asked) -> None:
    """No usage line is no proof that no token was used."""
    assert asked(of("token_budget", max_total_tokens=10**9, run_id="r10"))["token_budget"]["status"] == "inconclusive"


def test_openclaws_gateway_log_answers(asked: Asked) -> None:
    """Tool lines of OpenClaw's gateway answer; one run's start and end are one call."""
    log = HERE / "samples" / "openclaw-gateway.jsonl"
    found = asked(
        of("tool_was_called", log, tool="exec", run_id="run-1", id="was"),
        of("tool_not_called", log, tool="write", run_id="run-1", id="not"),
        of("tool_not_permitted", log, allowed_tools=["exec"], run_id="run-1", id="permitted"),
    )

    assert {found[name]["status"] for name in ("was", "not", "permitted")} == {"pass"}
    assert "called 1 time" in found["was"]["message"]


def test_openclaws_gateway_log_without_debug_lines_proves_nothing(asked: Asked) -> None:
    """Without lines of the level debug OpenClaw writes no tool: a run that is seen otherwise has no trace."""
    Path("info.log").write_text(
        "2026-11-20T12:00:00.000+00:00 [agent/embedded] embedded run agent end: runId=r1 isError=false\n"
    )
    verdict = asked(of("tool_not_called", "info.log", tool="rm"))["tool_not_called"]

    assert verdict["status"] == "skip"
    assert "none of them is about a tool" in verdict["hint"]


def test_transcripts_answer_whatever_the_session_is_called(asked: Asked) -> None:
    """A glob of transcripts is one run: the session's and those of its sub-agents."""
    case = HERE / "transcripts" / "openclaw" / "delegation"
    found = asked(
        of("delegation_occurred", f"{case}/agents/*/sessions/*.jsonl", to_agent="researcher"),
        of("token_budget", f"{case}/agents/support/sessions/*.jsonl", max_total_tokens=8068, id="all"),
        of("token_budget", f"{case}/agents/support/sessions/*.jsonl", max_total_tokens=8067, id="less"),
        run_id="case/1",
    )

    assert found["delegation_occurred"]["status"] == "pass"
    assert [found[name]["status"] for name in ("all", "less")] == ["pass", "fail"]


def test_a_transcript_without_its_sub_agents_proves_no_absence(asked: Asked, tmp_path: Path) -> None:
    """What a sub-agent did is not known where its transcript is not there."""
    (source,) = (HERE / "transcripts" / "openclaw" / "delegation" / "agents" / "support" / "sessions").glob("*.jsonl")
    (tmp_path / "alone.jsonl").write_bytes(source.read_bytes())
    found = asked(
        of("tool_not_called", "alone.jsonl", tool="rm", id="absent"),
        of("tool_was_called", "alone.jsonl", tool="sessions_spawn", id="there"),
    )

    assert found["absent"]["status"] == "inconclusive"
    assert found["there"]["status"] == "pass"


def test_secrets_of_logs_are_redacted(asked: Asked, tmp_path: Path) -> None:
    """A log goes the way of everything that is received: secrets in it are marked before they are stored or shown."""
    key = "sk-" + "ant-api03-" + "A1b2C3d4E5f6G7h8" * 5
    (tmp_path / "secret.log").write_text(f"run_id=r1 tool=x status=failed error={key}\n{key} unreadable\n")
    asked(of("tool_not_called", "secret.log", tool="x"))

    assert key not in (tmp_path / "out.json").read_text()
    assert "REDACTED" in (tmp_path / "out.json").read_text()


def test_a_store_that_is_judged_again_says_the_same(tmp_path: Path) -> None:
    """Spans of a log are in the store as spans of the run (`source = log`), once, and the run still has no trace."""
    store = tmp_path / "spans.duckdb"
    asked = [
        parse_assertion(of("tool_was_called", tool="write_file")),
        parse_assertion({"type": "tool_not_invoked", "tool": "rm"}),
    ]
    found = []
    for _ in range(2):
        with Session.open(store) as session:
            if not session.run_ids():
                session.open_run(RunRecord("r1", "r1", closed_by=ClosedBy.RECORDING))
            (result,) = session.evaluate(["r1"], asked)
            rows = session.query("SELECT source, kind, count(*) FROM spans WHERE run_id = 'r1' GROUP BY 1, 2").rows
        found.append(([one.status for one in result.verdicts], sorted(rows)))

    assert found[0] == found[1]
    assert found[0] == (["pass", "skip"], [("log", "agent", 2), ("log", "chain", 2), ("log", "tool", 4)])
