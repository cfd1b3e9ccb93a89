"""The three notations of assertions, read into one: a type and its fields (spec: assertions.md §1).

| notation | key | an entry |
|---|---|---|
| long | `assertions` | ``{type: tool_sequence, expected: [a, b]}`` |
| short | `assert` | ``{ran: "docker build"}``, ``{run_count: {pattern: curl, min: 2}}`` |
| check | `deterministic_checks` | ``{check_id: x, declarative: {kind: tool_call_count, count: 3}}`` or with `python_hook` |

Where each field was written is kept, so that a problem found in the one form is shown in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import UnknownTypeError, get, names
from clawtrace.config.base import is_slug
from clawtrace.config.files.document import Document, KeyPath
from clawtrace.errors import ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["NOTATIONS", "PRECONDITIONS", "WrittenAssertion", "read_entries"]

PRECONDITIONS = ("preconditions", "given")
"""The two keys of preconditions; their entries are in the long or the short notation."""

_SHARED = tuple(name for name in Assertion.model_fields if name != "id")
"""Fields that every assertion has, and that an entry in the check notation may hold next to its check."""


class WrittenAssertion(NamedTuple):
    """One assertion as it was written."""

    fields: dict[str, Any]
    """`type` and the fields of that type, as in the long notation."""
    path: KeyPath
    """Position of the entry."""
    places: Mapping[str, KeyPath]
    """Positions of fields that are not below `path` under their own name."""
    inner: KeyPath = ()
    """Position where absent fields would be; empty where that is `path`."""

    def place(self, path: KeyPath) -> KeyPath:
        """Return the position in the file of a path below `fields`."""
        if not path:
            return self.path
        return self.places.get(str(path[0]), (*(self.inner or self.path), path[0])) + path[1:]


def read_entries(
    data: Mapping[str, Any], keys: tuple[str, ...], document: Document, problems: list[ConfigProblem]
) -> list[WrittenAssertion]:
    """Return the assertions below `keys` of a file, in the order in which the file has them.

    An entry that cannot be read is left out after its problem was added to `problems`; that a list is no list is
    the business of the file's model.
    """
    found = []
    for key in data:
        raw = data[key]
        if key not in keys or not isinstance(raw, list):
            continue
        for index, written in enumerate(raw):
            entry = _entry(key, written, (key, index), document, problems)
            if entry is not None:
                found.append(entry)
    return found


def _entry(
    key: str, written: Any, path: KeyPath, document: Document, problems: list[ConfigProblem]
) -> WrittenAssertion | None:
    notation = key
    if key in PRECONDITIONS:
        notation = "assertions" if isinstance(written, dict) and "type" in written else "assert"
    return NOTATIONS[notation](written, path, document, problems)


def _long(written: Any, path: KeyPath, document: Document, problems: list[ConfigProblem]) -> WrittenAssertion | None:
    if not isinstance(written, dict):
        problems.append(document.problem(path, f"must be a mapping with a `type`, found {written!r}"))
        return None
    if not isinstance(written.get("type", ""), str):
        problems.append(document.problem((*path, "type"), "must be the name of an assertion type"))
        return None
    if "type" not in written and len(written) == 1 and next(iter(written)) in names():
        message = f"`type` is missing; `{next(iter(written))}: …` is the short notation, which belongs under `assert:`"
        problems.append(document.problem(path, message))
        return None
    return WrittenAssertion(dict(written), path, {})


def _short(written: Any, path: KeyPath, document: Document, problems: list[ConfigProblem]) -> WrittenAssertion | None:
    if isinstance(written, str):
        written = {written: None}
    if not isinstance(written, dict) or not written:
        problems.append(document.problem(path, 'an entry of `assert` is a type and its value: `- ran: "make test"`'))
        return None
    name, value = next(iter(written.items()))
    try:
        cls = get(name)
    except UnknownTypeError as error:
        hint = "Write it under `assertions:`, or as `- tool_sequence: [a, b]`." if name == "type" else error.hint
        problems.append(document.problem((*path, name), error.problem, hint, key=True))
        return None
    places: dict[str, KeyPath] = {"type": (*path, name)}
    fields: dict[str, Any] = {"type": name}
    inner = path
    if isinstance(value, dict) and "type" not in value:
        inner = (*path, name)
        fields |= value
        places |= {field: (*path, name, field) for field in value}
    elif value is not None and cls.main_field is not None:
        fields[cls.main_field] = value
        places[cls.main_field] = (*path, name)
    elif value is not None and value is not True:
        problems.append(document.problem((*path, name), _no_main_field(cls, value)))
        return None
    for field, more in list(written.items())[1:]:
        if field in fields:
            problems.append(document.problem((*path, field), f"the field `{field}` is used twice", key=True))
        elif field not in cls.model_fields and field in names():
            message = f"one entry contains one assertion: `{name}` and `{field}` are two"
            problems.append(document.problem((*path, field), message, "Start a new line with `- `.", key=True))
        else:
            fields[field] = more
            places[field] = (*path, field)
    return WrittenAssertion(fields, path, places, inner)


def _no_main_field(cls: type[Assertion], value: Any) -> str:
    if isinstance(value, dict):
        return f"the key is already the `type` here: `{cls.type_name}: {{…}}` contains the fields of `{cls.type_name}` only"
    own = [name for name in cls.model_fields if name not in Assertion.model_fields]
    what = f"a mapping of its fields ({', '.join(own)})" if own else "nothing, `true`, or a mapping of common fields"
    return f"`{cls.type_name}` takes {what}, found {value!r}"


def _check(written: Any, path: KeyPath, document: Document, problems: list[ConfigProblem]) -> WrittenAssertion | None:
    before = len(problems)
    if not isinstance(written, dict):
        problems.append(
            document.problem(path, "a check is a mapping with `check_id` and `declarative` or `python_hook`")
        )
        return None
    known = ("check_id", "declarative", "python_hook", *_SHARED)
    for key in written:
        if key not in known:
            message = f"is not a known key of a check; known are {', '.join(f'`{word}`' for word in known)}"
            problems.append(document.problem((*path, key), message, did_you_mean(key, known), key=True))
    check_id = written.get("check_id")
    if check_id is None:
        problems.append(document.problem((*path, "check_id"), "is required"))
    elif not isinstance(check_id, str) or not is_slug(check_id):
        message = f"an id has letters, digits, `_`, `-` and `.` only and starts with no `-` or `.`, found {check_id!r}"
        problems.append(document.problem((*path, "check_id"), message))
    forms = [form for form in ("declarative", "python_hook") if form in written]
    if len(forms) != 1:
        found = "both are given" if forms else "neither is given"
        problems.append(document.problem(path, f"a check has exactly one of `declarative` and `python_hook`; {found}"))
        return None
    inner = written[forms[0]]
    if not isinstance(inner, dict):
        problems.append(document.problem((*path, forms[0]), "must be a mapping"))
        return None
    fields, places = _inner(inner, forms[0], path, document, problems)
    if len(problems) > before:
        return None
    shared = {key: value for key, value in written.items() if key in _SHARED}
    return WrittenAssertion(
        fields | shared | {"id": check_id},
        path,
        places | {key: (*path, key) for key in shared} | {"id": (*path, "check_id")},
        (*path, forms[0]),
    )


def _inner(
    inner: dict[str, Any], form: str, path: KeyPath, document: Document, problems: list[ConfigProblem]
) -> tuple[dict[str, Any], dict[str, KeyPath]]:
    """Return type and fields of the check itself, and their positions."""
    fields = dict(inner)
    places: dict[str, KeyPath] = {key: (*path, form, key) for key in inner}
    for key in ("type", "id", *(("kind",) if form == "python_hook" else ())):
        if key in fields:
            known = "`kind` names the type" if key == "type" else f"`{key}` does not belong here"
            problems.append(document.problem((*path, form, key), known, key=True))
            del fields[key]
    if form == "python_hook":
        return {"type": "python_hook"} | fields, places | {"type": (*path, form)}
    kind = fields.pop("kind", None)
    if kind is None:
        problems.append(document.problem((*path, form, "kind"), "is required: the kind of check"))
    elif not isinstance(kind, str) or kind not in names():
        unknown = UnknownTypeError(kind)
        message = unknown.problem.replace("unknown assertion type", "unknown kind")
        problems.append(document.problem((*path, form, "kind"), message, unknown.hint))
    return {"type": kind} | fields, places | {"type": (*path, form, "kind")}


_Reader = Callable[[Any, KeyPath, Document, list[ConfigProblem]], WrittenAssertion | None]

NOTATIONS: Mapping[str, _Reader] = {"assertions": _long, "assert": _short, "deterministic_checks": _check}
"""The reader of each notation, by its key in the file."""
