"""Fixtures of the tests of verdicts: traces are built as in the tests of facts, results as in those of reports."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "facts"))
sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from lab_fixtures import counting as counting
from lab_fixtures import lab as lab
from lab_fixtures import stores_are_taken_back as stores_are_taken_back
from made_results import campaign as campaign
from made_results import run as run
from made_results import verdict as verdict
