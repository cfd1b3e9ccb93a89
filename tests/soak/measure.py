"""The measure: facts true, unknown and wrong, verdicts right, undecided and contrary, of all recordings and of random programs.

    python tests/soak/measure.py [FOLDER…] [--programs FROM-TO] [--of CHECKOUT] [--out FILE] [--against FILE] [--cases]

Asked of each recording with a truth is what the soak claims: assertions derived from the truth, and their twins that are false.
`--of` measures the code of another checkout, as one before a change; `--out` keeps its answers, and `--against` prints both
tables, and each verdict that differs, by type and kind of change. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_OF = Path(sys.argv[sys.argv.index("--of") + 1]) if "--of" in sys.argv[:-1] else ROOT
# What an installed clawtrace would be: the code to be measured, and what compares its facts with a truth.
sys.path[:0] = [str(_OF / "src"), str(_OF / "tests" / "facts")]

import conformance  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "facts"))  # the programs are the same ones, whichever code reads them
from foreign import ForeignProgram  # noqa: E402
from handwritten import Program  # noqa: E402
from recorded import recorded_claims  # noqa: E402

from clawtrace.assertions.registry import parse_assertion  # noqa: E402

FOLDERS = (ROOT / "tests" / "recordings", ROOT / "../shared/corpus", ROOT / "../shared/strangers")
TOGETHER = 30
"""How many recordings are judged at once."""
FACT_STATES, VERDICT_STATES = ("true", "unknown", "wrong"), ("right", "undecided", "contrary")


class Answer(NamedTuple):
    """A fact or a verdict, and how it compares with the truth."""

    run: str
    asked: str
    """Name of the fact, or the assertion as JSON."""
    state: str
    said: str
    """What was found, or the verdict's sentence."""
    holds: bool | None = None
    """Of a verdict: whether the assertion is true."""

    @property
    def client(self) -> str:
        """Client of the run."""
        return self.run.split("/")[0]

    @property
    def kind(self) -> str:
        """The fact, or the assertion's type."""
        return self.asked if self.holds is None else str(json.loads(self.asked)["type"])

    @property
    def reason(self) -> str:
        """Why it is undecided: the sentence behind what was asked, without what is of this run alone."""
        short = re.sub(r"`[^`]*`|\"[^\"]*\"|\{[^}]*\}|\[[^\]]*\]", "…", self.said)
        short = re.sub(r"\d[\d,.]*\d|\d", "N", short).strip()
        return (short.partition(". ")[2] or short)[:110]


def measured(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield each fact and each verdict of recordings."""
    # Recordings of one scenario have many claims in common, which are asked of all of them at once.
    paths = sorted(paths, key=lambda path: (path.name, path.parent.name))
    with conformance.loaded(paths) as session:
        runs = conformance.inspected(session)
        for path in paths:
            for fact, (state, found, truth) in conformance.compare(path, runs[conformance.name(path)]).items():
                if isinstance(truth, list) and found in truth:  # all that may be called a failure
                    state = "true"
                if fact == "complete" and truth and not found:  # something was lost of it
                    state = "unknown"
                yield Answer(conformance.name(path), fact, state, f"found {found!r}, true is {truth!r}")
        for start in range(0, len(paths), TOGETHER):
            yield from _judged(session, paths[start : start + TOGETHER])
            print(f"{start + TOGETHER} of {len(paths)}", file=sys.stderr)


def _judged(session: Any, paths: Sequence[Path]) -> Iterator[Answer]:
    asked = {
        conformance.name(path): {json.dumps(one, sort_keys=True): holds for holds, one in recorded_claims(path)}
        for path in paths
    }
    every = list(dict.fromkeys(claim for claimed in asked.values() for claim in claimed))
    parsed = [parse_assertion({**json.loads(claim), "id": str(number)}) for number, claim in enumerate(every)]
    for result in session.evaluate(list(asked), parsed, evidence_of_passes=False):
        for claim, holds in asked[result.run_id].items():
            verdict = result.verdicts[every.index(claim)]
            right, contrary = ("pass", "fail") if holds else ("fail", "pass")
            state = {right: "right", contrary: "contrary"}.get(str(verdict.status), "undecided")
            said = f"{verdict.missing}: {verdict.message}" if verdict.missing else verdict.message
            yield Answer(result.run_id, claim, state, said, holds)


def everything(folders: Iterable[Path], programs: range) -> list[Answer]:
    """Return what is measured of recordings below folders, and of random programs."""
    answers: list[Answer] = []
    for folder in folders:
        if paths := conformance.recordings(folder):
            answers += measured(paths)
    with tempfile.TemporaryDirectory() as name:
        paths = {
            Path(name) / client / f"{seed:05}": program(seed)
            for client, program in (("hand-written", Program), ("foreign", ForeignProgram))
            for seed in programs
        }
        for path, program in paths.items():
            program.write(path)
        answers += measured(list(paths)) if paths else ()
    return answers


def table(answers: Iterable[Answer], by: Callable[[Answer], str], name: str) -> Iterator[str]:
    """Yield the lines of a table in Markdown: facts and verdicts by something that they have."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        counts[by(answer)][answer.state] += 1
        counts["together"][answer.state] += 1
    counts["together"] = counts.pop("together", Counter())
    yield f"| {name} | {' | '.join(FACT_STATES)} | {' | '.join(VERDICT_STATES)} | undecided |"
    yield "|---" * 8 + "|"
    for key, n in counts.items():
        asked = sum(n[state] for state in VERDICT_STATES)
        cells = [
            *(n[state] for state in (*FACT_STATES, *VERDICT_STATES)),
            f"{100 * n['undecided'] / (asked or 1):.1f} %",
        ]
        yield f"| {key} | {' | '.join(map(str, cells))} |"


def tables(answers: Sequence[Answer], *, reasons: int) -> Iterator[str]:
    """Yield the tables by client, by fact and type, and by reason."""
    yield from table(sorted(answers, key=lambda one: one.client), lambda one: one.client, "client")
    yield ""
    yield from table(
        sorted(answers, key=lambda one: (one.holds is not None, one.kind)), lambda one: one.kind, "fact or type"
    )
    yield ""
    why = Counter(f"{one.kind}: {one.reason}" for one in answers if one.state == "undecided")
    yield from (f"{count:6} {reason}" for reason, count in why.most_common(reasons))


def findings(answers: Iterable[Answer]) -> Iterator[str]:
    """Yield in words what is wrong or contrary."""
    for one in answers:
        if one.state in ("wrong", "contrary"):
            yield f"{one.state}: {one.run}: {one.asked}: {one.said}"


def differences(before: Iterable[Answer], after: Iterable[Answer], cases: int) -> Iterator[str]:
    """Yield how verdicts differ, by type and kind of change, each with some cases."""
    old = {(one.run, one.asked): one for one in before if one.holds is not None}
    changed: dict[str, list[tuple[Answer, Answer]]] = defaultdict(list)
    for one in after:
        was = old.get((one.run, one.asked))
        if was is not None and was.state != one.state:
            changed[f"{one.kind}: {was.state} → {one.state}"].append((was, one))
    for kind, pairs in sorted(changed.items()):
        yield f"{len(pairs):6} {kind}"
        for was, one in pairs[:cases]:
            yield f"         {one.run}: {one.asked}"
            yield f"           before: {was.said}"
            yield f"           after:  {one.said}"


def main() -> int:
    """Measure what the command line says; return 1 where something is wrong or contrary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, help="with CLIENT/SCENARIO/truth.json; by default all recordings"
    )
    parser.add_argument("--programs", default="0-199", help="seeds of random programs, from and to; `none` for none")
    parser.add_argument("--of", type=Path, help="another checkout, whose code is measured")
    parser.add_argument("--out", type=Path, help="a file for the answers")
    parser.add_argument("--against", type=Path, help="answers that were kept, to be compared with")
    parser.add_argument("--cases", type=int, default=1, help="how many cases of a kind of change are shown")
    parser.add_argument("--reasons", type=int, default=40, help="how many reasons are shown")
    options = parser.parse_args()
    first, last = (0, -1) if options.programs == "none" else map(int, options.programs.split("-"))
    after = everything(options.folders or FOLDERS, range(first, last + 1))
    if options.out is not None:
        options.out.write_text("\n".join(json.dumps(one) for one in after), encoding="utf-8")
    if options.against is not None:
        before = [Answer(*json.loads(line)) for line in options.against.read_text(encoding="utf-8").split("\n")]
        print("Before:", *tables(before, reasons=options.reasons), "", sep="\n")
        print("Differences:", *differences(before, after, options.cases), "", "After:", sep="\n")
    print(*tables(after, reasons=options.reasons), *findings(after), sep="\n")
    return int(any(findings(after)))


if __name__ == "__main__":
    sys.exit(main())
