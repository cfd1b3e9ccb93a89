"""`clawtrace.results/1`: what `--report json` writes of an evaluation (spec: cli.md).

The structs are the contract, apart from the engine's own on purpose: keys may be added, never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from clawtrace.report.json_text import Struct
from clawtrace.report.verdict_results import AssertionResult, StatusWord
from clawtrace.verdicts.gating.pass_rate import Stability

__all__ = [
    "Case",
    "GateFlags",
    "LastGreen",
    "NotRun",
    "ReceivedTrace",
    "RepeatedAssertion",
    "Results",
    "ResultsSource",
    "Run",
    "Suite",
    "SuiteThreshold",
    "Totals",
    "UserTotals",
]


class ReceivedTrace(Struct):
    """What was received of a run."""

    complete: bool | None
    """Whether no reason is known against the trace being whole; null while the run is open or has no trace."""
    incomplete_because: list[str]
    """The reasons against it, one plain sentence each."""
    closed_by: str | None
    """Why no more spans are expected: exit, end_run, evidence, settled, timeout, recording; null while open."""
    spans: int
    """Distinct spans."""
    traces: int
    """Distinct trace ids."""
    duration_ms: float | None
    """From the first start to the last end; null when unknown."""


class Run(Struct):
    """One repetition of one case with one model."""

    run_id: str
    """The run's id, unique in its store."""
    repetition: int
    """1-based repetition of the same case and model."""
    status: StatusWord | None
    """The heaviest of its assertions: error, fail, inconclusive, skip, warn, pass; null when nothing was asked."""
    outcome: Literal["passed", "failed", "undecided"] | None
    """What the run counts as in pass rates; null when it broke, or nothing was asked of it."""
    reused: bool
    """Whether the run was taken over from an earlier campaign."""
    retried: list[str]
    """Why earlier attempts at the run failed; only failures of the infrastructure are tried again."""
    quarantined: bool
    """Whether the case is in quarantine (`quarantine_tags` of the suite): it decides nothing."""
    cassette: Literal["record", "replay", "auto"] | None
    """How a cassette took the place of the agent's providers of models, `replay`: nothing was spent on them; null where they were
    asked."""
    run_status: Literal["success", "failed", "timed_out", "provider_error", "invalid"] | None
    """How the agent's process ended; null for recorded input."""
    error: str
    """What broke before or while the agent ran; empty when nothing did."""
    trace: ReceivedTrace
    """What was received."""
    final_score: float | None
    """The judges' score from 0 to 10; null where none was asked, or none answered."""
    judgement: Mapping[str, Any]
    """What the judges said: dimensions, spread, each judge run, and what asking took; empty where none was asked."""
    conversation: Mapping[str, Any]
    """What a simulated user and the agent said (`turns`), how it ended (`end`, `why`), and what the user's model took; empty where none played."""
    scores: dict[str, float]
    """By dimension 10 × passed / decided over the assertions that have it; one without a decided assertion is left out."""
    totals: dict[str, Any]
    """The run's row of the relation `run_totals`, and each number without `_low` or `_high` where both are one; null values are unknown, never zero."""
    diagnostics: list[str]
    """What receiving and normalising the run had to say: conflicts, rejected spans, cut cycles."""
    assertions: list[AssertionResult]
    """Every assertion's answer, in the order of the file."""


class RepeatedAssertion(Struct):
    """One assertion over the repetitions of a case with one model."""

    id: str
    """The assertion's id."""
    type: str
    """The assertion's type."""
    passed: int
    """Runs in which it passed."""
    failed: int
    """Runs in which it failed, at any severity."""
    undecided: int
    """Runs in which it did neither."""
    min_pass_rate: float
    """Least share of the runs in which it must pass."""
    reached: bool | None
    """Whether it was reached; null when undecided runs decide."""
    pass_rate: float | None
    """`passed` divided by the runs in which it was asked."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95, as wide as undecided answers could make it."""
    stability: Stability | None
    """How alike the answers are; null while undecided ones could say otherwise."""
    pass_at_k: dict[str, float]
    """By k: the chance that it passes in at least one of k runs."""
    pass_hat_k: dict[str, float]
    """By k: the chance that it passes in all of k runs (pass^k)."""


class LastGreen(Struct):
    """The last earlier campaign in which a case was green: all its runs were made, and nothing that counts did not pass."""

    campaign: str
    """The campaign's folder below `campaigns` of the folder of results; this one's where the results were written over since."""
    started_at: str
    """When it began, ISO 8601 in UTC."""
    edited: list[str]
    """What was edited since that an agent's run or its verdicts depend on, in words; empty where nothing known was."""
    unknown: str
    """Why an edit of the agent may be missing there; empty where none can."""

    @property
    def in_words(self) -> str:
        """When and where it was, and what was edited since."""
        when = f"{self.started_at[:16].replace('T', ' ')} UTC, {self.campaign}"
        if self.edited:
            return f"{when}. Edited since: {', '.join(self.edited)}."
        return f"{when}. Nothing known was edited since" + (f": {self.unknown}." if self.unknown else ".")


class Case(Struct):
    """All repetitions of one case with one model."""

    case_id: str
    """The case; for recorded input the run's id."""
    model_id: str | None
    """The suite's model entry; null for recorded input."""
    title: str | None
    """The case's label; null for recorded input."""
    description: str
    """The author's own words about the case; empty when none were given."""
    tags: list[str]
    """Words by which suites select the case."""
    metadata: Mapping[str, Any]
    """The author's notes on the case."""
    agent_id: str | None
    """The agent whose workspace its runs start from; null when it has none."""
    unjudged: Mapping[str, Any]
    """The case's `expectations` and `rubric`, of which nothing was judged because there is no judge; else empty."""
    row_of: str | None
    """The `case_id` of the case file, where the case is a row of its dataset, or has its named faults or none of them; null where it is none."""
    passed: int
    """Runs that passed; one that only warned, and not for missing data, is among them."""
    failed: int
    """Runs that failed."""
    undecided: int
    """Runs that were skipped, inconclusive, warned for missing data, or had an assertion that broke."""
    pass_rate: float | None
    """`passed` divided by the runs that ran and were judged; null when none was."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95, as wide as undecided runs could make it; null like the rate."""
    stability: Literal["stable-pass", "flaky", "stable-fail"] | None
    """How alike the runs are; null while fewer than two were judged, or undecided ones could say otherwise."""
    pass_at_k: dict[str, float]
    """By k: the chance that at least one of k runs passes, unbiased; undecided runs count as not passed."""
    pass_hat_k: dict[str, float]
    """By k: the chance that all of k runs pass (pass^k), unbiased; undecided runs count as not passed."""
    assertions: list[RepeatedAssertion]
    """Each assertion over the repetitions; empty when fewer than two runs were judged."""
    last_green: LastGreen | None
    """Of a case that is not green: the last earlier campaign of the suite and run profile in which it was; null where none is known."""
    runs: list[Run]
    """The repetitions, in order."""


class JudgingTotals(Struct):
    """What judges took, asked by the evaluation profile or by assertions, apart from what the runs took."""

    answers: int
    """Answers that came and count."""
    input_tokens: int
    """Their input tokens, with those of answers that were not valid."""
    output_tokens: int
    """Their output tokens."""
    cost_usd: float | None
    """Their cost in US dollars; null when the price of a model is not known."""


class UserTotals(Struct):
    """What the models took that played users, apart from what the runs took."""

    answers: int
    """Messages and decisions that they were asked for."""
    input_tokens: int | None
    """Their input tokens; null when a provider reported none, as with the next two."""
    output_tokens: int | None
    """Their output tokens."""
    cost_usd: float | None
    """Their cost in US dollars; null also when the price of a model is not known."""


class Totals(Struct):
    """Numbers of runs, by status; runs of which nothing was asked are in `runs` alone."""

    runs: int
    """All runs."""
    passed: int
    """Runs with status `pass`."""
    failed: int
    """Runs with status `fail`."""
    warned: int
    """Runs with status `warn`."""
    skipped: int
    """Runs with status `skip`."""
    inconclusive: int
    """Runs with status `inconclusive`."""
    errored: int
    """Runs with status `error`, and runs that broke before anything could be asked."""


class NotRun(Struct):
    """A planned run without a result."""

    run_id: str
    """The id that it would have had."""
    case_id: str
    """The case."""
    model_id: str | None
    """The suite's model entry."""
    repetition: int
    """1-based repetition of the same case and model."""
    reason: str
    """Why it was not run, or not judged."""
    quarantined: bool
    """Whether the case is in quarantine: it decides nothing."""


class SuiteThreshold(Struct):
    """The pass rate of all runs with one model against the suite's threshold."""

    model_id: str | None
    """The suite's model entry; null for a suite without models."""
    passed: int
    """Runs that passed."""
    failed: int
    """Runs that failed."""
    undecided: int
    """Runs that did neither."""
    pass_rate: float | None
    """`passed` divided by the runs that ran and were judged; null when none was."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95."""
    threshold: float
    """The least pass rate, from the suite's file."""
    tolerance: float
    """How far the pass rate may stay below it."""
    gate_on: Literal["rate", "lower-bound"]
    """What was held against it: the rate, or the lower end of its interval."""
    reached: bool | None
    """Whether it was reached; null when undecided runs decide, or none ran."""
    behavior: Literal["error", "informational"]
    """Whether a pass rate below is exit code 1, or only shown."""


class Suite(Struct):
    """What the author of a suite says of it, and of what it names."""

    title: str
    """The suite's label."""
    metadata: Mapping[str, Any]
    """The author's notes on the suite."""
    models: Mapping[str, str]
    """Label by model id, of those that have one."""
    agents: Mapping[str, str]
    """Title by agent id, of those in use."""
    run_profile: str
    """Title of the run profile; `Default` where none was named."""
    evaluation_profile: str | None
    """Title of the evaluation profile; null where none was named."""


class ResultsSource(Struct):
    """Where the runs are, so that a verdict can be rerun. Paths are relative to the folder of this file."""

    store: str | None
    """The span store; null for recordings."""
    traces: list[str]
    """Recordings."""
    runs_by: Literal["rules", "one", "file", "dir"]
    """How recordings are split into runs."""
    one_run: str | None
    """The id of the only run, where one was given."""
    logs: list[str]
    """Agents' own logs."""
    assertions: str | None
    """The assertions file, whose `model_pricing` counts; null for a suite."""
    project: str
    """The folder of the project."""


class GateFlags(Struct):
    """The flags by which the exit code was computed."""

    strict: bool
    """`--strict`"""
    allow_missing_trace: bool
    """`--allow-missing-trace`"""
    allow_missing_data: bool
    """`--allow-missing-data`"""
    gate_incomplete: Literal["error", "warn"]
    """`--gate-incomplete`"""
    gate_on: Literal["rate", "lower-bound"]
    """`--gate-on`"""


class Results(Struct):
    """The results of one `clawtrace eval` or `clawtrace run`."""

    schema: Literal["clawtrace.results/1"]
    """Name and version of this format: keys may be added, never changed."""
    clawtrace: str
    """Version of clawtrace that judged."""
    suite_id: str | None
    """The suite; null for recorded input and for a single command."""
    suite: Suite | None
    """What its author says of it; null like `suite_id`."""
    started_at: str
    """When the evaluation began, ISO 8601 in UTC."""
    source: ResultsSource | None
    """Where the runs are; null where they were not kept."""
    duration_ms: float | None
    """From the start to the last verdict; null when it was not measured."""
    gate: GateFlags
    """By what the exit code was computed."""
    exit_code: Literal[0, 1, 2, 3, 4]
    """0 passed, 1 failed, 2 usage, 3 undecided, 4 broken."""
    totals: Totals
    """Numbers of runs."""
    judging: JudgingTotals | None
    """What judging took; null where no judge was asked."""
    users: UserTotals | None
    """What simulated users took; null where none played."""
    cases: Iterable[Case]
    """One entry for each case and model, in the order of the suite."""
    thresholds: list[SuiteThreshold]
    """The suite's pass rate of each model that has a threshold in the suite's file."""
    not_run: list[NotRun]
    """Planned runs that were not started, or ended before they could be judged; a campaign with any out of quarantine has not passed."""
