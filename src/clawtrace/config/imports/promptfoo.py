"""promptfoo's configuration (as of 0.123): a case for each prompt and test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from clawtrace.config.files.document import KeyPath
from clawtrace.config.imports.foreign import Import, NoEqualError, Written
from clawtrace.config.imports.promptfoo_checks import our_assertions

__all__ = ["read_promptfoo"]

_TEMPLATE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


def read_promptfoo(found: Import) -> None:
    """Add a case for each prompt and test."""
    data = found.document.data
    for key in ("providers", "targets"):
        if key in data:
            found.leave_out((key,), "how the agent is started is given with `--command` or `--traces`", key=True)
    for key in ("scenarios", "derivedMetrics", "redteam", "nunjucksFilters", "extensions"):
        if key in data:
            found.leave_out((key,), "has no equal here", key=True)
    default = data.get("defaultTest", {})
    if not isinstance(default, dict):
        return found.leave_out(
            ("defaultTest",), "is in another file, which is not read; so no test can be judged the same"
        )
    prompts = _prompts(found)
    tests = data.get("tests", [{}])
    if not isinstance(tests, list):
        return found.leave_out(("tests",), "is in another file, which is not read")
    for index, test in enumerate(tests):
        path: KeyPath = ("tests", index)
        if not isinstance(test, dict):
            found.leave_out(path, "is in another file, which is not read")
        elif not _decides_otherwise(found, test, path) and not _decides_otherwise(found, default, ("defaultTest",)):
            _read_test(found, test, path, default, prompts)
    return None


def _decides_otherwise(found: Import, test: Mapping[str, Any], path: KeyPath) -> bool:
    """Note a test whose assertions do not all have to hold, or look at something else than the output."""
    for key in ("threshold", "assertScoringFunction"):
        if key in test:
            found.leave_out(
                (*path, key),
                "its assertions need not all hold, which has no equal here; the test is left out",
                key=True,
            )
            return True
    options = test.get("options")
    for key in ("transform", "postprocess", "prefix", "suffix"):
        if isinstance(options, dict) and key in options:
            found.leave_out(
                (*path, "options", key),
                "changes message or output, which has no equal here; the test is left out",
                key=True,
            )
            return True
    return False


def _read_test(
    found: Import,
    test: Mapping[str, Any],
    path: KeyPath,
    default: Mapping[str, Any],
    prompts: list[tuple[KeyPath, str]],
) -> None:
    values: dict[str, Any] = {}
    for place, written in ((("defaultTest",), default), (path, test)):
        for key, kind, words in (
            ("vars", dict, "a mapping"),
            ("assert", list, "a list"),
            ("options", dict, "a mapping"),
        ):
            if not isinstance(written.get(key, kind()), kind):
                found.leave_out((*place, key), f"expected {words} in this file; the test is left out")
                return
        values |= written.get("vars", {})
    options = default.get("options", {}) | test.get("options", {})
    checks = [
        (one, (*place, "assert", index))
        for place, written in ((("defaultTest",), default), (path, test))
        if written is test or not test.get("options", {}).get("disableDefaultAsserts")
        for index, one in enumerate(written.get("assert", []))
    ]
    combinations = [values] if options.get("disableVarExpansion") else _combinations(values)
    for number, (given, (place, prompt)) in enumerate(product(combinations, prompts), 1):
        assertions = [ours for one, where in checks for ours in _assertions(found, one, where, given)]
        if not assertions:
            found.leave_out(path, "nothing is left to check")
            continue
        try:
            message = _filled(prompt, given)
        except NoEqualError as error:
            found.leave_out(place, f"{error}: without the message that it makes, a test is left out")
            continue
        title = str(test.get("description") or message)
        found.add(" ".join(title.split())[:100], [message], assertions, f"{title} {number}" if number > 1 else title)


def _combinations(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the variables of each test: a variable that is a list makes one test for each of its values."""
    for chosen in product(*(value if isinstance(value, list) else [value] for value in values.values())):
        yield dict(zip(values, chosen, strict=True))


def _assertions(found: Import, written: Any, path: KeyPath, values: Mapping[str, Any]) -> list[tuple[Written, str]]:
    """Return what one of promptfoo's assertions is here; nothing where it has no equal."""
    if isinstance(written, dict) and isinstance(reference := written.get("$ref"), str):
        name = reference.rpartition("/")[2]
        templates = found.document.data.get("assertionTemplates")
        written, path = templates.get(name) if isinstance(templates, dict) else None, ("assertionTemplates", name)
    if not isinstance(written, dict):
        found.leave_out(path, "expected an assertion, a mapping with its `type`")
        return []
    inner = written.get("assert")
    if written.get("type") == "assert-set" and "threshold" not in written and isinstance(inner, list):
        return [
            one
            for index, part in enumerate(inner)
            for one in _assertions(found, part, (*path, "assert", index), values)
        ]
    try:
        ours = our_assertions({**written, "value": _filled(written.get("value"), values)})
    except NoEqualError as error:
        found.leave_out((*path, *error.path), str(error), key=error.key)
        return []
    return found.accept(path, ours, str(written["type"]))


def _prompts(found: Import) -> list[tuple[KeyPath, str]]:
    """Return the prompts that are written in the file."""
    written = found.document.data.get("prompts", ["{{prompt}}"])
    prompts: list[tuple[KeyPath, str]] = []
    for index, one in enumerate(written if isinstance(written, list) else [written]):
        path: KeyPath = ("prompts", index) if isinstance(written, list) else ("prompts",)
        text = one.get("raw") if isinstance(one, dict) else one
        if not isinstance(text, str) or re.match(
            r"\s*\[\s*\{|file://|exec:|.*\.(txt|json|yaml|yml|csv|j2|js|py)$", text
        ):
            found.leave_out(path, "a prompt is a text of one message here; its tests are left out")
        else:
            prompts.append((path, text))
    return prompts


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Put the test's variables where `{{name}}` stands for them.

    Raises:
        NoEqualError: a template is more than that.
    """
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value

    def put(match: re.Match[str]) -> str:
        given = values.get(match[1])
        if not isinstance(given, str | int) or isinstance(given, bool) or str(given).startswith("file://"):
            raise NoEqualError(f"no variable `{match[1]}` is a text or a whole number", "value")
        return str(given)

    text = _TEMPLATE.sub(put, value)
    if "{{" in text or "{%" in text:
        raise NoEqualError("a template of more than names of variables has no equal here", "value")
    return text
