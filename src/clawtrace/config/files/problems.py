"""From pydantic's errors, and from templates that have no value, to problems at a line: what was found, and what would be valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from clawtrace.config.files.document import Document, KeyPath
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.starting.templates import NAMES, names_in
from clawtrace.support.did_you_mean import did_you_mean

__all__ = [
    "Place",
    "in_document",
    "in_reading_order",
    "misplaced_templates",
    "read_as",
    "sound_part",
    "template_problems",
    "texts",
    "validated",
]

Model = TypeVar("Model", bound=BaseModel)

Place = Callable[[KeyPath], tuple[Document, KeyPath]]
"""Position of a path of the validated data: the document, and the path in it."""

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
}


def in_document(document: Document, prefix: KeyPath = ()) -> Place:
    """Return the `Place` of data in one document below `prefix`."""
    return lambda path: (document, prefix + path)


def validated(model: type[Model], data: Any, place: Place, problems: list[ConfigProblem]) -> Model | None:
    """Return `data` as `model`, or None after adding every problem to `problems`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, model, place)
        return None


def read_as(model: type[Model], document: Document) -> Model:
    """Return a document's data as `model`.

    Raises:
        ConfigError: every problem in it.
    """
    problems: list[ConfigProblem] = []
    found = validated(model, document.data, in_document(document), problems)
    if found is None:
        raise ConfigError(problems)
    return found


def sound_part(model: type[Model], data: Mapping[str, Any], instead: Mapping[str, Any]) -> Model | None:
    """Return `data` as `model` without its wrong keys; None where it cannot be without them.

    Args:
        instead: values of required keys that are missing or wrong.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = {str(entry["loc"][0]) for entry in error.errors(include_url=False) if entry["loc"]}
    sound = {key: value for key, value in data.items() if key not in wrong}
    try:
        return model.model_validate({**instead, **sound})
    except ValidationError:
        return None


def problems_of(error: ValidationError, model: type[BaseModel], place: Place) -> list[ConfigProblem]:
    """Return the problems of a validation, one for each place, in the order of the file.

    A value that fits no branch of a union gives one problem: that of the branch which reached deepest, or the kinds
    of value that would have been right.
    """
    kinds: dict[tuple[Document, KeyPath], list[Mapping[str, Any]]] = {}
    found: list[ConfigProblem] = []
    placed: list[tuple[Document, KeyPath]] = []
    for entry in error.errors(include_url=False):
        document, path = place(tuple(entry["loc"]))
        if entry["type"] in _TYPES:
            kinds.setdefault((document, document.existing(path)), []).append(entry)
            continue
        named = entry["type"] in ("missing", "extra_forbidden")
        path = (*document.existing(path[:-1]), path[-1]) if named else document.existing(path)
        message, hint = _explained(entry, _model_at(model, entry["loc"][:-1]))
        found.append(document.problem(path, message, hint, key=entry["type"] == "extra_forbidden"))
        placed.append((document, path))
    for (document, path), entries in kinds.items():
        deeper = [one for one in kinds if len(one[1]) > len(path)]
        if not any(other is document and below[: len(path)] == path for other, below in (*placed, *deeper)):
            found.append(_wrong_kind(document, path, entries))
    return sorted(found, key=lambda problem: (problem.file, problem.line, problem.column))


def in_reading_order(problems: Sequence[ConfigProblem]) -> list[ConfigProblem]:
    """Return the problems file by file, as the files were read, and down each file; equal ones once."""
    files = list(dict.fromkeys(problem.file for problem in problems))
    return sorted(dict.fromkeys(problems), key=lambda p: (files.index(p.file), p.line, p.column))


def _wrong_kind(document: Document, path: KeyPath, entries: Sequence[Mapping[str, Any]]) -> ConfigProblem:
    value = entries[0]["input"]
    words = " or ".join(dict.fromkeys(_TYPES[entry["type"]] for entry in entries))
    found, written = _shown(value), document.as_written(path)
    hint = ""
    if "text" in words and written:
        found += "" if found.endswith(written) else f", which is how YAML reads {written}"
        hint = f'Put it in quotes: "{written}".'
    return document.problem(path, f"must be {words}, found {found}", hint)


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value).replace("True", "true").replace("False", "false")
    if isinstance(value, dict):
        text = "a mapping"
    elif isinstance(value, list):
        text = "a list"
    elif isinstance(value, date):
        text = f"the date {value}"
    return text if len(text) <= 80 else text[:77] + "…"


def _explained(entry: Mapping[str, Any], model: type[BaseModel] | None) -> tuple[str, str]:
    """Return message and hint of one error."""
    kind, context = entry["type"], entry.get("ctx", {})
    name = str(entry["loc"][-1]) if entry["loc"] else ""
    if kind == "missing":
        return "is required", ""
    if kind == "extra_forbidden":
        return _unknown_key(name, model)
    if kind == "literal_error":
        valid = context["expected"]
        words = [word.strip(" '") for word in valid.replace(" or ", ",").split(",")]
        return f"found {_shown(entry['input'])}, valid is {valid}", did_you_mean(entry["input"], words)
    if kind == "value_error":
        return str(context["error"]), ""
    if kind == "too_short" and context.get("actual_length") == 0:
        return "is empty", ""
    message = entry["msg"][0].lower() + entry["msg"][1:]
    message = message.replace("input should be", "must be").replace("string", "text")
    return f"{message}, found {_shown(entry['input'])}", ""


def _unknown_key(name: str, model: type[BaseModel] | None) -> tuple[str, str]:
    if model is None:
        return "is not a known key here", ""
    elsewhere: Mapping[str, str] = getattr(model, "keys_of_others", {})
    if name in elsewhere:
        return f"does not belong here: {elsewhere[name]}", ""
    from clawtrace.config.project import ProjectConfig

    if model is not ProjectConfig and name in ProjectConfig.model_fields:
        return "belongs at the top level of clawtrace.yaml, and has no effect here", ""
    known = [field.alias or key for key, field in model.model_fields.items()]
    return "is not a known key; known are " + ", ".join(f"`{key}`" for key in known), did_you_mean(name, known)


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model that the value at `path` belongs to."""
    current: type[BaseModel] | None = model
    for step in path:
        if current is None:
            return None
        field = current.model_fields.get(str(step)) if isinstance(step, str) else None
        if field is None:
            continue
        current = _model_in(field.annotation)
    return current


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for argument in get_args(annotation) if (found := _model_in(argument))), None)


# --- templates --------------------------------------------------------------------------------------------------------


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
