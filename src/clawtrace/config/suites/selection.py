"""Which cases a suite selects, before any of them is validated (spec: config.md §2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from clawtrace.config.base import CaseSelection
from clawtrace.config.files.document import Document, KeyPath, check_depth, display, read_document, regular_text
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["is_selected", "may_be_selected", "select_cases", "tags_in", "unknown_cases"]


def select_cases(
    selection: CaseSelection, files: Mapping[str, list[Path]], suite: Document, problems: list[ConfigProblem]
) -> list[tuple[Path, Document | None]]:
    """Return the files of the selected cases, in the order in which they run, with those already read.

    Listed cases first, as listed; then the others by case id. A file that is no YAML and breaks before it has shown its tags
    counts as selected wherever they would decide, so that no case is left out by a typing error.

    Args:
        files: case files by the name of their folder.
        suite: the suite's document, for positions.
        problems: unknown ids, ids with two files, and an empty selection are added here.
    """
    problems += unknown_cases(selection, suite, ("case_selection",), files)
    read: dict[str, Document | None] = {}
    listed = [case_id for case_id in dict.fromkeys(selection.include_case_ids) if case_id in files]
    chosen = listed + [
        case_id
        for case_id in sorted(files)
        if case_id not in listed and is_selected(case_id, selection, partial(_tags, case_id, files[case_id][0], read))
    ]
    for case_id in chosen:
        if len(files[case_id]) > 1:
            where = " and ".join(display(path) for path in files[case_id])
            problems.append(
                ConfigProblem(display(files[case_id][1]), 0, 0, f"the case {case_id!r} is used twice: {where}")
            )
    if not chosen and not problems:
        message = "the suite selects no case"
        problems.append(suite.problem(("case_selection",), message, _why_none(selection, files, read)))
    return [(files[case_id][0], read.get(case_id)) for case_id in chosen]


def unknown_cases(
    selection: CaseSelection, document: Document, where: KeyPath, known: Collection[str]
) -> list[ConfigProblem]:
    """Return the ids of a selection, which stands at `where`, that no case has."""
    return [
        document.problem((*where, key, index), f"there is no case {case_id!r}", did_you_mean(case_id, known))
        for key in ("include_case_ids", "exclude_case_ids")
        for index, case_id in enumerate(getattr(selection, key))
        if case_id not in known
    ]


def is_selected(case_id: str, selection: CaseSelection, tags: Callable[[], set[str] | None]) -> bool:
    """Return whether a selection takes a case that it may also list.

    Args:
        tags: returns the case's tags, None when they cannot be read; called only where tags decide.
    """
    if case_id in selection.include_case_ids:
        return True
    if case_id in selection.exclude_case_ids:
        return False
    by_list_only = bool(selection.include_case_ids) and not selection.include_tags
    if by_list_only:
        return False
    if not selection.include_tags and not selection.exclude_tags:
        return True
    found = tags()
    if found is None:
        return True
    included = not selection.include_tags or bool(found & set(selection.include_tags))
    return included and not found & set(selection.exclude_tags)


def may_be_selected(case_id: str, path: Path, selection: CaseSelection) -> bool:
    """Return whether a case whose file is no YAML counts as selected only because its tags, which decide, are not known."""
    by_tags = bool(selection.include_tags or selection.exclude_tags) and case_id not in selection.include_case_ids
    return by_tags and tags_of_broken(path) is None


def _tags(case_id: str, path: Path, read: dict[str, Document | None]) -> set[str] | None:
    """Return a case's tags; None when they cannot be read."""
    try:
        read[case_id] = document = read_document(path)
    except ConfigError:
        return tags_of_broken(path)
    return tags_in(document)


def tags_in(document: Document) -> set[str] | None:
    """Return the tags that a case's file lists; None where what it says is no list of texts."""
    tags: Any = document.data.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return None
    return set(tags)


def _why_none(selection: CaseSelection, files: Mapping[str, list[Path]], read: Mapping[str, Document | None]) -> str:
    if not files:
        return "There is no case below `configs/cases`: a case is a file `test.yaml` in a folder of its name."
    if selection.include_tags:
        tags = sorted({tag for document in read.values() if document is not None for tag in tags_in(document) or ()})
        near = next(filter(None, (did_you_mean(tag, tags) for tag in selection.include_tags)), "")
        why = "All cases are excluded, or have none of the tags " + ", ".join(selection.include_tags) + "."
        return f"{why} {near}".rstrip()
    return "Every case is excluded."


# --- files that are no YAML -------------------------------------------------------------------------------------------


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)
"""Where a key of the document's own mapping begins."""
_KEYS = 100
"""How many of its last keys a break is looked for in: each costs reading the file again."""


def tags_of_broken(path: Path) -> set[str] | None:
    """Return the tags that a case file lists before the key in which it breaks; None where it does not get so far."""
    try:
        text = regular_text(path)
        check_depth(text, display(path))
    except (OSError, ValueError, ConfigError):
        return None
    for end in (len(text), *reversed([key.start() for key in _KEY.finditer(text)][-_KEYS:])):
        with suppress(yaml.YAMLError):
            root = yaml.compose(text[:end], _Loader)
            pairs = root.value if isinstance(root, yaml.MappingNode) else ()
            found = [
                value.value for key, value in pairs if key.value == "tags" and isinstance(value, yaml.SequenceNode)
            ]
            if len(found) == 1 and all(isinstance(one, yaml.ScalarNode) for one in found[0]):
                return {one.value for one in found[0]}
            return None
    return None
