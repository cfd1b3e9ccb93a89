"""The page of the conformance of many clients, from what `tests/conforming/table.py` found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assertion_pages import table

__all__ = ["conformance_table"]

_RESULTS = Path(__file__).parent / "conformance.json"
_NO_FACT = "-"


def conformance_table(note: str) -> str:
    """Return the page: one row for each client, one column for each fact, and the scenarios in which a fact is not true."""
    from clawtrace.conformance.trial import CONVENTIONS

    found: dict[str, Any] = json.loads(_RESULTS.read_text(encoding="utf-8"))
    rows = [
        (f"[{name}](#{_anchor(name)})", *(_share(one["facts"].get(fact, "")) for fact in CONVENTIONS))
        for name, one in found.items()
    ]
    parts = [
        f"# Conformance of frameworks and instrumentations\n\n{note}\nWhat the spans of {len(found)} clients tell of standard "
        "scenarios, by [`clawtrace conformance`](../conformance.md): ✓ true in each scenario that decides the fact, · absent in each, ✗ wrong "
        "in so many; else in how many it is true. `make conformance` tries the clients again, `make conformance NEWEST=1` their newest "
        f"versions.\n\n{table(('client', *(f'`{fact}`' for fact in CONVENTIONS)), rows)}"
    ]
    parts += [_section(name, one) for name, one in found.items()]
    return "\n".join(parts)


def _anchor(name: str) -> str:
    return name.replace("+", "")


def _share(marks: str) -> str:
    told = marks.replace(_NO_FACT, "")
    if "✗" in told:
        return f"✗ {told.count('✗')}"
    return told[:1] if len(set(told)) <= 1 else f"{told.count('✓')}/{len(told)}"


def _section(name: str, found: dict[str, Any]) -> str:
    packages = ", ".join(f"{package} {version}" for package, version in found["packages"].items())
    lines = [f"## {name}\n\n{packages}.\n"]
    for fact, marks in found["facts"].items():
        for mark, word in (("✗", "wrong"), ("·", "absent")):
            scenarios = [scenario for scenario, seen in zip(found["scenarios"], marks, strict=True) if seen == mark]
            if scenarios:
                everywhere = not marks.replace(_NO_FACT, "").strip(mark)
                lines.append(f"- `{fact}` is {word} {'throughout' if everywhere else 'in ' + ', '.join(scenarios)}")
    return "\n".join(lines) + "\n"
