"""A second implementation, written from the specification alone, and clawtrace agree on random programs."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from compare import by_clawtrace, compared, questions, table
from programs import Program, otlp
from words import WORDS

from facts import Reading

DECISIVE = ("contrary", "engine untrue", "second untrue")


@pytest.mark.longer
def test_both_judges_agree(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """No verdict contradicts the other judge's or what happened, and few are open although the spans tell."""
    traces = 1500 if request.config.getoption("--full") else 50

    answers = list(compared(range(traces), tmp_path))

    wrong = [one for one in answers if one.state in DECISIVE]
    assert not wrong, "\n".join(map(str, wrong[:5]))
    assert {"pass", "fail"} <= {one.engine for one in answers if one.state == "agree"}
    open_though_told = sum(one.state == "undecided by the engine" for one in answers)
    assert open_though_told / len(answers) < 0.035, "\n".join(table(answers))


@pytest.mark.full
@pytest.mark.parametrize("words", [*WORDS, "twice"])
def test_other_words_for_the_same_say_the_same(words: str, tmp_path: Path) -> None:
    """A program that writes the words of another convention, or its own, is read as truly."""
    answers = list(compared(range(400), tmp_path, words))

    wrong = [one for one in answers if one.state in DECISIVE]
    assert not wrong, "\n".join(map(str, wrong[:5]))
    open_though_told = sum(one.state == "undecided by the engine" for one in answers)
    assert open_though_told / len(answers) < 0.05, "\n".join(table(answers))


@pytest.mark.longer
def test_how_spans_arrive_changes_no_verdict(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Whether they come in another order, twice, or each in a request of its own, the same is said of them."""
    seeds = range(200 if request.config.getoption("--full") else 20)
    asked, number, runs = questions(1), random.Random(1), {}
    for seed in seeds:
        spans = Program(seed).spans
        mixed = number.sample(spans, len(spans))
        runs |= {
            f"{seed}-as-sent": [otlp(spans)],
            f"{seed}-mixed": [otlp(mixed)],
            f"{seed}-twice": [otlp(spans), otlp(mixed)],
            f"{seed}-single": [otlp([span]) for span in mixed],
        }

    verdicts = by_clawtrace(runs, asked, tmp_path)

    said = {run: [(one.status, one.message) for one in found] for run, found in verdicts.items()}
    for seed in seeds:
        for how in ("mixed", "twice", "single"):
            assert said[f"{seed}-{how}"] == said[f"{seed}-as-sent"]


@pytest.mark.longer
def test_a_part_is_never_contradicted_by_the_whole(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """What is decided of a part of the spans that shows that others are missing holds of all of them."""
    seeds = range(600 if request.config.getoption("--full") else 30)
    asked, number, runs = questions(2), random.Random(2), {}
    for seed in seeds:
        spans = Program(seed).spans
        part = [span for span in spans if number.random() < 0.8]
        if part and "missing_parent" in Reading(part).facts.reasons:
            runs |= {f"{seed}-whole": [otlp(spans)], f"{seed}-part": [otlp(part)]}

    verdicts = by_clawtrace(runs, asked, tmp_path)

    contrary = [
        (run, one, of_part.message, of_whole.message)
        for run in verdicts
        if run.endswith("part")
        for one, of_part, of_whole in zip(asked, verdicts[run], verdicts[run.replace("part", "whole")], strict=True)
        if {str(of_part.status), str(of_whole.status)} == {"pass", "fail"}
    ]
    assert not contrary, contrary[:5]
