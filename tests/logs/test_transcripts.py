"""Transcripts that agents wrote, against the truth of the model server and the tools: nothing is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import conformance
import pytest
import yaml

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

HERE = Path(__file__).parent / "transcripts"
CASES = sorted(path.parent for path in HERE.glob("*/*/truth.json"))


def files_of(case: Path) -> list[Path]:
    """The transcripts of a case; those of sub-agents are found from the first."""
    found = sorted(case.glob("agents/*/sessions/*.jsonl")) or sorted(case.glob("*.jsonl"))
    return [path for path in found if path.name != "traces.otlp.jsonl"]


def inspected(case: Path, *, with_spans: bool = False) -> dict[str, Any]:
    """What is known of a case from its transcripts, and its spans."""
    name = conformance.name(case)
    with Session.open() as session:
        if with_spans:
            session.load_recordings([case / "traces.otlp.jsonl"], Grouping("one", name))
        session.load_logs(files_of(case), lambda _: name)
        (run,) = session.inspect([name])["runs"]
    return run


def unknown_of(case: Path) -> set[str]:
    """The facts that a transcript does not tell, as `unknown.yaml` here and in its client's folder lists them."""
    of_all = yaml.safe_load((HERE / "unknown.yaml").read_text(encoding="utf-8"))
    of_client = yaml.safe_load((case.parent / "unknown.yaml").read_text(encoding="utf-8"))
    return {*of_all, *(fact for glob, facts in of_client.items() if fnmatchcase(case.name, glob) for fact in facts)}


@pytest.mark.parametrize("case", CASES, ids=conformance.name)
@pytest.mark.full
def test_a_transcript_alone_is_never_wrong(case: Path) -> None:
    """Each fact that a transcript records is true; what it does not record is listed with its reason."""
    facts = conformance.compare(case, inspected(case))
    wrong = {fact: found for fact, found in facts.items() if found[0] == "wrong"}
    unknown = {fact for fact, (status, _, truth) in facts.items() if status == "unknown" and truth not in (None, 0)}

    assert wrong == {}
    assert unknown - unknown_of(case) == set()


OPENCLAW = [case for case in CASES if case.parent.name == "openclaw"]


@pytest.mark.parametrize("case", OPENCLAW, ids=conformance.name)
@pytest.mark.full
def test_a_transcript_next_to_spans_is_never_wrong(case: Path) -> None:
    """Spans and their transcript together tell tokens and arguments that the spans lack, and count no call twice."""
    facts = conformance.compare(case, inspected(case, with_spans=True))
    wrong = {fact: found for fact, found in facts.items() if found[0] == "wrong"}

    assert wrong == {}
    assert facts["input_tokens"][0] == facts["arguments"][0] == facts["llm_calls"][0] == "true"


def test_what_a_transcript_recorded_is_marked() -> None:
    """The run says which transcript recorded more of how many calls than its spans do."""
    case = HERE / "openclaw" / "one_tool"
    with Session.open() as session:
        session.load_recordings([case / "traces.otlp.jsonl"], Grouping("one", "r"))
        session.load_logs(files_of(case), lambda _: "r")
        (result,) = session.evaluate(["r"], [])

    assert (
        "the transcript `sess-one-tool.jsonl` (OpenClaw session transcript) has more details of 3 model and tool calls "
        "than their spans." in result.diagnostics
    )


@pytest.mark.parametrize(("which", "incomplete"), [(max, True), (min, False)])
def test_a_turn_whose_spans_are_lost_leaves_the_run_incomplete(
    tmp_path: Path, which: Callable[..., Any], incomplete: bool
) -> None:
    """A gateway ended before it had exported its last turn, whose answer the transcript has. A turn before all others may be of an earlier run."""
    case, path = HERE / "openclaw" / "delegation", tmp_path / "traces.otlp.jsonl"
    requests = [json.loads(line) for line in (case / "traces.otlp.jsonl").read_text(encoding="utf-8").splitlines()]
    scopes = [scope for one in requests for group in one["resourceSpans"] for scope in group["scopeSpans"]]
    one = which((span for scope in scopes for span in scope["spans"]), key=lambda span: span["startTimeUnixNano"])
    for scope in scopes:
        scope["spans"] = [span for span in scope["spans"] if span["traceId"] != one["traceId"]]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in requests), encoding="utf-8")
    with Session.open() as session:
        session.load_recordings([path], Grouping("one", "r"))
        session.load_logs(files_of(case), lambda _: "r")
        (run,) = session.inspect(["r"])["runs"]

    lost = [reason for reason in run["incomplete_because"] if "records 1 model call without a span" in reason]
    assert bool(lost) is incomplete
    assert not (lost and run["final_output"])


def test_a_transcript_of_other_work_fills_nothing() -> None:
    """A transcript whose turns are not the run's leaves the run's facts unknown, and the run says so."""
    spans, other = HERE / "openclaw" / "one_tool", HERE / "openclaw" / "two_tools_repeat"
    with Session.open() as session:
        session.load_recordings([spans / "traces.otlp.jsonl"], Grouping("one", "r"))
        session.load_logs(files_of(other), lambda _: "r")
        (run,) = session.inspect(["r"])["runs"]
        (result,) = session.evaluate(["r"], [])

    assert run["totals"]["llm_calls"] == 2
    assert run["totals"]["input_tokens"] is None
    assert any("7 calls of the transcript" in text for text in result.diagnostics)


@pytest.mark.parametrize(
    ("tool", "failed", "fits"), [("write", True, True), ("write", False, False), ("exec", True, False)]
)
def test_a_tool_that_the_framework_refused_has_no_span(tmp_path: Path, tool: str, failed: bool, fits: bool) -> None:
    """Its turn is that of the spans all the same; not where it succeeded, or where another call of the tool ran: which one is unknown."""
    case = HERE / "openclaw" / "one_tool"
    (path,) = files_of(case)
    *before, answer = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    asking, result = before[-2:]
    asking["message"]["content"].append({"type": "toolCall", "id": "call_0002", "name": tool, "arguments": {}})
    more = {"toolCallId": "call_0002", "toolName": tool, "isError": failed, "details": {}}
    refused = result | {"id": "refused", "parentId": result["id"], "message": result["message"] | more}
    changed = tmp_path / "changed.jsonl"
    lines = [*before, refused, answer | {"parentId": "refused"}]
    changed.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    with Session.open() as session:
        session.load_recordings([case / "traces.otlp.jsonl"], Grouping("one", "r"))
        session.load_logs([changed], lambda _: "r")
        (run,) = session.inspect(["r"])["runs"]

    assert run["totals"]["tool_calls"] == 1
    assert (run["totals"]["input_tokens"] is not None) is fits
    assert (run["tool_calls"][0]["arguments"] == {"command": "echo hello"}) is fits
    assert any("was not used" in text for text in run["diagnostics"]) is not fits


def test_the_same_turn_twice_fills_nothing(tmp_path: Path) -> None:
    """Where two turns of transcripts fit the same turn of the spans, neither is believed."""
    case = HERE / "openclaw" / "one_tool"
    (path,) = files_of(case)
    first, *others = path.read_text(encoding="utf-8").splitlines()
    twin = tmp_path / "another.jsonl"
    twin.write_text("\n".join([json.dumps(json.loads(first) | {"id": "another"}), *others]) + "\n", encoding="utf-8")
    with Session.open() as session:
        session.load_recordings([case / "traces.otlp.jsonl"], Grouping("one", "r"))
        session.load_logs([path, twin], lambda _: "r")
        (run,) = session.inspect(["r"])["runs"]

    assert run["totals"]["llm_calls"] == 2
    assert run["totals"]["input_tokens"] is None
