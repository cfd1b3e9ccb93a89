"""Templates are checked when a file is loaded: an unknown name or an unset variable costs no run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from clawtrace.config.files.document import KeyPath
from clawtrace.config.files.problems import Place
from clawtrace.errors import ConfigProblem
from clawtrace.runners.starting.templates import NAMES, names_in
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["misplaced_templates", "template_problems", "texts"]


def texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text of a JSON-like value with its path."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from texts(value, (*path, key))
    elif isinstance(data, list | tuple):
        for index, value in enumerate(data):
            yield from texts(value, (*path, index))


def template_problems(
    data: Any,
    place: Place,
    env: Mapping[str, str],
    more: Collection[str] = (),
    without: Mapping[str, str] | None = None,
) -> list[ConfigProblem]:
    """Return the problems of all templates in `data`.

    Args:
        data: a JSON-like value.
        place: positions of its paths.
        env: the variables that ``{{env.NAME}}`` may read.
        more: names that are known here in addition to the general ones.
        without: general names that have no value here, with the sentence to show.
    """
    problems = []
    for path, text in texts(data):
        for name in names_in(text):
            message, hint = _wrong(name, env, more, without or {})
            if message:
                document, where = place(path)
                problems.append(document.problem(where, message, hint))
    return problems


def misplaced_templates(data: Mapping[str, Any], place: Place) -> list[ConfigProblem]:
    """Return the templates in settings that are read before there is a run: they would be taken for plain text."""
    problems = []
    for path, text in texts(data):
        for name in names_in(text):
            document, where = place(path)
            message = f"`{{{{{name}}}}}` has no value here: `{path[0]}` is read before a run exists"
            problems.append(document.problem(where, message))
    return problems


def _wrong(name: str, env: Mapping[str, str], more: Collection[str], without: Mapping[str, str]) -> tuple[str, str]:
    if name.startswith("env."):
        variable = name.removeprefix("env.")
        if variable in env:
            return "", ""
        return (
            f"`{{{{{name}}}}}` reads the environment variable `{variable}`, which is not set",
            "Set it, and run the command again.",
        )
    if name.startswith("row."):
        return f"`{{{{{name}}}}}` is a field of a `dataset`, and this case has none", ""
    if name in without:
        return f"`{{{{{name}}}}}` has no value here: {without[name]}", ""
    if name in NAMES or name in more:
        return "", ""
    known = [*NAMES, *more]
    listed = ", ".join(f"`{{{{{word}}}}}`" for word in known)
    hint = did_you_mean(name, known)
    return f"`{{{{{name}}}}}` is not a known template; known are {listed}; write `\\{{{{{name}}}}}` for the text", hint
