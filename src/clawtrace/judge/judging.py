"""Ask judges about runs: as often as the profile says, within what may be spent, and keep every question with its answer."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from clawtrace.assertions.world import JudgeOpinion, JudgeTask, World
from clawtrace.judge.material import hidden_names
from clawtrace.judge.panel import Judge, JudgeRun, Panel, Scale, sample
from clawtrace.judge.prompt import assertion_answer, hide_names, task_prompt
from clawtrace.model.relations import RELATIONS
from clawtrace.model.verdict import RunResult
from clawtrace.pricing.price import Pricing
from clawtrace.providers.asking import ModelAnswer, ProviderFailure, Wording, ask
from clawtrace.support.files import whole_text_file

__all__ = ["Answered", "Judging", "Question", "took", "why_no_answer"]

KEPT_SCHEMA = "clawtrace.judge-answer/1"

Keep = Callable[[str, str, Sequence[tuple[Any, ...]]], None]
"""Stores rows of `judgements`: of which run, what asked, the rows, in place of those that it asked before."""
Took = Callable[[float | None, int], None]
"""Counts what judging took: US dollars (None: unknown) and tokens."""


class Question(NamedTuple):
    """What judges are asked about one run."""

    run_id: str
    asked_by: str
    """``judge`` for the profile, else the assertion's id."""
    wording: Wording
    scale: Scale
    folder: Path | None
    """Of the run's results: the question and its answers are kept below it."""


class Answered(NamedTuple):
    """One answer, or why there is none."""

    judge_run_id: str
    judge_id: str
    repetition: int
    asked: ModelAnswer
    cost_usd: float | None
    counted: bool = False
    """Whether it is in the sample that counts."""


@dataclass(slots=True, eq=False)
class Judging:
    """Asks the judges of one profile; several threads use it."""

    panel: Panel
    env: Mapping[str, str]
    """Where their keys are."""
    pricing: Pricing
    keep: Keep = lambda *_: None
    """Stores rows of `judgements`."""
    spent: Callable[[], str] = lambda: ""
    """Says why nothing more may be spent; empty while something is left."""
    took: Took = lambda *_: None
    """Counts what was spent."""
    stopped: Callable[[], bool] = lambda: False
    """Whether the user ended the evaluation."""
    _of_assertions: dict[str, list[Answered]] = field(default_factory=dict)
    """By run, the answers that its assertions asked for."""

    def answers(self, question: Question, runs: Sequence[JudgeRun]) -> list[list[Answered]]:
        """Ask a question as often as each judge run says; return the answers of each."""
        return [self._of_run(question, run) for run in runs]

    def opinions(self, world: World, task: JudgeTask) -> tuple[JudgeOpinion, ...]:
        """Return what a judge says of the text of an assertion, as often as it is asked."""
        judge = self.panel.judge(task.judge)
        scale = Scale(*task.scale)
        text = world.clean(hide_names(task.text, hidden_names(world, world.facts() if world.facts else {})))
        wording = Wording(*task_prompt(task.question, text, scale, self.panel), assertion_answer(scale))
        question = Question(world.run_id, task.asked_by, wording, scale, world.folder)
        (answers,) = found = self.answers(question, [JudgeRun(judge.judge_id, judge, task.times)])
        self.store(question, found)
        self._of_assertions.setdefault(world.run_id, []).extend(answers)
        return tuple(self._opinion(one) for one in answers)

    def with_assertions(self, result: RunResult) -> RunResult:
        """Return a result with what the judges took that its assertions asked, next to what the profile's own took."""
        asked = self._of_assertions.pop(result.run_id, [])
        if not asked:
            return result
        return result._replace(judgement={**result.judgement, "by_assertions": took(asked)})

    def _opinion(self, one: Answered) -> JudgeOpinion:
        doubt = self.panel.doubts.get(one.judge_id, "")
        if one.asked.failure is not None:
            return JudgeOpinion(None, "", one.asked.failure.kind, why_no_answer(one.asked.failure), doubt)
        assert one.asked.answer is not None
        return JudgeOpinion(one.asked.answer["score"], one.asked.answer["evidence"], doubt=doubt)

    def store(
        self, question: Question, answers: Iterable[Sequence[Answered]], final: Iterable[tuple[str, float]] = ()
    ) -> None:
        """Store the answers to a question, and the scores that they amount to: part and score on the rubric's scale."""
        now = time.time_ns()
        rows = [row for of_run in answers for one in of_run for row in _rows(question, one, now)]
        for part, raw in final:
            rows.append(_row(question, {"part": part, "raw_score": raw, "counted": True, "status": "ok"}, now))
        self.keep(question.run_id, question.asked_by, rows)

    def _of_run(self, question: Question, run: JudgeRun) -> list[Answered]:
        answers: list[Answered] = []
        for repetition in range(1, run.repetitions + 1):
            known = answers[-1].asked.failure if answers else None
            if known is not None and known.kind != "malformed":  # the provider will not answer the next one either
                asked, cost = ModelAnswer(None, known, [], 0, 0, 0), None
            else:
                asked, cost = self._once(question, run, repetition)
            answers.append(Answered(run.judge_run_id, run.judge.judge_id, repetition, asked, cost))
        usable = [one for one in answers if one.asked.answer is not None]
        seed = f"{run.judge_run_id}\0{question.wording.prompt}"
        chosen = {one.repetition for one in sample(usable, run.sample_size, seed)}
        return [one._replace(counted=one.repetition in chosen) for one in answers]

    def _once(self, question: Question, run: JudgeRun, repetition: int) -> tuple[ModelAnswer, float | None]:
        key = _key(run.judge, question.wording)
        file = None
        if question.folder is not None:
            name = f"{run.judge_run_id}-{repetition}.json"
            file = question.folder / "judgements" / quote(question.asked_by, safe=" ") / name
            kept = _read(file, key)
            if kept is not None:
                return kept
        if why := self.spent():
            return ModelAnswer(None, ProviderFailure("budget", why, passes=False), [], 0, 0, 0), None
        asked = ask(run.judge.model, question.wording, self.env, self.stopped)
        choice = run.judge.model.choice
        tokens = asked.input_tokens + asked.output_tokens
        price = self.pricing.price_call(choice.provider, choice.name, asked.input_tokens, asked.output_tokens)
        cost = price.usd if tokens else 0.0
        self.took(cost, tokens)
        if file is not None:
            _write(file, key, run.judge, question.wording, asked, cost)
        return asked, cost


def took(answers: Sequence[Answered]) -> dict[str, Any]:
    """Return what answers took, those that failed too; the cost is None where a price is not known."""
    costs = [one.cost_usd for one in answers if one.asked.attempts]
    return {
        "input_tokens": sum(one.asked.input_tokens for one in answers),
        "output_tokens": sum(one.asked.output_tokens for one in answers),
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
        "failed_answers": sum(one.asked.failure is not None for one in answers),
        "answers": sum(one.counted for one in answers),
    }


def why_no_answer(failure: ProviderFailure) -> str:
    """Return one sentence on why a judge gave no answer."""
    if failure.kind == "budget":
        return f"The judge was not asked: {failure.message}."
    return f"The judge gave no answer ({failure.kind.replace('_', ' ')}): {failure.message}"


def _key(judge: Judge, wording: Wording) -> str:
    """Return what an answer is an answer to: the judge, the words, the form. Another repetition is another file."""
    parts = [judge.identity(), wording.system, wording.prompt, wording.answer.model_json_schema()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


def _read(file: Path, key: str) -> tuple[ModelAnswer, float | None] | None:
    """Return the answer that was kept to exactly this question; a failure is none."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["schema"] != KEPT_SCHEMA or data["key"] != key or data["answer"] is None:
            return None
        return ModelAnswer(**{name: data[name] for name in ModelAnswer._fields}), data["cost_usd"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, key: str, judge: Judge, wording: Wording, asked: ModelAnswer, cost: float | None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "schema": KEPT_SCHEMA,
        "key": key,
        "judge": {"judge_id": judge.judge_id, **judge.identity()},
        "system_prompt": wording.system,
        "prompt": wording.prompt,
        **asked._asdict(),
        "failure": None if asked.failure is None else asked.failure._asdict(),
        "cost_usd": cost,
    }
    with whole_text_file(file, errors="backslashreplace") as stream:
        json.dump(data, stream, indent=1, ensure_ascii=False, default=str)


def _rows(question: Question, one: Answered, now: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one answer: its overall score first, which carries what asking took, then each part."""
    asked = one.asked
    common = {
        "judge_run_id": one.judge_run_id,
        "judge_id": one.judge_id,
        "repetition": one.repetition,
        "counted": one.counted,
        "status": "ok" if asked.failure is None else asked.failure.kind,
    }
    took = {"input_tokens": asked.input_tokens, "output_tokens": asked.output_tokens, "cost_usd": one.cost_usd}
    if asked.answer is None:
        why = None if asked.failure is None else asked.failure.message
        yield _row(question, {**common, **took, "part": "overall", "error": why}, now)
        return
    for number, (part, said) in enumerate(_parts(asked.answer)):
        row = {"part": part, "raw_score": said["score"], "met": said.get("met"), "evidence": said["evidence"]}
        yield _row(question, {**common, **({} if number else took), **row}, now)


def _parts(answer: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "overall", answer.get("overall", answer)
    yield from answer.get("dimensions", {}).items()
    for group in ("hard_expectations", "soft_expectations"):
        yield from ((f"{group}.{number}", one) for number, one in enumerate(answer.get(group, ()), 1))


def _row(question: Question, values: Mapping[str, Any], now: int) -> tuple[Any, ...]:
    raw = values.get("raw_score")
    row = {
        "run_id": question.run_id,
        "asked_by": question.asked_by,
        "score": None if raw is None else question.scale.to_ten(raw),
        "scale_min": question.scale.min,
        "scale_max": question.scale.max,
        "answered_ns": now,
        **values,
    }
    return tuple(row.get(name) for name in RELATIONS["judgements"].column_names)
