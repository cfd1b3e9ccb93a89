"""Which tests reach which lines, and which of them a mutant fails: the half of mutants.py that runs tests."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mutating
from mutating import Mutant

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "clawtrace"
OUTPUTS = ROOT / "outputs" / "mutants"
FAILED = OUTPUTS / "failed.txt"
"""Names of tests that fail without any mutant."""
TESTS = tuple(f"tests/{room}" for room in ("facts", "assertions", "verdicts", "store", "dialects"))
LEFT_OUT = (
    "facts/test_growth.py", "facts/test_at_once.py", "facts/test_explain_spans.py", "facts/logs/test_half_recordings.py",
    "assertions/test_reruns.py", "store/test_export.py",
)  # fmt: skip
"""Tests that set a trace function, after which coverage would see nothing, or that only repeat on recordings what others guard."""

MOST = 500
"""Tests that a mutant meets at most."""
TEST_SECONDS = 180
"""After which a test counts as failed."""
AT_IMPORT = -1
"""Stands for a test where a line runs as the tests are collected."""

OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not needs", f"--timeout={TEST_SECONDS}"),
    *(f"--basetemp={OUTPUTS / 'tmp'}", *(f"--ignore=tests/{file}" for file in LEFT_OUT)),
)


def hash_of(*files: Path) -> str:
    """Return a short hash of what some files hold."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def texts() -> dict[str, str]:
    """Return the hash of each module and of each file of tests."""
    return {
        file.relative_to(ROOT).as_posix(): hash_of(file)
        for top in (PACKAGE, ROOT / "tests")
        for file in top.rglob("*.py")
    }


class Reached(NamedTuple):
    """Which tests reach which lines, from one run with coverage."""

    paths: Sequence[str]
    """Folders and files of tests."""
    texts: Mapping[str, str]
    """Hashes of all files as they were."""
    tests: Mapping[str, float]
    """Seconds, by test."""
    full: bool
    """Whether the tests of the second tier are among them."""
    lines: Mapping[str, Mapping[str, list[int]]]
    """Numbers of tests, or `AT_IMPORT`, by line, by file below the package."""

    def by(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach the changed lines.

        All tests of the module, where it has changed since the coverage was measured or the line only runs at import.
        """
        ids, numbers = list(self.tests), self._numbers(mutant)
        if numbers == {AT_IMPORT} or self._has_changed(mutant):
            numbers = {number for of in self.lines.get(mutant.file, {}).values() for number in of}
        return [ids[number] for number in sorted(numbers - {AT_IMPORT})]

    def at_import(self, mutant: Mutant) -> bool:
        """Return whether a changed line runs before any test does."""
        return self._has_changed(mutant) or AT_IMPORT in self._numbers(mutant)

    def new_tests(self) -> set[str]:
        """Return the files of tests that were written or changed since."""
        now = texts()
        return {file for file in now if file.startswith(tuple(self.paths)) and now[file] != self.texts.get(file)}

    def _has_changed(self, mutant: Mutant) -> bool:
        return self.texts.get(f"src/clawtrace/{mutant.file}") != hash_of(PACKAGE / mutant.file)

    def _numbers(self, mutant: Mutant) -> set[int]:
        lines = self.lines.get(mutant.file, {})
        return {number for line in mutant.lines for number in lines.get(str(line), ())}


def reached(tests: Sequence[str], full: bool, again: bool) -> Reached:
    """Return what a run of some folders or files of tests reaches: an earlier one, unless it is to be measured again."""
    kept = OUTPUTS / f"reached-{hashlib.sha256(f'{tests} {full}'.encode()).hexdigest()[:8]}.json"
    if again or not kept.exists():
        OUTPUTS.mkdir(parents=True, exist_ok=True)
        code = mutating.in_child(lambda: _measure(tests, full, kept), 3600)
        if code != 0:
            raise SystemExit(f"tests fail without any mutant (pytest's exit code {code}); {FAILED} names them")
    return Reached(**json.loads(kept.read_text()))


def _measure(paths: Sequence[str], full: bool, kept: Path) -> int:
    """Run tests with coverage; in a child, so that this process loads none of the package."""
    import coverage

    before = texts()
    measured = coverage.Coverage(data_file=None, source=[str(PACKAGE)], config_file=False)
    plugin = _Measuring(measured)
    measured.start()
    code = _pytest(plugin, paths, full)
    measured.stop()
    if code != 0:
        FAILED.write_text("\n".join(plugin.failed))
        return code
    data, numbers = measured.get_data(), {test: number for number, test in enumerate(plugin.seconds)}

    def tests_of(context: str) -> list[int]:
        if context in numbers or not context:
            return [numbers.get(context, AT_IMPORT)]
        return [number for test, number in numbers.items() if test.startswith(f"{context}::")]

    lines = {
        Path(file).relative_to(PACKAGE).as_posix(): {
            line: sorted({number for context in contexts for number in tests_of(context)})
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    kept.write_text(
        json.dumps({"paths": paths, "texts": before, "tests": plugin.seconds, "full": full, "lines": lines})
    )
    return 0


def _pytest(plugin: Any, paths: Sequence[str], full: bool) -> int:
    """Run tests in this process without a word; return pytest's exit code."""
    import pytest

    _silence()
    return int(pytest.main([*OPTIONS, *_tier(full), *paths], plugins=[plugin]))


def _tier(full: bool) -> tuple[str, ...]:
    return ("--full",) if full else ()


def _silence() -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


class _Plugin:
    def pytest_collection_modifyitems(self) -> None:
        """Let property tests try the same few examples each time."""
        from hypothesis import settings

        settings.load_profile("first-tier")


class _Measuring(_Plugin):
    """Notes the time and the lines of each test."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = Counter()
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """From here on, lines belong to this test."""
        self.coverage.switch_context(nodeid)

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """What a fixture of a module or class does, each of its tests rests on."""
        shared = fixturedef.scope in ("module", "class")
        self.coverage.switch_context(request.node.nodeid if shared else request._pyfuncitem.nodeid)

    def pytest_runtest_call(self, item: Any) -> None:
        """The test itself again."""
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of a phase, and note a failure."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


Report = Callable[[Mutant, str | None], None]
"""What is called with the test that failed of a mutant (a dash: all, none could run), or with None where none did."""


class Trials:
    """Tries mutants, one at a time.

    The tests are collected once, and each mutant gets a fork of this process in which the code of the changed function is
    replaced. A mutant that changes what runs at import is loaded in a fresh process instead, before the tests are collected.
    """

    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._slowest: dict[str, float] = {}
        """Seconds of the slowest test, by file: it sets up what the others of its module use."""
        for test, seconds in reached.tests.items():
            file = test.split("::")[0]
            self._slowest[file] = max(seconds, self._slowest.get(file, 0.0))
        self._new = reached.new_tests()
        self._killers: dict[str, Counter[str]] = defaultdict(Counter)
        """How often a test failed, by module."""

    def run(self, mutants: Sequence[Mutant], tell: Report) -> None:
        """Try mutants; some test reaches each of them."""
        mutating.load_libraries()
        late = []
        for mutant in mutants:
            if self._reached.at_import(mutant):
                tell(mutant, self._afresh(mutant))
            else:
                late.append(mutant)
        if late:
            self._in_forks(late, tell)

    def known(self, mutant: Mutant, killer: str) -> None:
        """Take in which test failed of a mutant in an earlier run."""
        self._killers[mutant.file][killer] += 1

    def _in_order(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant: those that found others of its module, those of its room, those of quick files first."""
        killers, seconds = self._killers[mutant.file], self._reached.tests
        room = f"tests/{Path(mutant.file).parent.as_posix()}/"
        tests = self._reached.by(mutant)

        def place(test: str) -> tuple[int, bool, float, float]:
            return -killers[test], not test.startswith(room), self._slowest[test.split("::")[0]], seconds[test]

        return sorted(tests, key=place)[:MOST]

    def _limit(self, tests: Iterable[str]) -> float:
        return 300 + 10 * sum(self._reached.tests[test] for test in tests)

    def _afresh(self, mutant: Mutant) -> str | None:
        tests = self._in_order(mutant)

        def run() -> int:
            mutating.put_in_place(mutant)
            return _pytest(_Wanted(tests), sorted({test.split("::")[0] for test in tests}), self._reached.full)

        return self._killed_by(mutant, tests, mutating.in_child(run, self._limit(tests)))

    def _in_forks(self, mutants: Sequence[Mutant], tell: Report) -> None:
        import pytest

        def each(session: Any) -> None:
            items = {item.nodeid: item for item in session.items}
            new = {test for test in items if test.split("::")[0] in self._new}
            for mutant in mutants:
                tests = self._in_order(mutant)
                wanted = [
                    *(items[test] for test in tests if test in items),
                    *(items[test] for test in sorted(new - {*tests})),
                ]
                code = mutating.in_child(lambda of=wanted, mutant=mutant: _fork(mutant, of), self._limit(tests))
                tell(mutant, self._killed_by(mutant, tests, code))

        out = os.dup(1), os.dup(2)
        for end in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), end)
        code = pytest.main([*OPTIONS, *_tier(self._reached.full), *self._reached.paths], plugins=[_Loop(each)])
        for kept, end in zip(out, (1, 2), strict=True):
            os.dup2(kept, end)
        if code:
            raise SystemExit(f"the trials broke off (pytest's exit code {code})")

    def _killed_by(self, mutant: Mutant, tests: Sequence[str], code: int) -> str | None:
        if code == 0:
            return None
        failed = OUTPUTS / "failed"
        killer = failed.read_text() if code == 1 and failed.exists() else "-"
        failed.unlink(missing_ok=True)
        if killer in tests:
            self.known(mutant, killer)
        return killer


class _Failing(_Plugin):
    """Ends the process when a test fails."""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Leave word of the test."""
        if report.failed:
            (OUTPUTS / "failed").write_text(report.nodeid)
            os._exit(1)


class _Wanted(_Failing):
    """Keeps the tests that are wanted, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.tests = {test: number for number, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:  # type: ignore[override]
        """Keep what is wanted."""
        super().pytest_collection_modifyitems()
        items[:] = sorted((i for i in items if i.nodeid in self.tests), key=lambda item: self.tests[item.nodeid])


class _Loop(_Plugin):
    """Calls a function with all collected tests in place of running them."""

    def __init__(self, each: Callable[[Any], None]) -> None:
        self.each = each

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run nothing else."""
        self.each(session)
        return True


def _fork(mutant: Mutant, items: Sequence[Any]) -> int:
    """Change the code in this process, and run tests until one fails."""
    mutating.patch(mutant, PACKAGE)
    if items:
        items[0].config.pluginmanager.register(_Failing())
    for item, following in _pairs(items):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return 0


def _pairs(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(items, [*items[1:], None], strict=True)
