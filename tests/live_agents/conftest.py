"""The recipes' tests install their programs with `agents_install.py`, which is also a separate program."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
