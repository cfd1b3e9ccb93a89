"""Assertions that are appended to the text of a file: what stands in it stays as it was written, with its comments."""

from __future__ import annotations

from typing import Any

import yaml

from clawtrace.errors import UsageError

__all__ = ["with_assertions"]

_KEY = "assertions"


def with_assertions(text: str, added: str, file: str) -> str:
    """Return the text of a case file, or a file of assertions, with more assertions at the end of its list.

    Args:
        added: YAML, a list of assertions; `assertions:` may stand above it.
        file: what the file is called in messages.

    Raises:
        UsageError: `added` is no such list, or the file's list is not written one item a line.
    """
    new, new_list = _parsed(added, "the assertions")
    new_list = _list_of(new_list) or new_list
    items = new.get(_KEY) if isinstance(new, dict) else new
    if not isinstance(new_list, yaml.SequenceNode) or new_list.flow_style or not items:
        raise UsageError("The assertions are not a YAML list, one `- type: …` an item.")
    old, root = _parsed(text, repr(file))
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise UsageError(f"{file!r} is no case file and no file of assertions.")
    lines = text.splitlines()
    there = _list_of(root)
    if there is None:
        lines.append(f"{_KEY}:")
        end, indent = len(lines), "  "
    elif isinstance(there, yaml.SequenceNode) and not there.flow_style:
        end, indent = _end(lines, there), " " * there.start_mark.column
    else:
        raise UsageError(
            f"{file}:{there.start_mark.line + 1}: `assertions` is not a list with one item a line; write it so first."
        )
    own = added.splitlines()
    first = new_list.start_mark.line
    block = [line[new_list.start_mark.column :] for line in own[first : _end(own, new_list)]]
    lines[end:end] = [f"{indent}{line}" if line else "" for line in block]
    whole = "\n".join(lines) + "\n"
    expected = {**old, _KEY: [*(old.get(_KEY) or []), *items]}
    if _parsed(whole, repr(file))[0] != expected:
        raise UsageError(f"Nothing was written: the end of the list in {file!r} was not found. Append them by hand.")
    return whole


def _parsed(text: str, what: str) -> tuple[Any, yaml.Node | None]:
    try:
        return yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"YAML of {what} is not valid: {' '.join(str(error).split())}") from error


def _list_of(root: yaml.Node | None) -> yaml.Node | None:
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    return next((value for key, value in pairs if key.value == _KEY), None)


def _end(lines: list[str], block: yaml.SequenceNode) -> int:
    """Return the number of the line after the last item; what follows it are comments and empty lines."""
    end: int = block.end_mark.line + (block.end_mark.column > 0)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end
