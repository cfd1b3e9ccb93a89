"""How much of the code the tests hold: `make mutants`, or ``python benchmarks/mutants.py facts/calls --sample 40``.

A mutant is the code with one small change: another comparison, `or` in place of `and`, a number plus one, a call left out, one
operator of a SQL text. It is killed when a test fails or does not end. The tests of the same packages run once with coverage, so
each mutant meets only the tests that reach its line. A survivor that is known to be equivalent, or not worth a test, stands with
its reason in mutants.yaml; any other makes the command fail.

What is not changed: annotations, docstrings, messages of exceptions, and ``.sql`` files. Tests that run the program in another
process do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import mutating
import yaml
from mutating import Mutant

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "clawtrace"
KNOWN = Path(__file__).parent / "mutants.yaml"
REACHED = ROOT / "outputs" / "mutants-reached.json"
ROOMS = ("facts", "assertions", "verdicts", "store")
"""What is mutated by default, and the folders of tests that run."""

TRACING = ("tests/facts/test_growth.py",)
"""Tests that set a trace function: coverage would see nothing after them."""


class Reached(NamedTuple):
    """Which tests reach which lines, from one run with coverage."""

    tests: Mapping[str, float]
    """Seconds, by test."""
    lines: Mapping[str, Mapping[str, list[int]]]
    """Numbers of tests, by line, by file below the package."""

    def by(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach the changed lines, the quickest first; of a line that runs at import, all of the module."""
        ids, lines = list(self.tests), self.lines.get(mutant.file, {})
        met = [lines[str(line)] for line in mutant.lines if str(line) in lines]
        numbers = {number for of in met for number in of}
        if met and not numbers:
            numbers = {number for of in lines.values() for number in of}
        return sorted((ids[number] for number in numbers), key=self.tests.__getitem__)


class Tests:
    """A pytest plugin: keeps the tests that are wanted, in their order, and notes their time and coverage."""

    def __init__(self, wanted: list[str] | None = None, coverage: Any = None) -> None:
        self.wanted, self.coverage = wanted, coverage
        self.seconds: dict[str, float] = Counter()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep what is wanted."""
        if self.wanted is not None:
            order = {test: number for number, test in enumerate(self.wanted)}
            items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """From here on, lines belong to this test."""
        if self.coverage is not None:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of a phase."""
        self.seconds[report.nodeid] += report.duration


def run_tests(plugin: Tests, paths: list[str], *options: str) -> int:
    """Run tests in this process without a word; return pytest's exit code."""
    import pytest

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, *paths]
    return int(pytest.main(arguments, plugins=[plugin]))


def reached(rooms: list[str]) -> Reached:
    """Run all tests of the rooms once with coverage; in a child, so that this process loads none of the package."""
    import coverage

    def record() -> int:
        measured = coverage.Coverage(data_file=None, source=[str(PACKAGE)], config_file=False)
        plugin = Tests(coverage=measured)
        measured.start()
        code = run_tests(plugin, [f"tests/{room}" for room in rooms], *(f"--ignore={path}" for path in TRACING))
        measured.stop()
        data, ids = measured.get_data(), {test: number for number, test in enumerate(plugin.seconds)}
        lines = {
            Path(file).relative_to(PACKAGE).as_posix(): {
                line: [ids[test] for test in tests if test in ids]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        REACHED.parent.mkdir(exist_ok=True)
        REACHED.write_text(json.dumps({"tests": plugin.seconds, "lines": lines}))
        return code

    code = mutating.in_child(record, 3600)
    if code != 0:
        raise SystemExit(f"the tests fail without any mutant (pytest's exit code {code})")
    return Reached(**json.loads(REACHED.read_text()))


def survives(mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Return whether no test fails; a mutant that hangs or cannot be loaded is killed."""

    def run() -> int:
        mutating.put_in_place(mutant)
        return run_tests(Tests(wanted=tests), sorted({test.split("::")[0] for test in tests}), "-x")

    return mutating.in_child(run, 30 + 10 * seconds) == 0


def chosen(paths: list[str], sample: int | None, seed: int) -> list[Mutant]:
    """Return the mutants of the modules below `paths`, or a sample of them; the same for the same seed."""
    files = sorted({file for path in paths for file in _modules(path)})
    found = [mutant for file in files for mutant in mutating.mutants(PACKAGE, file)]
    return found if sample is None else sorted(random.Random(seed).sample(found, min(sample, len(found))))


def _modules(path: str) -> Iterator[str]:
    place = PACKAGE / path
    for file in [place] if place.is_file() else place.rglob("*.py"):
        yield file.relative_to(PACKAGE).as_posix()


def main() -> int:
    """Try each mutant, and print the score and the survivors; return 1 where one of these has no reason."""
    parser = argparse.ArgumentParser(description="Mutation score of facts, assertions, verdicts and store.")
    parser.add_argument("paths", nargs="*", default=list(ROOMS), help="packages or modules below src/clawtrace")
    parser.add_argument("--sample", type=int, help="try so many, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the sample (default: 1)")
    parser.add_argument("--reached", action="store_true", help="use the coverage of the last time")
    options = parser.parse_args()
    os.chdir(ROOT)
    rooms = sorted({path.split("/")[0] for path in options.paths})
    tests = Reached(**json.loads(REACHED.read_text())) if options.reached else reached(rooms)
    mutating.load_libraries()
    reasons: dict[str, str] = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or {}
    counts, open_ones = Counter[str](), []
    for mutant in chosen(options.paths, options.sample, options.seed):
        reaching = tests.by(mutant)
        if not reaching:
            what = "not reached"
        elif survives(mutant, reaching, sum(tests.tests[test] for test in reaching)):
            what = "survived"
        else:
            what = "killed"
        known = what != "killed" and mutant.id in reasons
        counts["with a reason" if known else what] += 1
        if what != "killed" and not known:
            open_ones.append(mutant)
            sys.stdout.write(f"{what}: {mutant.id}  (line {mutant.line})\n")
            sys.stdout.flush()
    tried = sum(counts.values())
    score = 100 * counts["killed"] / max(1, tried - counts["with a reason"])
    sys.stdout.write(
        f"{tried} mutants: {', '.join(f'{n} {what}' for what, n in counts.items())}; score {score:.1f} %\n"
    )
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
