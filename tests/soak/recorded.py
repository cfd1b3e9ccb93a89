"""Claims about a recording, derived from its `truth.json` as the soak derives them from the logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from claims import Claim, claims
from truth import RanCommand

_FACTS = {
    "tool_call_count": ("tools",), "tool_not_invoked": ("tools",), "tool_was_called": ("tools",), "tool_sequence": ("tools",),
    "tool_call": ("tools", "arguments"), "llm_call_count": ("llm_calls",), "model_used": ("models",),
    "trace_token_budget": ("input_tokens", "output_tokens"), "no_span_errors": ("errors",), "final_response": ("final_output",),
    "delegation_occurred": ("agents", "delegations"),
}  # fmt: skip
"""The facts that a type of assertions asks, as `unjudged` names them."""


def recorded_claims(path: Path) -> Iterator[Claim]:
    """Yield what can be claimed of the recording in a folder."""
    said = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    unjudged = set(said.get("unjudged", ()))
    for claim in claims(_truth(said), named_agents=bool(said["agents"])):
        blocked = "denied" in path.name and "status" in claim[1]  # the truth says only that such a call did not succeed
        if unjudged.isdisjoint(_FACTS[claim[1]["type"]]) and not blocked:
            yield claim


class _Answer(NamedTuple):
    reply_model: str


@dataclass(frozen=True)
class _RecordedTruth:
    """What `claims` asks of a truth."""

    said: dict[str, Any]
    answered: list[_Answer]
    failed: list[Any]
    tools: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    agents: list[str]
    helper: str
    errors: range
    output: str | None
    ordered: bool
    unclear: tuple[dict[str, Any], ...] = ()
    commands: tuple[RanCommand, ...] = ()
    files: tuple[tuple[str, bool], ...] = ()
    delegations: frozenset[tuple[str, str]] = frozenset()
    may_be_delegations: frozenset[tuple[str, str]] = frozenset()
    may_have_begun: frozenset[str] = frozenset()
    side_by_side: bool = False
    given_up: bool = False
    taken_for_answers: int = 0

    def total(self, kind: str) -> int | None:
        counts = [call[f"{kind}_tokens"] for call in self.said["llm_calls"]]
        return None if None in counts else sum(counts)

    def least(self, kind: str) -> int:
        return sum(call[f"{kind}_tokens"] or 0 for call in self.said["llm_calls"])

    def begun(self, kind: str) -> int:
        return sum(
            call.get(f"{kind}_tokens") or 0 for call in self.said["failed_llm_attempts"] if isinstance(call, dict)
        )


def _truth(said: dict[str, Any]) -> _RecordedTruth:
    asked = Counter(name for call in said["llm_calls"] for name in call.get("requested_tools") or ())
    asked -= Counter(tool["name"] for tool in said["tools"])
    unclear = tuple(said.get("unclear", ()))
    names = asked - Counter(call["name"] for call in unclear)
    errors = said["errors"] if isinstance(said["errors"], list) else [said["errors"]]
    delegated = [pair[1] for pair in said["delegations"]]
    beside = any(len(call.get("requested_tools") or ()) > 1 for call in said["llm_calls"])
    return _RecordedTruth(
        said,
        answered=[_Answer(call["response_model"] or call["model"]) for call in said["llm_calls"]],
        failed=list(said["failed_llm_attempts"]),
        tools=[{**tool, "error": "failed" if tool["error"] else None} for tool in said["tools"]],
        refused=[{"name": name} for name in names.elements()],
        agents=[*said["agents"][:1], *delegated],
        helper=delegated[0] if delegated else "researcher",
        errors=range(min(errors), max(errors) + asked.total() + 1),
        output=said["final_output"],
        ordered=not beside and "order" not in said.get("unjudged", ()),
        delegations=frozenset((boss, agent) for boss, agent in said["delegations"]),
        unclear=unclear,
        may_have_begun=frozenset(said.get("may_have_begun", ())),
    )
