"""The judges' part in the verdicts of a run (spec: config.md §4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clawtrace.assertions.world import World
from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.judge.judging import Judging, Question
from clawtrace.judge.material import Subject, expectations_of, hidden_names, material, scale_of
from clawtrace.judge.outcome import judged
from clawtrace.judge.panel import Panel
from clawtrace.judge.prompt import profile_answer, written
from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of
from clawtrace.providers.asking import Wording
from clawtrace.providers.models import why_unavailable
from clawtrace.runners.starting.templates import RunValues, render
from clawtrace.session.session import Session

__all__ = ["unavailable_judge", "with_judgement"]


_NOT_THE_AGENTS = {"provider_error": "its provider failed", "invalid": "its agent could not be run"}


def unavailable_judge(panel: Panel, env: Mapping[str, str]) -> str | None:
    """Return what must be installed or set before the judges can be asked; None when nothing must."""
    for one in panel.judges:
        why = why_unavailable(one.model.choice, env, one.model.options)
        if why is not None:
            return f"the judge `{one.judge_id}` cannot be asked: {why}"
    return None


def with_judgement(
    planned: PlannedRun,
    result: RunResult,
    world: World,
    values: RunValues,
    judging: Judging | None,
    session: Session,
) -> RunResult:
    """Return a result with what the judges of the profile say of the run; unchanged where none is asked about runs."""
    if judging is None:
        return result
    if not judging.panel.runs:
        return judging.with_assertions(result)
    unseen = _why_not(result, world)
    if unseen is not None:
        status, why = unseen
        verdict = Verdict(
            result.run_id, "judge", "judge", status, False, f"The judges were not asked: {why}.", missing="judge"
        )
        return judging.with_assertions(_with(result, (verdict,)))
    target = planned.case.config.for_judges()
    scale = scale_of(target)
    wording = written(material(_subject(planned, result, world, values, session)), scale, judging.panel)
    answer = profile_answer(scale, *(len(expectations_of(target, group)) for group in ("hard", "soft")))
    question = Question(result.run_id, "judge", Wording(*wording, answer), scale, world.folder)
    answers = judging.answers(question, judging.panel.runs)
    found = judged(result.run_id, judging.panel, scale, target, answers, result.scores)
    judging.store(question, answers, found.parts)
    return judging.with_assertions(_with(result, found.verdicts)._replace(judgement=found.summary))


def _with(result: RunResult, more: tuple[Verdict, ...]) -> RunResult:
    verdicts = (*result.verdicts, *more)
    return result._replace(verdicts=verdicts, status=run_status_of(verdicts))


def _why_not(result: RunResult, world: World) -> tuple[Status, str] | None:
    """Return why judging a run would say nothing of its agent, and what its verdict is; None where it would."""
    if world.run_status in _NOT_THE_AGENTS:
        return Status.INCONCLUSIVE, f"the run says nothing of the agent, because {_NOT_THE_AGENTS[world.run_status]}"
    if not result.has_trace:
        return Status.SKIP, "the run has no trace"
    if not result.complete:
        because = "; ".join(one.rstrip(".") for one in result.incomplete_because) or "the run is not closed"
        return Status.INCONCLUSIVE, f"the trace is not complete, and what is missing could change the score ({because})"
    return None


def _spoken(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield what a simulated user and the agent said, and how it ended; nothing where none played."""
    for turn in result.conversation.get("turns", ()):
        yield from ((role, turn[role]) for role in ("user", "agent") if turn[role] is not None)
    if end := result.conversation.get("end"):
        yield "end", f"The simulated user's conversation ended as `{end}`: {result.conversation['why']}"


def _subject(planned: PlannedRun, result: RunResult, world: World, values: RunValues, session: Session) -> Subject:
    (facts,) = session.inspect([result.run_id])["runs"]
    said = planned.case.conversation
    models = (planned.model_id, planned.model.requested_model if planned.model else None)
    messages = [(one.role, render(one.content, values.value)) for one in (*said.messages, *said.turns)]
    return Subject(
        run_id=result.run_id,
        messages=[
            *(("attachment", f"{one.name}\n{one.text}") for one in said.attachments),
            *messages,
            *_spoken(result),
        ],
        target=planned.case.config.for_judges(),
        facts=facts,
        verdicts=result.verdicts,
        scores=result.scores,
        answer=world.final_output,
        workspace=world.workspace,
        changes=world.changes,
        hidden=hidden_names(world, facts, models),
        clean=session.clean,
    )
