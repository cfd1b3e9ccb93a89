"""The modules of docs/, which write generated files and are no part of the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

DOCS = str(Path(__file__).parents[1] / "docs")


def docs_module(name: str) -> ModuleType:
    """Return a module of docs/; its classes are the same for everyone who asks."""
    if DOCS not in sys.path:
        sys.path.append(DOCS)
    return import_module(name)
