"""Which cases a suite selects, before any of them is validated (spec: config.md §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from clawtrace.config.base import CaseSelection
from clawtrace.config.files.document import Document, display, read_document, regular_text
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["is_selected", "may_be_selected", "select_cases", "tags_in"]


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
    for key in ("include_case_ids", "exclude_case_ids"):
        for index, case_id in enumerate(getattr(selection, key)):
            if case_id not in files:
                message = f"there is no case {case_id!r}"
                hint = did_you_mean(case_id, files)
                problems.append(suite.problem(("case_selection", key, index), message, hint))
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


def tags_of_broken(path: Path) -> set[str] | None:
    """Return the tags that a case file lists before the place where it breaks; None where it does not get so far."""
    try:
        events = yaml.parse(regular_text(path), _Loader)
        found = [_texts(value) for key, value in _entries(iter(events)) if key == "tags"]
    except (OSError, ValueError):
        return None
    if len(found) != 1 or found[0] is None:
        return None
    return set(found[0])


def _entries(events: Iterator[Any]) -> Iterator[tuple[str | None, list[Any]]]:
    """Yield the keys of a document's mapping, each with the events of its value, up to where the YAML breaks."""
    key: list[Any] | None = None
    try:
        while not isinstance(next(events), yaml.MappingStartEvent):
            pass
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            part = [event, *_inside(event, events)]
            if key is None:
                key = part
                continue
            yield (key[0].value if isinstance(key[0], yaml.ScalarEvent) else None), part
            key = None
    except (yaml.YAMLError, StopIteration):
        return


def _inside(event: Any, events: Iterator[Any]) -> Iterator[Any]:
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        inner = next(events)
        depth += isinstance(inner, yaml.CollectionStartEvent) - isinstance(inner, yaml.CollectionEndEvent)
        yield inner


def _texts(value: list[Any]) -> list[str] | None:
    """Return the texts of a list; None for anything else."""
    if not isinstance(value[0], yaml.SequenceStartEvent):
        return None
    items = value[1:-1]
    return [item.value for item in items] if all(isinstance(item, yaml.ScalarEvent) for item in items) else None
