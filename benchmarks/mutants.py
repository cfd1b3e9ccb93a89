"""How much of the code the tests hold: `make mutants`, or ``python benchmarks/mutants.py facts/calls --sample 40``.

A mutant is the code with one small change: another comparison, `or` in place of `and`, a number plus one, a call left out, one
operator of a SQL text. It is killed when a test fails or does not end. The tests run once with coverage, so each mutant meets only
the tests that reach its line (the 500 likeliest, of both tiers), until one fails. A survivor that is known to be equivalent, or not
worth a test, stands with its reason in mutants.yaml; any other makes the command fail.

Results are kept in ``outputs/mutants``: a run that was broken off goes on where it stopped, and what was killed is not tried again
while its module stays as it is. What survived is tried again when a test has changed.

What is not changed: annotations, docstrings, messages of exceptions and other texts for people, keys of a bisection, and ``.sql``
files. Tests that run the program in another
process do not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import mutating
import yaml
from mutant_trials import OUTPUTS, PACKAGE, ROOT, TESTS, Trials, hash_of, reached, texts
from mutating import Mutant

KNOWN = Path(__file__).parent / "mutants.yaml"
ROOMS = ("facts", "assertions", "verdicts", "store")
"""What is mutated by default."""


class Results:
    """What became of mutants, also in earlier runs: the test that killed it, or None for a survivor."""

    def __init__(self) -> None:
        self._file = OUTPUTS / "results.jsonl"
        tests = {file: text for file, text in texts().items() if file.startswith("tests/")}
        self._tests = hashlib.sha256(json.dumps(tests, sort_keys=True).encode()).hexdigest()[:16]
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self._known = {entry["id"]: entry for entry in map(json.loads, lines)}

    def add(self, mutant: Mutant, killer: str | None) -> None:
        """Keep one, at once."""
        entry = {"id": mutant.id, "module": _text(mutant), "tests": self._tests, "killer": killer}
        self._known[mutant.id] = entry
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def stands(self, mutant: Mutant) -> bool:
        """Return whether what became of a mutant is known, and nothing has changed since that could change it."""
        entry = self._known.get(mutant.id)
        return (
            entry is not None
            and entry["module"] == _text(mutant)
            and (entry["killer"] is not None or entry["tests"] == self._tests)
        )

    def killer(self, mutant: Mutant) -> str | None:
        """Return the test that killed it."""
        killer: str | None = self._known[mutant.id]["killer"]
        return killer


def _text(mutant: Mutant) -> str:
    return hash_of(PACKAGE / mutant.file)


def chosen(paths: list[str], sample: int | None, seed: int) -> list[Mutant]:
    """Return the mutants of the modules below `paths`, or a sample of them that hardly changes while the code does."""
    files = sorted({file for path in paths for file in _modules(path)})
    found = [mutant for file in files for mutant in mutating.mutants(PACKAGE, file)]
    if sample is None:
        return found
    drawn = sorted(found, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.id}".encode()).digest())[:sample]
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.line))


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
    parser.add_argument(
        "--tests", nargs="+", default=list(TESTS), help="folders or files of tests (default: of these packages)"
    )
    parser.add_argument("--first-tier", action="store_true", help="leave out the tests of the second tier")
    parser.add_argument("--measure", action="store_true", help="measure again which tests reach which lines")
    options = parser.parse_args()
    os.chdir(ROOT)
    tests, results, out = (
        reached(options.tests, not options.first_tier, options.measure),
        Results(),
        os.fdopen(os.dup(1), "w", buffering=1),
    )
    mutants, trials = chosen(options.paths, options.sample, options.seed), Trials(tests)
    for mutant in mutants:
        if results.stands(mutant) and (killer := results.killer(mutant)) is not None:
            trials.known(mutant, killer)

    def tell(mutant: Mutant, killer: str | None) -> None:
        results.add(mutant, killer)
        out.write("." if killer is not None else f"\nsurvived: {mutant.id}  (line {mutant.line})\n")

    trials.run([mutant for mutant in mutants if tests.by(mutant) and not results.stands(mutant)], tell)
    reasons: dict[str, str] = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or {}
    counts, unexplained = Counter[str](), 0
    out.write("\n")
    for mutant in mutants:
        what = "not reached" if not tests.by(mutant) else "survived" if results.killer(mutant) is None else "killed"
        if what != "killed" and mutant.id in reasons:
            what = "with a reason"
        elif what != "killed":
            unexplained += 1
            out.write(f"{what}: {mutant.id}  (line {mutant.line})\n")
        counts[what] += 1
    score = 100 * counts["killed"] / max(1, len(mutants) - counts["with a reason"])
    out.write(
        f"{len(mutants)} mutants: {', '.join(f'{n} {what}' for what, n in counts.items())}; score {score:.1f} %\n"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
