"""The work that a run takes grows with its spans, whatever its shape: counted in lines of Python, so no clock decides."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from clawtrace import engine
from clawtrace.assertions.matchers import Matcher
from clawtrace.dialects import load_dialects
from clawtrace.engine.completeness import Completeness
from clawtrace.engine.normaliser import Normaliser
from clawtrace.engine.run_facts import RunFacts
from clawtrace.engine.scopes import Scope, part_of
from clawtrace.receiver.recording import Grouping, load_recordings
from clawtrace.store.duckdb import DuckStore

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from run_shapes import SHAPES, written

FEW, MANY = 64, 256
"""Spans of the two runs of each shape."""
MOST = (MANY / FEW) ** 1.3
"""How many times as many lines a function may take of the larger run: the square would be sixteen times, a logarithm adds little."""
SOME = 8 * MANY
"""Lines from which on a function is looked at: of fewer a few more are many."""

ROOM = str(Path(engine.__file__).parent)
Work = dict[tuple[str, int], Counter[str]]


class Lines:
    """Counts the lines of the engine's modules that are carried out inside of a block; every turn of a loop is one."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        """By function."""

    def __enter__(self) -> Lines:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

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


RUNS = [(shape, spans) for shape in SHAPES for spans in (FEW, MANY)]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Lines by function, for each shape and number of spans: the run's facts, its rows, its completeness, a scope."""
    folder = tmp_path_factory.mktemp("shapes")
    files = [folder / f"{place:03}.jsonl" for place, _ in enumerate(RUNS)]
    for path, (shape, spans) in zip(files, RUNS, strict=True):
        written(path, SHAPES[shape](spans))
    dialects = load_dialects()
    normaliser = Normaliser(dialects, None, ())
    counted: Work = {}
    store = DuckStore()
    try:
        names = load_recordings(files, Grouping.run_per_file(), store).run_ids
        rows = normaliser.rows(store, {store.run_no(name): name for name in names})
        whole = Completeness(store, normaliser.dialects, ())
        spans_of_runs = normaliser._runs(rows)
        for name, key in zip(names, RUNS, strict=True):
            with Lines() as lines:
                facts = RunFacts(name, next(spans_of_runs))
                facts.sum_up(normaliser.records)
                for of_relation in facts.rows(normaliser.shells).values():
                    list(of_relation)
                facts.placed()
                whole.row(name, facts)
                part_of(facts, Scope(Matcher("helper"), "last"))
            counted[key] = lines.count
    finally:
        store.close()
    return counted


@pytest.mark.parametrize("shape", SHAPES)
def test_no_function_looks_through_the_run_for_each_span(shape: str, work: Work) -> None:
    """Four times the spans are not sixteen times the lines, in any function: one that is costly for a long run is found here."""
    few, many = work[shape, FEW], work[shape, MANY]
    found = {
        where: f"{few[where]:,} lines for {FEW} spans, {lines:,} for {MANY}"
        for where, lines in many.items()
        if lines > SOME and lines > MOST * few[where]
    }

    assert not found
