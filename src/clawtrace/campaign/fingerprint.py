"""Identity of runs and evaluations: what can change their outcome, as one digest (spec: config.md §5).

A stored run may stand for a planned one only when nothing that can change what its agent does was edited. How runs are
scheduled (concurrency, repetitions) is not part of it. Values of variables go in as digests: a fingerprint is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from clawtrace.campaign.expand import PlannedRun
from clawtrace.runners.templates import names_in, render_tree

__all__ = ["SCHEMA", "canonical_digest", "evaluation_fingerprint", "run_fingerprint"]

SCHEMA = 1
"""Raised when the same edit would give another agent or another judgement than before."""

_OF_THE_DAY = frozenset({"today", "now", "run_started_at"})


def canonical_digest(data: Any) -> str:
    """Return SHA-256 of canonical JSON (sorted keys, no white space, UTF-8), as 64 hex digits."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def run_fingerprint(planned: PlannedRun, env: Mapping[str, str], inputs: Mapping[str, Any]) -> str:
    """Return the fingerprint of what an agent is given to do, as 64 hex digits.

    Args:
        planned: the run.
        env: the caller's environment: a variable that a template reads counts with its value.
        inputs: what the runner says can change its agent beside the settings (`Runner.inputs`).
    """
    case, model = planned.case, planned.model
    given = {
        "runner": case.config.runner.type,
        "settings": planned.settings.model_dump(mode="json"),
        "messages": [[message.role, message.content, message.name] for message in case.messages],
        "input": case.config.input.model_dump(mode="json", exclude={"messages"}),
    }
    named = {name for text in _texts(given) for name in names_in(text)}
    return canonical_digest(
        {
            "schema": SCHEMA,
            "case_id": case.config.case_id,
            "model": None if model is None else model.model_dump(mode="json", exclude={"label"}),
            "given": render_tree(given, partial(_stands_for, env)),
            "inputs": inputs,
            "day": date.today().isoformat() if named & _OF_THE_DAY else None,
        }
    )


def _stands_for(env: Mapping[str, str], name: str) -> str:
    """Return what a template stands for where it can change an agent; the run's own names stand for themselves."""
    if not name.startswith("env."):
        return f"{{{{{name}}}}}"
    return "sha256:" + hashlib.sha256(env.get(name.removeprefix("env."), "").encode()).hexdigest()


def _texts(data: Any) -> list[str]:
    if isinstance(data, str):
        return [data]
    if isinstance(data, Mapping):
        return [text for value in data.values() for text in _texts(value)]
    return [text for value in data for text in _texts(value)] if isinstance(data, list | tuple) else []


def evaluation_fingerprint(
    planned: PlannedRun, run: str, profile: Mapping[str, Any] | None, pricing: Any, judging: Mapping[str, str]
) -> str:
    """Return the fingerprint of what judges a run, as 64 hex digits.

    Args:
        planned: the run.
        run: the fingerprint of the run itself.
        profile: the evaluation profile, as written.
        pricing: `model_pricing` of the project.
        judging: digests of the files beside the case that judge (golden files, word lists, hooks), by path.
    """
    case = planned.case
    return canonical_digest(
        {
            "schema": SCHEMA,
            "run": run,
            "assertions": [
                {"version": assertion.version, **entry.fields}
                for assertion, entry in zip(case.assertions.parsed, case.assertions.entries, strict=True)
            ],
            "preconditions": [entry.fields for entry in case.preconditions.entries],
            "day": date.today().isoformat() if any(one.until is not None for one in case.assertions.parsed) else None,
            "profile": profile,
            "pricing": pricing,
            "judging": judging,
        }
    )
