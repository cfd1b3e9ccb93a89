"""Fixtures of the tests of facts."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lab_fixtures import counting as counting
from lab_fixtures import lab as lab
from lab_fixtures import stores_are_taken_back as stores_are_taken_back
