"""Measure judges on examples that people scored, keep what was measured, and say which judges do not suffice.

The measures are Cohen's kappa, Spearman's rank correlation and the mean absolute error. The formulas are short, and `scipy`, which
the tests compare them with, is large.
"""

from __future__ import annotations

import hashlib
import json
import operator
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import correlation, fmean
from typing import Any, NamedTuple

from clawtrace.errors import ProviderError
from clawtrace.judge.judging import Answered, Judging, Question, took, why_no_answer
from clawtrace.judge.material import Subject, expectations_of, material, scale_of
from clawtrace.judge.panel import Judge, JudgeRun, Panel, Scale, combine, spread
from clawtrace.judge.prompt import PROMPT_VERSION, Material, profile_answer, written
from clawtrace.providers.asking import Wording
from clawtrace.support.files import whole_text_file

__all__ = [
    "Calibrated",
    "CalibrationExample",
    "Demands",
    "calibrate",
    "calibration_key",
    "doubts_of",
    "interval",
    "kappa",
    "mean_absolute_error",
    "spearman",
    "squared",
    "unmet",
    "write_record",
]

_RESAMPLES = 1000
_CONFIDENCE = 0.95


def squared(first: float, second: float) -> float:
    """Return the quadratic weight of a disagreement: twice as far apart counts four times."""
    return (first - second) ** 2


def kappa(
    first: Sequence[float], second: Sequence[float], weight: Callable[[float, float], float] = operator.ne
) -> float | None:
    """Return Cohen's kappa: 1 is full agreement, 0 what chance gives.

    Args:
        first: categories that one rater gave, as numbers.
        second: those that the other gave, in the same order.
        weight: how much a disagreement counts; by default each counts the same.

    Returns:
        None where it is undefined: both raters always gave one and the same category.
    """
    ones, others = Counter(first).items(), Counter(second).items()
    apart = sum(many * more * weight(one, other) for one, many in ones for other, more in others)
    by_chance = apart / (len(first) * len(second))
    if by_chance == 0:
        return None
    return 1 - fmean(map(weight, first, second)) / by_chance


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of ranks, equal values sharing one; None where one side has no two different values."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return correlation(_ranks(first), _ranks(second))


def mean_absolute_error(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how far apart the scores are on average."""
    return fmean(abs(one - other) for one, other in zip(first, second, strict=True))


def interval(
    measure: Callable[[Sequence[float], Sequence[float]], float | None], first: Sequence[float], second: Sequence[float]
) -> tuple[float, float] | None:
    """Return the 95 % interval of a measure over examples like these: the percentiles of 1,000 draws with replacement.

    The draws are the same at each call. A draw of which the measure is undefined, such as one without any failed example, is left
    out.

    Args:
        measure: of two lists.
        first: scores of one rater.
        second: those of the other, in the same order.

    Returns:
        the lower and the upper end; None where the measure is undefined, or for more than half of the draws.
    """
    chance, places, found = random.Random(0), range(len(first)), []
    if measure(first, second) is None:
        return None
    for _ in range(_RESAMPLES):
        drawn = chance.choices(places, k=len(first))
        value = measure([first[place] for place in drawn], [second[place] for place in drawn])
        if value is not None:
            found.append(value)
    if len(found) < _RESAMPLES / 2:
        return None
    found.sort()
    tail = round((1 - _CONFIDENCE) / 2 * len(found))
    return found[tail], found[-1 - tail]


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: ordered.index(value) for value in set(values)}
    return [first[value] + (ordered.count(value) + 1) / 2 for value in values]


# --- records ----------------------------------------------------------------------------------------------------------


RECORD_SCHEMA = "clawtrace.calibration/1"


class CalibrationExample(NamedTuple):
    """One piece of work with the score that people gave it."""

    example_id: str
    messages: Sequence[tuple[str, str]]
    """Role and text of what was asked for."""
    answer: str
    process: str | None
    """What the agent did, in the words of the file; None: unknown."""
    score: float
    """What people gave it, on the scale of the rubric."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The agreement that a profile demands of its judges; None: not demanded."""

    min_kappa: float | None = None
    min_spearman: float | None = None
    max_mean_absolute_error: float | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in asdict(self).values())


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far one judge agrees with people. Errors, spread and bias by position are on the scale from 0 to 10."""

    examples: int
    kappa: float | None
    """Of pass and fail where the profile has a threshold, else of scores in whole points, with quadratic weights."""
    spearman: float | None
    """Of the scores."""
    mean_absolute_error: float
    bias: float
    """Mean of the judge's score minus people's: above 0 it is too kind."""
    spread: float | None
    """Mean distance between the highest and the lowest answer about the same example; None where each is asked about once."""
    position_bias: float
    """Mean change of the score where the judge gets the same material in the reverse order."""
    length_bias: float | None
    """Spearman's correlation of the answer's length with the judge's error: above 0 it likes long answers more than people do."""
    kappa_interval: Sequence[float] | None = None
    """Of 95 %, over examples like these, as the following; None where it is undefined or was not computed."""
    spearman_interval: Sequence[float] | None = None
    mean_absolute_error_interval: Sequence[float] | None = None


class Calibrated(NamedTuple):
    """What was measured of one judge."""

    judge: Judge
    key: str
    agreement: Agreement
    scores: Sequence[Mapping[str, Any]]
    """Of each example: people's score, the judge's, each answer, and the one in the reverse order."""
    tokens: int
    cost_usd: float | None


def calibration_key(panel: Panel, judge: Judge, examples: bytes) -> str:
    """Return the digest of everything on which a judge's agreement depends; `examples` is the content of their file."""
    run = _plan(panel, judge)
    parts = [
        PROMPT_VERSION, judge.identity(), panel.system_prompt, panel.anchors, panel.method, panel.pass_threshold,
        run.repetitions, run.sample_size, hashlib.sha256(examples).hexdigest(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def calibrate(
    judging: Judging,
    judge: Judge,
    examples: Sequence[CalibrationExample],
    target: Mapping[str, Any],
    key: str,
    folder: Path,
    concurrency: int = 4,
) -> Calibrated:
    """Ask a judge about every example as the profile asks about runs, and once more in the reverse order.

    Args:
        examples: at least two.
        target: `rubric` and `expectations` of the examples.
        key: see `calibration_key`.
        folder: questions and answers are kept in it; what is known from there is not asked again.

    Raises:
        ProviderError: the judge did not answer about one of them.
    """
    with ThreadPoolExecutor(concurrency) as pool:
        asked = list(pool.map(lambda one: _asked(judging, judge, one, target, folder / one.example_id), examples))
    panel, scale = judging.panel, scale_of(target)
    rows = [_row(panel, one, *answers) for one, answers in zip(examples, asked, strict=True)]
    spent = took([one for forward, backward in asked for one in (*forward, *backward)])
    tokens = spent["input_tokens"] + spent["output_tokens"]
    return Calibrated(judge, key, _agreement(panel, scale, rows), rows, tokens, spent["cost_usd"])


def _plan(panel: Panel, judge: Judge) -> JudgeRun:
    """Return how often the profile asks a judge: as its first judge run says, once where it has none."""
    own = next((run for run in panel.runs if run.judge.judge_id == judge.judge_id), JudgeRun("", judge))
    return JudgeRun("calibration", judge, own.repetitions, own.sample_size)


def _asked(
    judging: Judging, judge: Judge, one: CalibrationExample, target: Mapping[str, Any], folder: Path
) -> tuple[list[Answered], list[Answered]]:
    scale = scale_of(target)
    answer = profile_answer(scale, *(len(expectations_of(target, group)) for group in ("hard", "soft")))
    runs = (_plan(judging.panel, judge), JudgeRun("reverse-order", judge))
    found = []
    for backwards, run in enumerate(runs):
        words = written(_material(one, target), scale, judging.panel, backwards=bool(backwards))
        question = Question(one.example_id, judge.judge_id, Wording(*words, answer), scale, folder)
        (answers,) = judging.answers(question, [run])
        failure = next((each.asked.failure for each in answers if each.asked.failure is not None), None)
        if failure is not None:
            raise ProviderError(f"the example `{one.example_id}`: {why_no_answer(failure)}")
        found.append(answers)
    return found[0], found[1]


def _material(one: CalibrationExample, target: Mapping[str, Any]) -> Material:
    """Return an example in the words and the order in which judges get runs."""
    found = material(Subject(one.example_id, one.messages, target, {}, (), {}, one.answer))
    if one.process is None:
        return found
    process = "What the agent did, as its spans record it"
    return found._replace(sections=[(name, one.process if name == process else text) for name, text in found.sections])


def _row(
    panel: Panel, one: CalibrationExample, forward: Sequence[Answered], backward: Sequence[Answered]
) -> dict[str, Any]:
    counted = [_overall(each) for each in forward if each.counted]
    return {
        "example_id": one.example_id,
        "people": one.score,
        "judge": combine(panel.method, counted, panel.pass_threshold),
        "answers": [_overall(each) for each in forward],
        "reverse_order": _overall(backward[0]),
        "length": len(one.answer),
    }


def _overall(of: Answered) -> float:
    assert of.asked.answer is not None  # a failure ends the calibration
    score: float = of.asked.answer["overall"]["score"]
    return score


def _agreement(panel: Panel, scale: Scale, rows: Sequence[Mapping[str, Any]]) -> Agreement:
    people, judge = [row["people"] for row in rows], [row["judge"] for row in rows]
    threshold = panel.pass_threshold
    beyond_chance: Callable[[Sequence[float], Sequence[float]], float | None] = kappa
    if threshold is None:
        beyond_chance, parts = partial(kappa, weight=squared), [[round(one) for one in of] for of in (people, judge)]
    else:
        parts = [[one >= threshold for one in of] for of in (people, judge)]
    ten = 10 / (scale.max - scale.min)
    errors = [one - other for one, other in zip(judge, people, strict=True)]
    spreads = [spread(row["answers"]) for row in rows if len(row["answers"]) > 1]
    return Agreement(
        len(rows),
        _rounded(beyond_chance(*parts)),
        _rounded(spearman(people, judge)),
        round(ten * mean_absolute_error(people, judge), 4),
        round(ten * fmean(errors), 4),
        round(ten * fmean(spreads), 4) if spreads else None,
        round(ten * fmean(row["reverse_order"] - fmean(row["answers"]) for row in rows), 4),
        _rounded(spearman([row["length"] for row in rows], errors)),
        _both(interval(beyond_chance, *parts)),
        _both(interval(spearman, people, judge)),
        _both(interval(mean_absolute_error, people, judge), ten),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _both(ends: tuple[float, float] | None, times: float = 1) -> list[float] | None:
    return None if ends is None else [round(times * end, 4) for end in ends]


def unmet(demands: Demands, agreement: Agreement) -> list[str]:
    """Return which demands an agreement does not meet, each in a few words; what is undefined meets none."""
    found = []
    for name, least in (("kappa", demands.min_kappa), ("spearman", demands.min_spearman)):
        value = getattr(agreement, name)
        if least is not None and (value is None or value < least):
            found.append(f"{name} is {'undefined' if value is None else f'{value:g}'}, at least {least:g} is demanded")
    most = demands.max_mean_absolute_error
    if most is not None and agreement.mean_absolute_error > most:
        found.append(f"the mean absolute error is {agreement.mean_absolute_error:g}, at most {most:g} is demanded")
    return found


def doubts_of(panel: Panel, demands: Demands, examples: bytes, record: Path, command: str) -> dict[str, str]:
    """Return by judge why no verdict follows from its scores; empty where each is known to meet the demands.

    Args:
        examples: content of the file with the examples.
        record: file with what was measured.
    """
    if not demands:
        return {}
    known, found = read_record(record), {}
    for judge in panel.judges:
        measured = known.get(judge.judge_id)
        name = f"The judge `{judge.judge_id}`"
        if measured is None:
            found[judge.judge_id] = f"{name} was not calibrated, as its profile demands: run `{command}`."
        elif measured["key"] != calibration_key(panel, judge, examples):
            found[judge.judge_id] = (
                f"{name}, its profile or its examples were edited since it was calibrated: run `{command}`."
            )
        elif lacks := unmet(demands, Agreement(**measured["agreement"])):
            found[judge.judge_id] = f"{name} agrees too little with people: {'; '.join(lacks)}."
    return found


def read_record(file: Path) -> Mapping[str, Any]:
    """Return what was measured, by judge; nothing where the file is not there or is none of this version."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return data["judges"] if data["schema"] == RECORD_SCHEMA else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_record(file: Path, measured: Sequence[Calibrated]) -> None:
    """Write what was measured, in place of what was there."""
    judges = {
        one.judge.judge_id: {"key": one.key, "agreement": asdict(one.agreement), "scores": one.scores}
        for one in measured
    }
    with whole_text_file(file, shared=True) as stream:
        json.dump({"schema": RECORD_SCHEMA, "judges": judges}, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
