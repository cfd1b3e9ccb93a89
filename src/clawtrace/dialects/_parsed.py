"""The built-in dialect files as YAML gives them, kept as JSON: reading some twenty YAML files costs 15 ms of each start.

``parsed.json`` is written by ``docs/generate.py``. It is believed for a file only where its digest is that of the file
at hand: a file that was changed since is read again, so an old ``parsed.json`` makes a start slower, never wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from clawtrace.support.yaml_size import check_size

__all__ = ["read_foreign_yaml", "read_yaml", "remembered", "rendered"]

_FILE = Path(__file__).parent / "parsed.json"
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(data: bytes) -> Any:
    """Return what a YAML file says.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    return yaml.load(data, Loader=_LOADER)


def read_foreign_yaml(data: bytes) -> Any:
    """Return what a YAML file of somebody else's says.

    Raises:
        yaml.YAMLError: it is no YAML.
        ValueError: it is nested too deeply, or stands for too much.
    """
    check_size(yaml.parse(data, Loader=_LOADER))
    return read_yaml(data)


def remembered() -> dict[str, dict[str, Any]]:
    """Return the words of the built-in files by the digests of their bytes; nothing where ``parsed.json`` is missing."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(_FILE.read_bytes())
    except FileNotFoundError:
        return {}
    return found


def rendered(files: Iterable[Path]) -> str:
    """Return the text of ``parsed.json`` for these dialect files, one line each.

    Raises:
        ValueError: a file says something that JSON cannot hold as it is.
    """
    lines = []
    for path in files:
        data = path.read_bytes()
        words = read_yaml(data)
        text = json.dumps(words, ensure_ascii=False)
        if json.loads(text) != words:
            raise ValueError(
                f"{path.name} holds a key or value that is neither text, number, true, false, list nor mapping"
            )
        lines.append(f'"{hashlib.sha256(data).hexdigest()}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"
