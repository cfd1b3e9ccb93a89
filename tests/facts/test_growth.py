"""The work that a run takes grows with its spans, whatever its shape: counted in lines of Python, so no clock decides."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import conformance
import pytest
import yaml

import clawtrace
from clawtrace.assertions.registry import parse_assertion

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from growth import ASSERTIONS
from run_shapes import SHAPES, written

pytestmark = pytest.mark.full

FEW, MANY, MORE = 64, 256, 1024
"""Spans of the runs of a shape; the last one is asked only of what grows too much between the others."""
MOST = (MANY / FEW) ** 1.3
"""How many times as many lines a function may take of the larger run: the square would be sixteen times, a logarithm adds little."""
SOME = 8 * MANY
"""Lines from which on a function is looked at: of fewer a few more are many."""

PACKAGE = str(Path(clawtrace.__file__).parent)
Work = dict[tuple[str, int], Counter[str]]


class Lines:
    """Counts the lines of clawtrace's modules that are carried out inside of a block; every turn of a loop is one."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        """By function."""

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        threading.settrace(None)
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return None
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}"
        count = self.count

        def line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                count[where] += 1
            return line

        return line


def counted(folder: Path, runs: Sequence[tuple[str, int]]) -> Work:
    """Return the lines by function of each run: it is read, its facts are found, and assertions of many types are asked."""
    found: Work = {}
    for shape, spans in runs:
        path = folder / f"{shape}{spans}.jsonl"
        written(path, SHAPES[shape](spans))
        with Lines() as lines, conformance.loaded([path]) as session:
            session.evaluate(session.run_ids(), [*map(parse_assertion, yaml.safe_load(ASSERTIONS)["assertions"])])
        found[shape, spans] = lines.count
    return found


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    runs = [(shape, spans) for shape in SHAPES for spans in (FEW, MANY)]
    return counted(tmp_path_factory.mktemp("shapes"), runs)


def too_many(few: Counter[str], many: Counter[str]) -> dict[str, str]:
    return {
        where: f"{few[where]:,} lines, {lines:,} for four times the spans"
        for where, lines in many.items()
        if lines > SOME and lines > MOST * few[where]
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_no_function_looks_through_the_run_for_each_span(shape: str, work: Work, tmp_path: Path) -> None:
    """Four times the spans are not sixteen times the lines, in any function: one that is costly for a long run is found here.

    What compares a span with some others at most grows as the square until there are so many: it may do so once.
    """
    many = work[shape, MANY]
    found = too_many(work[shape, FEW], many)
    if found:
        more = counted(tmp_path, [(shape, MORE)])[shape, MORE]
        found = {where: how for where, how in too_many(many, more).items() if where in found}

    assert not found
