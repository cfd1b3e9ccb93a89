"""What `inspect` returns of a run: unknown is None, never 0 or an empty list (spec: cli.md)."""

from __future__ import annotations

from building import Lab, S, agent, chat, tool

from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.verdicts.reading.inspect import inspect_runs


def test_times_are_those_between_start_and_end(lab: Lab) -> None:
    """The command's, and those of the work that the trace shows, in milliseconds."""
    record = RunRecord("r", "r", closed_by=ClosedBy.EXIT, started_ns=5_000_000, ended_ns=65_000_000)
    lab.put(agent("a", at=10, to=40), chat("m", "a", at=20), record=record)
    lab.facts.ensure(["r"])
    (run,) = inspect_runs(lab.store, ["r"], {})["runs"]

    assert (run["duration_ms"], run["work_ms"], run["whole_trace_ms"]) == (60.0, 30.0, 30.0)


def test_a_run_without_a_trace_has_no_facts(lab: Lab) -> None:
    """Nothing is known of its agents and calls."""
    lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.EXIT))
    lab.facts.ensure(["r"])
    (run,) = inspect_runs(lab.store, ["r"], {})["runs"]

    assert [run[name] for name in ("agents", "delegations", "llm_calls", "tool_calls", "errors", "work_ms")] == [
        None
    ] * 6
    assert run["spans"] == 0


def test_without_a_span_of_an_agent_no_agent_is_known(lab: Lab) -> None:
    """Calls without one are no sign that none was at work."""
    lab.put(chat("m"), tool("t", at=10))
    lab.facts.ensure(["r"])
    (run,) = inspect_runs(lab.store, ["r"], {})["runs"]

    assert (run["agents"], run["delegations"]) == (None, None)
    assert [call["name"] for call in run["tool_calls"]] == ["get_weather"]


def test_an_embedding_with_usage_is_no_agent_that_repeats_its_calls(lab: Lab) -> None:
    """Each span with usage that is no model call is accounted for as what it is."""
    embedding = {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 100}
    lab.put(agent("a", to=40), chat("m", "a", at=10), S("e", "a", at=20, attrs=embedding))
    lab.facts.ensure(["r"])
    (run,) = inspect_runs(lab.store, ["r"], {})["runs"]

    assert run["reconciliation"] == ["2 spans with usage -> 1 model call: 1 embedding is no model call"]
