"""A run as a judge sees it: the task, the expectations, the checks, the process from its spans, the files, the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.assertions.world import World
from clawtrace.judge.panel import Scale
from clawtrace.judge.prompt import Material, as_text, hide_names
from clawtrace.model.verdict import Verdict
from clawtrace.support.figures import total_of

__all__ = ["Subject", "conversation_text", "expectations_of", "hidden_names", "material", "process_text", "scale_of"]

_FILE_CHARACTERS = 4_000
_FILES = 20
_VALUE_CHARACTERS = 2_000


class Subject(NamedTuple):
    """Everything about a run that its judges are given; JSON values as reports have them."""

    run_id: str
    messages: Sequence[tuple[str, str]]
    """Role and text of what the agent was given; turns follow."""
    target: Mapping[str, Any]
    """`expectations` and `rubric` of the case, where it has them."""
    facts: Mapping[str, Any]
    """What `clawtrace inspect --json` says of the run."""
    verdicts: Sequence[Verdict]
    scores: Mapping[str, float]
    """By dimension, from the checks."""
    answer: str | None
    """The runner's view of the final answer; the spans' goes first."""
    workspace: Path | None = None
    changes: Mapping[str, Sequence[str]] | None = None
    hidden: Mapping[str, str] = {}
    """Names that the judge must not know, and the words in their place."""
    clean: Callable[[str], str] = str
    """Takes known secrets out."""


def scale_of(target: Mapping[str, Any]) -> Scale:
    """Return the scale of a case's rubric, 0 to 10 where it has none."""
    scale = target.get("rubric", {}).get("scale", {})
    return Scale(**{bound: scale[bound] for bound in ("min", "max") if bound in scale})


def expectations_of(target: Mapping[str, Any], group: str) -> Sequence[Mapping[str, Any]]:
    """Return the expectations of a case in one group, `hard` or `soft`."""
    found: Sequence[Mapping[str, Any]] = target.get("expectations", {}).get(f"{group}_expectations", ())
    return found


def material(of: Subject) -> Material:
    """Return what the judges of a run are given."""
    facts = of.facts
    final = facts.get("final_output") if facts.get("final_output") is not None else of.answer
    sections = (
        ("What the agent was asked", conversation_text(of.messages)),
        ("Results of deterministic checks", "\n".join(_checks(of)) or "(none)"),
        ("What the agent did, as its spans record it", process_text(facts)),
        ("Files that the agent left", "\n".join(_files(of)) or "(none that are known)"),
        ("The agent's final answer", as_text(final)),
    )
    hidden = [(name, of.clean(hide_names(text, of.hidden))) for name, text in sections]
    return Material(hidden, tuple(_criteria(of.target)))


def conversation_text(messages: Sequence[tuple[str, str]]) -> str:
    """Return messages as text."""
    return "\n".join(f"[{role}] {text}" for role, text in messages)


def _criteria(target: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for group, meaning in (("hard", "critical requirements"), ("soft", "partial credit")):
        lines = [
            f"{number}. {one['text']} (weight {one['weight']:g})"
            for number, one in enumerate(expectations_of(target, group), 1)
        ]
        if lines:
            yield f"{group.capitalize()} expectations ({meaning})", "\n".join(lines)
    rubric = target.get("rubric")
    if rubric:
        yield "Rubric", "\n".join(_rubric(rubric))


def _rubric(rubric: Mapping[str, Any]) -> Iterator[str]:
    yield f"Scale: {scale_of({'rubric': rubric})}."
    for score, meaning in {**rubric["scale"].get("anchors", {}), **rubric["anchors"]}.items():
        yield f"{score}: {meaning}"
    for one in rubric["criteria"]:
        yield f"- {one['name']}"
        for field, word in (("what_good_looks_like", "good"), ("what_bad_looks_like", "bad")):
            if one[field]:
                yield f"  {word}: {one[field]}"
    if rubric["scoring_instructions"]:
        yield rubric["scoring_instructions"].strip()


def _checks(of: Subject) -> Iterator[str]:
    for one in of.verdicts:
        tagged = f" [{', '.join(one.dimensions)}]" if one.dimensions else ""
        yield f"- {one.status.value}: {one.id}{tagged}: {one.message}"
        yield from (f"    evidence: {_short(found.name)}: {_short(found.why)}" for found in one.evidence[:5])
    if of.scores:
        yield "By dimension, 10 times passed by decided: " + ", ".join(
            f"{name} {score:.1f}" for name, score in of.scores.items()
        )


def process_text(facts: Mapping[str, Any]) -> str:
    """Return what a run's spans say of how the agent worked, without the names of models."""
    calls, known = _rows(facts, "tool_calls")
    lines = [
        f"Tool calls, in order{'' if known else ' (there may be more)'}:" if calls else f"Tool calls: {_none(known)}"
    ]
    for number, call in enumerate(calls, 1):
        by = f" by {call['agent']}" if call.get("agent") else ""
        lines.append(f"{number}. {call['name']}{by}: {call['outcome']}{_perhaps(call)}")
        lines.append(f"   arguments: {_short(as_text(call['arguments']))}")
        lines.append(f"   result: {_short(as_text(call['error'] or call['result']))}")
    agents, known = _rows(facts, "agents")
    named = (
        (one["name"] or "(no name)") + (f" (from {one['parent']})" if one["parent"] else "") + _perhaps(one)
        for one in agents
    )
    lines.append(f"Agents: {', '.join(named) or _none(known)}")
    for error in _rows(facts, "errors")[0]:
        handled = {True: "recovered", False: "not recovered"}.get(error["recovered"], "unknown whether recovered")
        lines.append(f"Error ({handled}){_perhaps(error)}: {error['name']}: {_short(as_text(error['message']))}")
    totals = facts.get("totals") or {}
    counts = [
        f"{name} {total_of(totals, name)}" for name in ("llm_calls", "tool_calls", "input_tokens", "output_tokens")
    ]
    cost, duration = totals.get("cost_usd"), facts.get("duration_ms")
    counts += [
        f"cost in USD {as_text(cost)}",
        f"seconds {as_text(None if duration is None else round(duration / 1000, 1))}",
    ]
    return "\n".join([*lines, "In all: " + ", ".join(counts)])


def _rows(facts: Mapping[str, Any], relation: str) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """Return the rows of a relation, and whether they are known to be all and to be there."""
    if facts.get(relation) is not None:
        return facts[relation], True
    return (facts.get("seen") or {}).get(relation) or (), False


def _none(known: bool) -> str:
    return "none" if known else "(unknown)"


def _perhaps(row: Mapping[str, Any]) -> str:
    return "" if row.get("certain", True) else " (perhaps)"


def _files(of: Subject) -> Iterator[str]:
    if of.workspace is None or of.changes is None:
        return
    names = [(kind, name) for kind in ("created", "modified", "deleted") for name in of.changes.get(kind, ())]
    for kind, name in names[:_FILES]:
        yield f"--- {kind}: {name}"
        file = of.workspace / name
        if kind != "deleted" and file.is_file() and not file.is_symlink():
            with file.open("rb") as stream:
                head = stream.read(_FILE_CHARACTERS + 1)
            text = head[:_FILE_CHARACTERS].decode("utf-8", "replace")
            yield "(not text)" if "\0" in text else text + (" [… cut …]" if len(head) > _FILE_CHARACTERS else "")
    if len(names) > _FILES:
        yield f"({len(names) - _FILES} more files)"


def _short(text: str) -> str:
    return text if len(text) <= _VALUE_CHARACTERS else f"{text[:_VALUE_CHARACTERS]} [… cut …]"


def hidden_names(world: World, facts: Mapping[str, Any], models: Iterable[str | None] = ()) -> dict[str, str]:
    """Return the names that a judge must not know, with the words in their place: they would tell it whose work it judges.

    Args:
        facts: what `inspect` says of it.
        models: further names of its model, apart from those of its calls.
    """
    names = set(models)
    for call in _rows(facts, "llm_calls")[0]:
        names |= {call["request_model"], call["response_model"]}
    # A plain word, such as the id `local`, tells nothing and would be taken out of ordinary sentences.
    found = {name: "[model]" for name in names if name and not name.isalpha()}
    if world.folder is not None:
        found[str(world.folder)] = "[run folder]"
    if world.workspace is not None:
        found[str(world.workspace)] = "[workspace]"
    return {**found, world.run_id: "[run]"}
