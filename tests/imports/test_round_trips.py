"""A recording that another tool gave out again has the facts that it has as OTLP, but for what that tool's form lacks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from exports import STORES, langfuse
from recorded import Facts, facts_of, file_of

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


@pytest.mark.parametrize("store", STORES)
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


@pytest.mark.parametrize("snake", [False, True], ids=["trace", "blob storage"])
@pytest.mark.parametrize("name", OBSERVED)
def test_observations_give_the_same_facts(name: str, snake: bool, tmp_path: Path) -> None:
    exported = tmp_path / "downloaded.json"
    exported.write_text(langfuse(name, snake=snake))
    found = facts_of(exported)

    assert found["llm_calls"]
    assert found == recorded_facts(name)
