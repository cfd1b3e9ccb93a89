"""No agent's or framework's name stands in general code: what is particular to a product is data in the room that is for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import clawtrace
from clawtrace.dialects.load import BUILTIN

SOURCE = Path(clawtrace.__file__).parent

ROOMS = (
    "dialects/",
    "logs/",
    "runners/",
    "_scripted_model/",
    "providers/",
    "receiver/recordings/imports/",
    "assertions/builtin/openclaw_",
    "config/openclaw.py",
    "config/imports/",
)
"""Where products are named: their spans, their logs, what they export, how they are started, the providers' protocols, for one an assertion
and the configuration, and the configurations of other tools."""

ALLOWED = {
    "expect.pyi": "generated: it has a function for each assertion type",
    "model/model_names.py": "how providers and gateways spell the names of models",
    "pricing/genai.py": "what gateways record as provider",
    "receiver/decode/foreign_forms.py": "tells apart the forms of files that are given instead of OTLP",
    "receiver/redaction/secret_kinds.py": "secrets have the form that their issuer gives them",
}
"""General files that cannot do without, each with its reason."""

PRODUCTS = (
    "openclaw", "clawdbot", "langgraph", "langchain", "langsmith", "langfuse", "crewai", "pydantic-ai", "vercel", "claude-code",
    "codex", "gemini-cli", "qwen-code", "copilot", "litellm", "autogen", "smolagents", "haystack", "llama-index", "strands",
    "openinference", "openllmetry", "openlit", "traceloop", "phoenix", "logfire", "mlflow", "genkit", "google-adk", "ag2", "dspy",
    "semantic-kernel", "livekit", "cline", "opencode", "beeai", "agno", "com.anthropic",
)  # fmt: skip
"""Their names; a dash is any separator, or none."""

CONVENTIONS = ("transfer_to_", "handoff_to_", "tool_use", "end_turn", "function_call")
"""Words of providers and frameworks that only a dialect, or what reads messages there, may know."""

STANDARDS = frozenset(
    ("opentelemetry", "otel-genai", "mcp", "botocore", "google-genai", "azure-ai-inference", "own-words")
)
"""Dialects that are called as a standard is, as a provider, or by plain words."""


def _pattern() -> re.Pattern[str]:
    dialects = {path.stem for path in BUILTIN.glob("*.yaml")} - STANDARDS
    names = sorted({*PRODUCTS, *dialects})
    words = "|".join(re.escape(name).replace(r"\-", "[-_. ]?") for name in names)
    return re.compile(rf"(?<![a-z0-9])(?:{words})(?![a-z])|{'|'.join(CONVENTIONS)}", re.IGNORECASE)


def _named(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8").replace("clawtrace.config.openclaw", "")
    place = path.relative_to(SOURCE).as_posix()
    pattern = _pattern()
    return [
        f"{place}:{number}: {found.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        for found in pattern.finditer(line)
    ]


def _general() -> list[Path]:
    files = (path for path in SOURCE.rglob("*") if path.suffix in (".py", ".pyi", ".sql", ".yaml", ".yml"))
    return [path for path in sorted(files) if not path.relative_to(SOURCE).as_posix().startswith(ROOMS)]


def test_general_code_names_no_product() -> None:
    found = [line for path in _general() if path.relative_to(SOURCE).as_posix() not in ALLOWED for line in _named(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("file", ALLOWED)
def test_exceptions_are_needed(file: str) -> None:
    """A file that names none any more leaves the list."""
    assert _named(SOURCE / file)


@pytest.mark.parametrize(
    "line",
    ["'openclaw.event'", "langfuse.session.id", "is_pydantic_ai", "ClaudeCode", "Gemini CLI", "transfer_to_", "OpenInference"],
)  # fmt: skip
def test_names_are_found(line: str) -> None:
    assert _pattern().search(line)
