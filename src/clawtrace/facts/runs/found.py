"""What was found in the spans of a run, from which its sums and its gaps follow."""

from __future__ import annotations

from typing import Protocol

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.runs.agents import Activation
from clawtrace.facts.runs.failures import Failure
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["Found"]


class Found(Protocol):
    """The rows of one run, with its spans and the gaps that they show."""

    spans: RunSpans
    models: list[LlmCall]
    tools: ToolCalls
    agents: list[Activation]
    failures: list[Failure]
    findings: Findings
