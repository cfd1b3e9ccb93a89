"""A recording that another tool gave out again has the facts that it has as OTLP, but for what that tool's form lacks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from exports import STORES, langfuse
from recordings_of import Facts, check, facts_of, file_of, without

pytestmark = pytest.mark.full

RECORDED = (
    "pydantic-ai/delegation",
    "pydantic-ai/tool_error_retry",
    "openai-agents+openinference/tool_error",
    "openai-agents+openllmetry/agent_as_tool",
    "langchain+openinference/supervisor_handoff",
    "langchain+mlflow/tool_error",
    "vercel-ai6/delegation",
)
"""Clients of several conventions, with tools, errors and agents inside of agents."""


@cache
def recorded_facts(name: str) -> Facts:
    return facts_of(file_of(name))


@pytest.mark.parametrize(
    "store", [next(iter(STORES)), *(pytest.param(one, marks=pytest.mark.full) for one in list(STORES)[1:])]
)
@pytest.mark.parametrize("name", RECORDED)
def test_a_store_of_traces_gives_the_same_facts(name: str, store: str, tmp_path: Path) -> None:
    exported = tmp_path / "downloaded.json"
    exported.write_text(STORES[store](name))
    found = facts_of(exported)

    assert found["llm_calls"]
    assert found == recorded_facts(name)


OBSERVED = (
    "langchain+langfuse/streaming",
    "langchain+langfuse/cached_write",
    "openai-sdk+langfuse/parallel_tools",
    "langfuse-js/streaming",
    "pydantic-ai+langfuse/delegation",
    "vercel-ai6+langfuse/delegation",
)


@pytest.mark.parametrize("snake", [False, pytest.param(True, marks=pytest.mark.full)], ids=["trace", "blob storage"])
@pytest.mark.parametrize("name", OBSERVED)
def test_observations_give_the_same_facts(name: str, snake: bool, tmp_path: Path) -> None:
    exported = tmp_path / "downloaded.json"
    exported.write_text(langfuse(name, snake=snake))
    found = facts_of(exported)

    assert found["llm_calls"]
    assert found == recorded_facts(name)


DATA = Path(__file__).parent / "data"
"""What the real tools exported in `test_real_tools.py`."""


@pytest.mark.parametrize("file", ["langsmith.jsonl", "mlflow.json", "braintrust.json"])
def test_an_agent_that_a_tool_traced(file: str) -> None:
    check(facts_of(DATA / file))


def test_runs_as_parquet(tmp_path: Path) -> None:
    """A bulk export has the columns of runs, objects as text."""
    import duckdb

    columns = (
        "* REPLACE (inputs::JSON::VARCHAR AS inputs, outputs::JSON::VARCHAR AS outputs, extra::JSON::VARCHAR AS extra)"
    )
    runs, exported = str(DATA / "langsmith.jsonl"), str(tmp_path / "runs.parquet")
    duckdb.sql(
        f"COPY (SELECT {columns} FROM read_json('{runs}', columns = {{id: 'VARCHAR', trace_id: 'VARCHAR', parent_run_id: 'VARCHAR', "
        "name: 'VARCHAR', run_type: 'VARCHAR', start_time: 'TIMESTAMP', end_time: 'TIMESTAMP', error: 'VARCHAR', inputs: 'JSON', "
        f"outputs: 'JSON', extra: 'JSON'}})) TO '{exported}' (FORMAT parquet)"
    )

    assert facts_of(Path(exported)) == facts_of(DATA / "langsmith.jsonl")


@pytest.mark.parametrize("file", ["phoenix.json", "phoenix.parquet"])
def test_spans_that_a_server_gave_out(file: str) -> None:
    """What only the name of the instrumentation tells is unknown, and said to be; everything else is as recorded."""
    lost = ("response_model", "finish_reason")
    found = facts_of(DATA / file)

    assert without(found, *lost) == without(recorded_facts("openai-agents+openinference/tool_error"), *lost)
    assert {doubt["reason"] for doubt in found["doubts"] if doubt["column_name"] == "response_model"} == {
        "model-not-recorded"
    }


def test_spans_of_opentelemetry_s_own_conventions_that_a_server_gave_out() -> None:
    """What the server derived of them, with less in it, does not take their place."""
    assert facts_of(DATA / "phoenix-genai.json") == recorded_facts("pydantic-ai/delegation")
