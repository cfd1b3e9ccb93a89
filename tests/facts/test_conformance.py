"""Every recording against its truth: nothing is wrong, and what is unknown is told.

A fact that the recording lacks is None, and listed in `unknown.yaml` with its reason; a fact that is there and differs
is wrong.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import conformance
import pytest
import yaml

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings"
CORPUS = HERE.parents[1].parent / "shared" / "corpus"
CLIENTS = (
    "pydantic-ai", "pydantic-ai+anthropic", "openai-agents+openinference", "openai-agents+openllmetry", "openai-sdk+official",
    "openai-sdk+official+openinference", "langchain+openinference", "langchain+openllmetry", "crewai+openinference",
    "smolagents+openinference", "google-adk", "strands", "pydantic-ai+format2", "vercel-ai7", "vercel-ai7+legacy",
    "vercel-ai7-grpc", "vercel-ai7-httpjson", "claude-code", "codex", "gemini-cli", "openclaw",
)  # fmt: skip
"""The clients whose dialects exist; the others of the corpus come with their dialects."""

STRANGERS = (
    "langchain+langfuse", "langchain+mlflow", "langchain+langsmith", "langchain+openinference+openllmetry", "openai-sdk+langfuse",
    "openai-sdk+logfire", "anthropic-sdk+logfire", "anthropic-sdk+openinference", "openai-agents+logfire", "litellm-sdk",
    "litellm-sdk+openinference", "llama-index+openinference", "autogen+openinference", "google-adk+openinference",
    "agno+openinference", "strands-0.2", "mastra",
    "vercel-ai4", "vercel-ai5", "vercel-ai5+openinference", "vercel-ai6", "vercel-ai7+openinference",
    "openai-agents-js+openinference", "langchain-js+openinference", "langchain-js+openllmetry", "openllmetry-js", "genkit",
    "langfuse-js", "copilot", "qwen-code", "haystack", "haystack-3", "haystack+openinference", "haystack-3+openinference", "ag2",
    "beeai+openinference", "llama-index+openllmetry", "openai-agents+openlit", "semantic-kernel", "agent-framework",
    "google-genai-sdk+official", "google-genai-sdk+openinference", "google-genai-sdk+openllmetry", "openai-sdk+openllmetry",
    "anthropic-sdk+openllmetry", "autogen+native", "crewai+openllmetry", "bedrock-sdk+official", "langchain+genai", "openai-agents+genai", "agno+genai",
    "smolagents+genai", "anthropic-sdk+genai", "openai-sdk+genai", "openai-agents+openinference+mcp",
    "dspy+genai", "langchain+openinference+langsmith",
)  # fmt: skip
"""Clients that only the copied recordings hold."""

MET_LATER = HERE.parents[1].parent / "shared" / "strangers"
HELD = ("autogen+native", "crewai+openllmetry", "haystack+openinference", "llama-index+openinference")
"""Clients of that folder, where there is one, of which every fact is true or listed as unknown."""

NEVER_WRONG = ("instructor+openinference", "llama-index+otel", "openai-sdk+traceloop-sdk", "opencode")
"""Clients of that folder of which nothing is wrong; what is unknown is still to be mended."""

UNKNOWN: dict[str, dict[str, str]] = yaml.safe_load((HERE / "unknown.yaml").read_text(encoding="utf-8"))

_OF_CORPUS = conformance.recordings(CORPUS, CLIENTS)
CASES = [
    *_OF_CORPUS,
    *(
        path
        for path in conformance.recordings(RECORDINGS, CLIENTS)
        if conformance.name(path) not in set(map(conformance.name, _OF_CORPUS))
    ),
    *conformance.recordings(RECORDINGS, STRANGERS),
]


CASES_MET_LATER = conformance.recordings(MET_LATER, (*HELD, *NEVER_WRONG)) or conformance.recordings(RECORDINGS, HELD)


@pytest.fixture(scope="module")
def inspected() -> dict[Path, dict[str, Any]]:
    """What `clawtrace inspect --json` says of each recording; the two folders hold recordings of the same names."""
    found: dict[Path, dict[str, Any]] = {}
    for paths in (CASES, CASES_MET_LATER):
        runs = conformance.inspect(paths)
        found |= {path: runs[conformance.name(path)] for path in paths}
    return found


@pytest.mark.parametrize("path", CASES, ids=conformance.name)
def test_recording_against_its_truth(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """Each fact is true, or unknown for a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert _unlisted(path, facts) == set()


@pytest.mark.parametrize("path", CASES_MET_LATER, ids=conformance.name)
def test_client_that_was_met_later(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """No fact is wrong, and of the clients that are held to it each is true, or unknown for a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert path.parent.name not in HELD or _unlisted(path, facts) == set()


def _of(facts: dict[str, tuple[str, Any, Any]], status: str) -> dict[str, tuple[str, Any, Any]]:
    return {fact: found for fact, found in facts.items() if found[0] == status}


def _unlisted(path: Path, facts: dict[str, tuple[str, Any, Any]]) -> set[str]:
    """Return the unknown facts for which no reason is listed; that nothing was told of nothing needs none."""
    listed = {fact for key, entries in UNKNOWN.items() if _meant(key, path) for fact in entries}
    return {fact for fact, (_, _, truth) in _of(facts, "unknown").items() if truth not in (None, 0)} - listed


def _meant(key: str, path: Path) -> bool:
    """Return whether an entry is for the recording: by a glob of its client, or of client and scenario."""
    return fnmatchcase(conformance.name(path) if "/" in key else path.parent.name, key)


def test_the_list_of_unknown_facts_is_short_and_needed() -> None:
    """Every entry names recordings that exist, facts, and a reason."""
    for key, entries in UNKNOWN.items():
        assert set(entries) <= set(conformance.FACTS)
        assert all(len(reason) > 20 for reason in entries.values())
        if CASES[0].is_relative_to(CORPUS) and CASES_MET_LATER[0].is_relative_to(MET_LATER):
            assert any(_meant(key, path) for path in (*CASES, *CASES_MET_LATER)), key
    assert sum(map(len, UNKNOWN.values())) <= 180
