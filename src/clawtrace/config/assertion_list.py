"""The `assertions:` of a file: parsed when it is loaded, filled in for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.problems import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.document import Document, KeyPath
from clawtrace.config.problems import in_document
from clawtrace.config.template_check import template_problems, texts
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.templates import RunValues, names_in, render_tree

__all__ = ["AssertionList", "load_assertions"]

_OF_A_RUN = ("run_id", "case_id", "case_dir", "model_id", "workspace", "run_started_at", "today", "now")


class AssertionList(NamedTuple):
    """The assertions of one file, in order; each has an id of its own."""

    parsed: tuple[Assertion, ...]
    """As checked when the file was loaded: templates of a run hold samples, ``{{env.NAME}}`` its value."""
    mappings: tuple[Mapping[str, Any], ...]
    """As written, with their ids."""
    document: Document

    @property
    def has_templates(self) -> bool:
        """Whether any text waits for a run's values."""
        return any(not name.startswith("env.") for _, text in texts(self.mappings) for name in names_in(text))

    def for_run(self, values: RunValues) -> list[Assertion]:
        """Return the assertions with the templates of one run filled in.

        Raises:
            ConfigError: a value makes an assertion invalid (for example a regular expression).
        """
        if not self.has_templates:
            return list(self.parsed)
        problems: list[ConfigProblem] = []
        rendered = [render_tree(dict(mapping), values.value) for mapping in self.mappings]
        parsed = [_parse(mapping, index, self.document, problems) for index, mapping in enumerate(rendered)]
        if problems:
            raise ConfigError(problems)
        return [assertion for assertion in parsed if assertion is not None]


def load_assertions(
    raw: Sequence[Any],
    document: Document,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
    *,
    recorded: bool = False,
) -> AssertionList:
    """Parse the list under `assertions:`, adding every problem to `problems`.

    Args:
        raw: the list as YAML gives it.
        document: the file.
        env: variables that templates may read.
        problems: where problems are added.
        recorded: whether the runs are recordings, of which nothing is known before they are read.
    """
    without = dict.fromkeys(_OF_A_RUN, "a recording has no runner that could know it") if recorded else {}
    problems += template_problems(list(raw), in_document(document, ("assertions",)), env, without=without)
    mappings = tuple(_named(raw, document, problems))
    sample = partial(_sample, RunValues("run", "case", "/case", "model", "/workspace", 0.0, env, {}))
    rendered = [render_tree(mapping, sample) for mapping in mappings]
    parsed = [_parse(mapping, index, document, problems) for index, mapping in enumerate(rendered)]
    return AssertionList(tuple(assertion for assertion in parsed if assertion is not None), mappings, document)


def _sample(values: RunValues, name: str) -> str:
    """Return a plausible value of a template, so that an assertion can be checked before any run."""
    try:
        return values.value(name)
    except KeyError:
        return "unknown"


def _named(raw: Sequence[Any], document: Document, problems: list[ConfigProblem]) -> Iterator[dict[str, Any]]:
    """Yield the entries with an id each: the given one, else the type, numbered from the second on."""
    taken: dict[str, int] = {}
    for index, entry in enumerate(raw):
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            if entry["id"] in taken:
                message = f"the id {entry['id']!r} is there twice, first in entry {taken[entry['id']]}"
                problems.append(document.problem(("assertions", index, "id"), message))
            taken.setdefault(entry["id"], index)
    for entry in raw:
        mapping = dict(entry) if isinstance(entry, dict) else {}
        if mapping.get("id") is None and isinstance(mapping.get("type"), str):
            name, number = mapping["type"], 2
            while name in taken:
                name, number = f"{mapping['type']}-{number}", number + 1
            taken[name] = len(taken)
            mapping["id"] = name
        yield mapping


def _parse(
    mapping: Mapping[str, Any], index: int, document: Document, problems: list[ConfigProblem]
) -> Assertion | None:
    """Return one entry as an assertion, or None after adding what is wrong with it."""
    where: KeyPath = ("assertions", index)
    written = document.data["assertions"][index]
    if not isinstance(written, dict):
        return None  # the file's model has said so
    if not isinstance(written.get("type", ""), str):
        problems.append(document.problem((*where, "type"), "must be the name of an assertion type"))
        return None
    try:
        return parse_assertion(mapping)
    except InvalidAssertionError as error:
        for problem in error.problems:
            key = problem.message.startswith("unknown field")
            problems.append(document.problem(where + problem.path, problem.message, problem.hint, key=key))
        return None
