"""Compares clawtrace with the second judge on random programs and random assertions.

    python tests/second/compare.py [--traces 1000] [--seed 1] [--show 3]

Prints how many verdicts agree, contradict each other or the truth, and are undecided by one of the two alone, by type, with
cases that can be repeated (`--only SEED` asks of one program what was asked of its group, and prints its spans and facts).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from one_world import COMMANDS
from programs import HELPERS, STRANGE, TOOLS, WEATHER, Program, otlp
from words import WORDS, said_in

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from facts import Reading
from judge import FAIL, PASS, UNSURE, verdict

TOGETHER, ASKED = 50, 40
"""How many programs are judged at once, and by how many assertions."""


class Answer(NamedTuple):
    """What each says of one question about one program."""

    seed: int
    asked: dict[str, Any]
    engine: str
    second: str
    truth: str
    said: str
    """The engine's sentence."""

    @property
    def state(self) -> str:
        """How the answers compare."""
        pair = {self.engine, self.second}
        if pair == {PASS, FAIL}:
            return "contrary"
        if self.truth in (PASS, FAIL) and ({self.engine, self.truth} == {PASS, FAIL}):
            return "engine untrue"
        if self.truth in (PASS, FAIL) and ({self.second, self.truth} == {PASS, FAIL}):
            return "second untrue"
        if self.engine == self.second:
            return "agree"
        if self.second in (PASS, FAIL):
            return "undecided by the engine"
        return "unsure" if self.second == UNSURE else "undecided by the second"


def drawn(number: random.Random) -> dict[str, Any]:
    """Return a random assertion."""
    tools = [*TOOLS, *TOOLS, STRANGE, *(f"ask_{one}" for one in HELPERS), "transfer_to_writer"]
    agents = ["planner", *HELPERS, "nobody"]
    models = [
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4",
        "gpt",
        "mini",
        "claude",
        "sonnet-4-6",
        "claude-sonnet-4-6",
        "glob:gpt-*",
    ]

    def some(names: list[str], most: int = 3) -> list[str]:
        return [number.choice(names) for _ in range(number.randrange(1, most + 1))]

    def bounds(most: int) -> dict[str, int]:
        low = number.randrange(most)
        return number.choice(
            [{"min": low + 1}, {"max": low}, {"count": low}, {"min": low, "max": low + number.randrange(3)}]
        )

    def steps() -> list[Any]:
        kinds = [
            lambda: number.choice(tools), lambda: number.choice(tools), lambda: {"any_order": [number.choice(tools), *some(tools, 2)]}, lambda: {"optional": number.choice(tools)},
            lambda: {"repeat": number.choice(tools), "min": 1, "max": number.randrange(1, 4)}, lambda: {"repeat": number.choice(tools)},
            lambda: {"tool": number.choice(tools), "status": number.choice(["ok", "error"])},
        ]  # fmt: skip
        return [number.choice(kinds)() for _ in range(number.randrange(1, 4))]

    name = number.choice(tools)
    argument = TOOLS.get(name, ("q", (1,)))
    made: list[dict[str, Any]] = [
        {"type": "llm_call_count", **bounds(9), "include_failed": number.random() < 0.3},
        {"type": "model_used", number.choice(["expected", "not_expected"]): number.choice(models), "answered_by": number.random() < 0.2},
        {"type": "model_used", "only": some(["gpt-4o", "gpt-4o-mini", "gpt", "claude-sonnet-4-6", "mini"]), "answered_by": number.random() < 0.2},
        {"type": "trace_token_budget", number.choice(["max_input_tokens", "max_total_tokens"]): number.randrange(200, 6000)},
        {"type": "trace_token_budget", "max_output_tokens": number.randrange(10, 500)},
        {"type": "tool_call_count", **bounds(6)},
        {"type": "tool_call_count", **bounds(4), "tool": number.choice([name, "glob:ask_*"])},
        {"type": "tool_not_invoked", "tool": number.choice([name, name, "glob:*e*", "re:^re"])},
        {"type": "tool_not_permitted", "allowed_tools": some(tools, 6)},
        {"type": "tool_call", "tool": name, "args": {argument[0]: number.choice(argument[1])}, "match": number.choice(["subset", "exact"])},
        {"type": "tool_call", "tool": name, "status": number.choice(["ok", "error"]), "count": number.choice([1, {"max": 1}, {"min": 1}, {"min": 1, "max": 2}])},
        {"type": "tool_sequence", "expected": some(tools, 4), "mode": number.choice(["ordered", "ordered", "strict", "contains"])},
        {"type": "tool_sequence", "expected": some(tools, 3), "order": "start_time"},
        {"type": "tool_sequence", "steps": steps(), "mode": number.choice(["ordered", "strict"])},
        {"type": "no_loops", "max_repeats": number.randrange(1, 3)},
        {"type": "delegation_occurred", "to_agent": number.choice(agents)},
        {"type": "delegation_path", "expected": number.choice([some(agents), ["planner", number.choice(agents)]]), "mode": number.choice(["ordered", "path"])},
        {"type": "no_span_errors", "unrecovered": number.random() < 0.5, "ignore": number.choice([[], [name], ["gpt-4o"], ["glob:chat*", name]])},
        {"type": "tool_call", "tool": name, "by_agent": number.choice(agents), "count": number.choice([{"min": 1}, 0, 1])},
        {"type": "tool_call", "tool": name, "result_contains": number.choice([*WEATHER, "Error"]), "count": number.choice([{"min": 1}, {"max": 1}, 0])},
        {"type": "final_response", number.choice(["contains", "not_contains"]): number.choice(WEATHER)},
        {"type": "per_span_budget", "max_tokens": number.randrange(300, 1000)},
        {"type": "span_duration", "span_type": number.choice(["llm", "agent"]), "max_ms": number.randrange(5, 90), "quantile": number.choice([1.0, 0.5])},
        {"type": "ran", "pattern": number.choice(list(COMMANDS))},
        {"type": "not_ran", "pattern": number.choice(list(COMMANDS))},
        {"type": "run_count", "pattern": number.choice(list(COMMANDS)), **bounds(3)},
        {"type": "trace_duration", "max_ms": number.randrange(20, 500), "measure": number.choice(["wall", "busy"])},
    ]  # fmt: skip
    asked = number.choice(made)
    whole = ("trace_duration", "span_duration", "final_response", "delegation_path", "delegation_occurred")
    scoped = asked["type"] not in whole
    if scoped and number.random() < 0.15:
        asked["agent"] = number.choice(agents)
    elif scoped and number.random() < 0.1:
        asked["turn"] = number.choice([1, 2, "last"])
    return asked


def questions(seed: int) -> list[dict[str, Any]]:
    """Return random assertions that say something: what the loader refuses is drawn again."""
    number, found = random.Random(seed), list[dict[str, Any]]()
    while len(found) < ASKED:
        asked = drawn(number)
        with suppress(InvalidAssertionError):
            parse_assertion({**asked, "id": "one"})
            found.append(asked)
    return found


def compared(seeds: range, folder: Path, words: str | None = None) -> Iterator[Answer]:
    """Yield the answers of both about the programs of seeds; each group of them is asked other questions."""
    for start in range(seeds.start, seeds.stop, TOGETHER):
        some = range(start, min(start + TOGETHER, seeds.stop))
        programs = {seed: Program(seed, hands_over=words is None) for seed in some}
        yield from judged(programs, questions(start), folder, words)


def judged(
    programs: dict[int, Program], asked: list[dict[str, Any]], folder: Path, words: str | None = None
) -> Iterator[Answer]:
    """Yield what both say of programs, whose spans the engine reads in the words of another convention where one is named."""
    readings = {seed: Reading(program.spans).facts for seed, program in programs.items()}
    written = {
        str(seed): [otlp(said_in(words, program.spans) if words else program.spans)]
        for seed, program in programs.items()
    }
    for run, verdicts in by_clawtrace(written, asked, folder).items():
        seed, program = int(run), programs[int(run)]
        for one, said in zip(asked, verdicts, strict=True):
            if ("turn" in one and not program.rooted) or (words and one["type"] == "no_span_errors"):
                continue  # errors are asked for by the names of spans, which differ
            # Words made up by a program tell an answer by its contents and its tokens alone.
            mute = program.mute or (words == "by_hand" and not (program.style["content"] or program.style["usage"]))
            told = not (program.silent or mute) and one["type"] not in ("no_span_errors", "trace_duration")
            told &= bool(
                one["type"] != "no_loops" or program.style["agents"]
            )  # in a row are calls of one agent that spans show
            truth = verdict(program.truth, one) if told else ""
            yield Answer(seed, one, str(said.status), verdict(readings[seed], one), truth, said.message)


def by_clawtrace(runs: dict[str, list[Any]], asked: list[dict[str, Any]], folder: Path) -> dict[str, list[Any]]:
    """Return clawtrace's verdicts of runs, each of which came in some requests."""
    parsed = [parse_assertion({**one, "id": str(number)}) for number, one in enumerate(asked)]
    with Session.open() as session:
        for run, requests in runs.items():
            path = folder / f"{run}.jsonl"
            path.write_text("".join(json.dumps(one) + "\n" for one in requests), encoding="utf-8")
            session.load_recordings([path], Grouping("one", run))
        return {
            one.run_id: list(one.verdicts) for one in session.evaluate(list(runs), parsed, evidence_of_passes=False)
        }


def table(answers: list[Answer]) -> Iterator[str]:
    """Yield a line for each type: how the answers compare."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in answers:
        counts[one.asked["type"]][one.state] += 1
        counts["together"][one.state] += 1
    states = sorted({state for count in counts.values() for state in count})
    yield f"{'':22}" + "".join(f"{state:>26}" for state in states)
    for kind, count in sorted(counts.items(), key=lambda item: (item[0] == "together", item[0])):
        yield f"{kind:22}" + "".join(f"{count[state]:26}" for state in states)
    total = counts["together"].total()
    left = sum(one.engine not in (PASS, FAIL) for one in answers)
    yield f"{total} verdicts, {100 * counts['together']['undecided by the engine'] / total:.2f} % undecided although the spans tell, {100 * left / total:.1f} % undecided at all"


def described(program: Program) -> Iterator[str]:
    """Yield the spans of a program as a tree with times in milliseconds, what the second reading finds in them, and the truth."""
    yield str(program.style)
    reading = Reading(program.spans)
    begin = reading.spans[0]["start"]
    for span in reading.spans:
        times = [None if at is None else (at - begin) / 1e6 for at in (span["start"], span["end"])]
        said = {
            key.removeprefix("gen_ai."): value for key, value in span["attributes"].items() if "definitions" not in key
        }
        lost = " (parent lost)" if span["parent"] and span["parent"] not in reading.of else ""
        yield f"{'  ' * len(reading.above(span))}{span['id'][:4]} {span['trace'][:4]} {times} {span['name']} {span['status'] or ''} {said}{lost}"
    for name, facts in (("second", reading.facts), ("truth", program.truth)):
        yield from (
            f"{name} {relation}: {row}"
            for relation in ("llm", "tools", "agents", "errors")
            for row in getattr(facts, relation)
        )
        yield f"{name}: gaps {facts.gaps}, turns {facts.turns}, reasons {facts.reasons}"


def main() -> int:
    """Compare what the command line says; return 1 where answers contradict each other or the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the seed of one program; what is asked of it is drawn with its group")
    parser.add_argument(
        "--words",
        choices=[*WORDS, "twice"],
        help="the convention whose words the engine reads; OpenTelemetry's by default",
    )
    parser.add_argument("--show", type=int, default=3, help="cases of each difference")
    parser.add_argument("--state", help="show cases of this state alone")
    parser.add_argument("--type", help="and of this type")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first = options.seed * 1_000_000
        if options.only is None:
            answers = list(compared(range(first, first + options.traces), Path(folder), options.words))
        else:
            program = Program(options.only, hands_over=options.words is None)
            print(*described(program), sep="\n")
            asked = questions(options.only // TOGETHER * TOGETHER)
            answers = list(judged({options.only: program}, asked, Path(folder), options.words))
    print(*table(answers), sep="\n")
    shown: Counter[tuple[str, str]] = Counter()
    for one in answers:
        key = (one.state, one.asked["type"])
        if (
            one.state in ("agree", "unsure")
            or (options.state and one.state != options.state)
            or (options.type and one.asked["type"] != options.type)
        ):
            continue
        shown[key] += 1
        if shown[key] <= options.show:
            print(
                f"{one.state}: seed {one.seed} {json.dumps(one.asked)}: engine {one.engine}, second {one.second}, truth {one.truth}: {one.said[:300]}"
            )
    return int(any(one.state in ("contrary", "engine untrue", "second untrue") for one in answers))


if __name__ == "__main__":
    sys.exit(main())
