"""YAML files, parsed in C where PyYAML was built with it."""

from __future__ import annotations

from typing import Any

import yaml

from clawtrace.support.yaml_size import check_size

__all__ = ["read_foreign_yaml", "read_yaml"]

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(data: bytes | str) -> Any:
    """Return what a YAML file says.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    return yaml.load(data, Loader=_LOADER)


def read_foreign_yaml(data: bytes | str) -> Any:
    """Return what a third party's YAML file says.

    Raises:
        yaml.YAMLError: it is no YAML.
        ValueError: it is nested too deeply, or expands to too much.
    """
    check_size(yaml.parse(data, Loader=_LOADER))
    return read_yaml(data)
