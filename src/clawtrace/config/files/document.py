"""YAML files: where they are, and each as data and as positions: each value knows its line and column (spec: config.md §1)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from clawtrace.errors import ConfigError, ConfigProblem, UsageError

__all__ = [
    "SUFFIXES",
    "Document",
    "KeyPath",
    "check_depth",
    "display",
    "find_project_file",
    "parse_document",
    "problem_at",
    "read_document",
    "read_documents",
    "regular_text",
    "unreadable",
    "with_either_suffix",
]

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the root of a document."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 200
"""Levels of mappings and lists that a file may have."""
_DEEP_LINE = re.compile(rf"^[ \t?:-]{{{MAX_DEPTH},}}", re.MULTILINE)
"""A line that may open as many levels by indentation."""
MAX_NODES = 200_000
"""Values a file may hold once its anchors are expanded; a file beyond it is an attack or a mistake."""

_NO_TEXT: re.Pattern[str] = yaml.reader.Reader.NON_PRINTABLE
"""Characters that YAML has only as escapes."""
_BOOL = "tag:yaml.org,2002:bool"
"""As a key only `true` and `false` are one: `on` and its like are text in YAML 1.2, which editors read."""
_SCALARS = {"timestamp": "date", "int": "number", "float": "number", "bool": "truth value"}
"""What YAML's own names of scalars mean."""
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+")
"""Numbers with an exponent as YAML 1.2 has them; YAML 1.1, which PyYAML reads, asks for a point and a sign."""
_SHOWN = 40
"""Characters of a scalar that a message shows."""


class Document:
    """One YAML file, composed."""

    def __init__(self, file: str, path: Path | None, root: yaml.Node, data: Any) -> None:
        self.file = file
        """As problems name it."""
        self.path = path
        self.data = data
        self._root = root

    def with_data(self, data: Any) -> Document:
        """Return this file with other values at the same places."""
        return Document(self.file, self.path, self._root, data)

    def locate(self, path: KeyPath, *, key: bool = False) -> tuple[int, int]:
        """Return line and column (1-based) of the value at `path`, or of its key.

        The position of the nearest enclosing value is returned where the path does not exist.
        """
        mark = self._root.start_mark
        for depth, node_key, node in self._descend(path):
            wanted = node_key if key and depth == len(path) and node_key is not None else node
            mark = wanted.start_mark
        return mark.line + 1, mark.column + 1

    def existing(self, path: KeyPath) -> KeyPath:
        """Return `path` without the steps that the document does not have (pydantic names the branches of a union)."""
        found: KeyPath = ()
        for step in path:
            if any(depth > len(found) for depth, _, _ in self._descend((*found, step))):
                found = (*found, step)
        return found

    def problem(self, path: KeyPath, message: str, hint: str = "", *, key: bool = False) -> ConfigProblem:
        """Return a problem of the value (or key) at `path`."""
        line, column = self.locate(path, key=key)
        return problem_at(self.file, line, column, message, hint, key=".".join(map(str, path)))

    def as_written(self, path: KeyPath) -> str | None:
        """Return the text of the scalar at `path`, of which YAML may have made something else; None without one."""
        node = next((node for depth, _, node in self._descend(path) if depth == len(path)), None)
        return node.value if isinstance(node, yaml.ScalarNode) else None

    def _descend(self, path: KeyPath) -> Iterator[tuple[int, yaml.Node | None, yaml.Node]]:
        node = self._root
        for depth, step in enumerate(path, start=1):
            found: tuple[yaml.Node | None, yaml.Node] | None = None
            if isinstance(node, yaml.MappingNode):
                for key_node, value_node in node.value:
                    if key_node.value == step:
                        found = (key_node, value_node)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = (None, node.value[step])
            if found is None:
                return
            node = found[1]
            yield depth, found[0], node


def problem_at(file: str, line: int, column: int, message: str, hint: str = "", key: str = "") -> ConfigProblem:
    """Return a problem; a message before a hint ends like a sentence."""
    if hint:
        message, hint = message.rstrip(".") + ".", hint[0].upper() + hint[1:]
    return ConfigProblem(file, line, column, message, key, hint)


def display(path: Path) -> str:
    """Return `path` as a user would write it: relative to the working folder where it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, RuntimeError):  # it is elsewhere, or a link to itself
        return str(path)


def read_document(path: Path, *, mapping: bool = True) -> Document:
    """Read and compose one file.

    Args:
        mapping: whether the root must be a mapping.

    Raises:
        ConfigError: it cannot be read, is no YAML, holds no mapping, or repeats a key; all such problems at once.
    """
    return parse_document(_text_of(path), display(path), path, mapping=mapping)


def read_documents(path: Path) -> Iterator[Document]:
    """Read and compose the documents of one file, mappings that `---` divides.

    Raises:
        ConfigError: as `read_document`; at the first document with a problem.
    """
    text, file = _text_of(path), display(path)
    check_depth(text, file)
    loader = _Loader(text)
    try:
        while loader.check_node():
            yield _built(loader, loader.get_node(), file, path, mapping=True)
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_problem(file, text, error)) from error
    finally:
        loader.dispose()


def _text_of(path: Path) -> str:
    try:
        return regular_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(unreadable(path, error)) from error


def regular_text(path: Path) -> str:
    """Return the text of a file; a pipe or device among a project's files would never end, and is an OSError.

    A shell's `<(…)` and standard input, which lie in ``/dev`` or ``/proc``, are read.
    """
    named = path.parts[1:2] in (("dev",), ("proc",))
    if not named and path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
    return path.read_text(encoding="utf-8-sig")


def unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigProblem:
    """Return why a file could not be read as UTF-8 text: with the position of an invalid byte."""
    file = display(path)
    if isinstance(error, OSError):
        return ConfigProblem(file, 0, 0, f"cannot be read: {error.strerror}")
    before: bytes = error.object[: error.start]
    line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
    return problem_at(file, line, column, f"is not UTF-8 text (byte {error.start})", "Save the file as UTF-8.")


def parse_document(text: str, file: str, path: Path | None = None, *, mapping: bool = True) -> Document:
    """Compose YAML text.

    Raises:
        ConfigError: as `read_document`.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:  # of a variable or an argument that is no UTF-8
        raise ConfigError(ConfigProblem(file, 0, 0, "is not UTF-8 text")) from error
    check_depth(text, file)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(
                problem_at(file, 1, 1, "is empty, expected a mapping, or `{}`", "`clawtrace schema` lists the keys.")
            )
        return _built(loader, root, file, path, mapping=mapping)
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_problem(file, text, error)) from error
    finally:
        loader.dispose()


def _built(loader: Any, root: yaml.Node, file: str, path: Path | None, *, mapping: bool) -> Document:
    builder = _Builder(loader, file)
    data = builder.build(root)
    if mapping and not builder.problems and not isinstance(data, dict):
        builder.add(root, "expected a mapping, found " + _kind(root), _key_of_the_list(data))
    if builder.problems:
        raise ConfigError(builder.problems)
    return Document(file, path, root, data)


def check_depth(text: str, file: str) -> None:
    """Refuse a file that is nested so deeply that composing it would end the process.

    Raises:
        ConfigError: it is.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH and _DEEP_LINE.search(text) is None:
        return
    depth = 0
    with contextlib.suppress(yaml.YAMLError):  # composing the text reports what is wrong with it
        event: Any
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                mark = event.start_mark
                raise ConfigError(
                    problem_at(file, mark.line + 1, mark.column + 1, f"is nested deeper than {MAX_DEPTH} levels")
                )


class _Builder:
    """Turns nodes into data, noting repeated keys, keys that are no text, and anchors that explode."""

    def __init__(self, loader: Any, file: str) -> None:
        self._loader = loader
        self._file = file
        self._left = MAX_NODES
        self._open: set[int] = set()
        self.problems: list[ConfigProblem] = []

    def add(self, node: yaml.Node, message: str, hint: str = "") -> None:
        mark = node.start_mark
        self.problems.append(problem_at(self._file, mark.line + 1, mark.column + 1, message, hint))

    def build(self, node: yaml.Node) -> Any:
        self._left -= 1
        if self._left < 0:
            self._refuse(node, f"the file contains more than {MAX_NODES} values once its anchors are expanded")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            self._refuse(node, "an anchor contains itself")
        self._open.add(id(node))
        built: Any = [self.build(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else None
        if isinstance(node, yaml.MappingNode):
            built = self._mapping(node)
        self._open.discard(id(node))
        return built

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        bare = node.end_mark.index - node.start_mark.index == len(node.value)  # neither quoted nor tagged
        if bare and _NUMBER.fullmatch(node.value):
            number = float(node.value)
            return number if isfinite(number) else node.value
        try:
            made = self._loader.construct_object(node)
            str(made)  # Python writes no number of more than 4300 digits, and a message may have to
            return made
        except (ArithmeticError, AttributeError, LookupError, ValueError):  # PyYAML reads only what makes sense
            kind = _SCALARS.get(node.tag.rpartition(":")[2], "value")
            self.add(
                node, f"{_shown(node)} looks like a {kind} but is not valid", "Put it in quotes where text is meant."
            )
            return None

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            name = key.value
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            is_text = key.tag == "tag:yaml.org,2002:str" or (key.tag == _BOOL and name.lower() not in ("true", "false"))
            if not is_text or not isinstance(name, str):
                shown = name if isinstance(name, str) else _kind(key)
                quoted = (
                    f'Write "{name}": in quotes.'
                    if shown is name
                    else "Put text that begins with `{` or `[` in quotes."
                )
                self.add(key, f"a key must be text, found {shown}", quoted)
            elif name in seen:
                self.add(key, f"the key `{name}` is used twice, first in line {seen[name]}")
            else:
                seen[name] = key.start_mark.line + 1
        if self.problems:
            return {}
        self._loader.flatten_mapping(node)
        return {str(key.value): self.build(value) for key, value in node.value}

    def _refuse(self, node: yaml.Node, message: str) -> None:
        self.add(node, message)
        raise ConfigError(self.problems)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else _shown(node)


def _shown(node: yaml.Node) -> str:
    return repr(node.value if len(node.value) <= _SHOWN else f"{node.value[:_SHOWN]}…")


def _key_of_the_list(data: Any) -> str:
    """Return a hint for a file that begins with the list of its assertions; empty for any other."""
    items = data if isinstance(data, list) else []
    are_assertions = items and all(isinstance(item, dict) and "type" in item for item in items)
    return "Write `assertions:` on a line above the list." if are_assertions else ""


def _yaml_problem(file: str, text: str, error: yaml.YAMLError) -> ConfigProblem:
    character = _NO_TEXT.search(text) if isinstance(error, yaml.reader.ReaderError) else None
    if character is not None:
        line, column = (
            text.count("\n", 0, character.start()) + 1,
            character.start() - text.rfind("\n", 0, character.start()),
        )
        message = f"is not valid YAML: the control character U+{ord(character[0]):04X} is not allowed in a file"
        return problem_at(file, line, column, message, "Remove it; in quotes it can be written as an escape.")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    words = [getattr(error, "context", None), getattr(error, "problem", None)]
    message = "is not valid YAML: " + (", ".join(word for word in words if word) or str(error))
    hint = ""
    if mark is not None and text.startswith("\t", mark.index):
        hint = "Indent with spaces: YAML allows no tabs."
    elif "a quoted scalar" in message and error.context_mark is not None:  # type: ignore[attr-defined]
        mark, hint = error.context_mark, "Close the quote that begins here."  # type: ignore[attr-defined]
    elif "cannot start any token" in message or "mapping values are not allowed" in message:
        hint = "Put text that holds `: `, `{`, `@` or a tab in quotes."
    elif "while parsing a block" in message:
        hint = "Look at the indentation, here and in the lines above: what belongs together begins in one column."
    if mark is None:
        return problem_at(file, 0, 0, message, hint)
    return problem_at(file, mark.line + 1, mark.column + 1, message, hint)


# --- where files are --------------------------------------------------------------------------------------------------


SUFFIXES = (".yaml", ".yml")


def find_project_file(start: Path) -> Path | None:
    """Return the nearest `clawtrace.yaml` (or .yml) at or above `start`; None when there is none.

    Raises:
        UsageError: one folder holds both.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        found = with_either_suffix(folder / "clawtrace")
        if found is not None:
            return found
    return None


def with_either_suffix(stem: Path) -> Path | None:
    """Return the file `stem` with .yaml or .yml; None when there is none.

    A link that leads nowhere, or a folder of that name, counts: its reader reports that, instead of going on without.

    Raises:
        UsageError: both are there.
    """
    present = [path for suffix in SUFFIXES if os.path.lexists(path := stem.with_name(stem.name + suffix))]
    if len(present) > 1:
        raise UsageError(f"both {display(present[0])} and {display(present[1])} exist; remove one of them")
    return present[0] if present else None
