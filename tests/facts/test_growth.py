"""The work that a run takes grows with its spans, whatever its shape: counted in lines of Python, so no clock decides."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from clawtrace import facts as room
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.dialects.load import load_dialects
from clawtrace.facts.normaliser import Normaliser
from clawtrace.facts.runs.completeness import Completeness
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.scopes.scopes import Scope, part_of
from clawtrace.receiver.recordings.recording import Grouping, load_recordings
from clawtrace.store.duckdb import DuckStore

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from run_shapes import SHAPES, written

pytestmark = pytest.mark.full

FEW, MANY, MORE = 64, 256, 1024
"""Spans of the runs of a shape; the last one is asked only of what grows too much between the others."""
MOST = (MANY / FEW) ** 1.3
"""How many times as many lines a function may take of the larger run: the square would be sixteen times, a logarithm adds little."""
SOME = 8 * MANY
"""Lines from which on a function is looked at: of fewer a few more are many."""

ROOM = str(Path(room.__file__).parent)
Work = dict[tuple[str, int], Counter[str]]


class Lines:
    """Counts the lines of the engine's modules that are carried out inside of a block; every turn of a loop is one."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        """By function."""

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOM):
            return None
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}"
        count = self.count

        def line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                count[where] += 1
            return line

        return line


def counted(folder: Path, runs: Sequence[tuple[str, int]]) -> Work:
    """Return the lines by function of each run: its facts, its rows, its completeness, a scope."""
    files = [folder / f"{place:03}.jsonl" for place, _ in enumerate(runs)]
    for path, (shape, spans) in zip(files, runs, strict=True):
        written(path, SHAPES[shape](spans))
    normaliser = Normaliser(load_dialects(), None, ())
    found: Work = {}
    store = DuckStore()
    try:
        names = load_recordings(files, Grouping("file"), store).run_ids
        rows = normaliser.rows(store, {store.run_no(name): name for name in names})
        whole = Completeness(store, normaliser.dialects, ())
        spans_of_runs = normaliser._runs(rows)
        for name, key in zip(names, runs, strict=True):
            with Lines() as lines:
                facts = RunFacts(name, next(spans_of_runs))
                state = whole.state(name, facts)
                facts.sum_up(state.unfinished)
                for of_relation in facts.rows(normaliser.shells).values():
                    list(of_relation)
                facts.placed()
                whole.row(name, facts, state)
                part_of(facts, Scope(Matcher("helper"), "last"))
            found[key] = lines.count
    finally:
        store.close()
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
