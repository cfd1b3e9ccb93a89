"""The data of a campaign for comparisons: read from its results, or from a baseline made of them (spec: config.md §6).

A baseline is a copy of what a comparison needs, not a reference: the next run of the same suite and profile writes over
the campaign's folder, and a reference would then compare a campaign with itself. The copy holds no span, message or
argument, so it is small and can be kept in version control.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.campaign.results.stored import tokens_used, write_json
from clawtrace.config.base import is_slug
from clawtrace.errors import InputError, UsageError
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.verdicts.gating.pass_rate import Outcome

__all__ = [
    "MEASURES",
    "Baseline",
    "CaseKey",
    "Measured",
    "MeasuredRun",
    "baseline_names",
    "find_campaign",
    "find_results",
    "find_sides",
    "is_baseline",
    "load_baseline",
    "measured_of",
    "read_json",
    "set_baseline",
    "values_of",
]

MEASURES = ("duration_ms", "tokens", "cost_usd", "llm_calls", "tool_calls")
"""The measures compared in addition to the pass rate; higher is worse."""

RESULTS = "clawtrace.results/1"
REPORT = "report.json"

CaseKey = tuple[str, str | None]
"""Case and model."""


class MeasuredRun(NamedTuple):
    """The data of one run for comparisons."""

    outcome: Outcome | None
    """None: it broke before it could be judged, or nothing was asked of it."""
    values: Mapping[str, float]
    """By name in `MEASURES`; only what is known, and nothing of a run whose trace is not complete."""
    assertions: Mapping[str, str]
    """Status by the assertion's id."""
    run_id: str | None = None
    """None in baselines of earlier versions."""
    quarantined: bool = False
    """Whether its case is known to be flaky, and decides nothing."""
    stale: bool = False
    """Whether more of it arrived after its verdicts."""
    definitions: Mapping[str, Any] = {}
    """The exit code of each assertion, by its id."""


@dataclass(frozen=True)
class Measured:
    """A campaign as far as a comparison needs it."""

    suite_id: str | None
    started_at: str
    """ISO 8601 in UTC."""
    clawtrace: str
    """Version that judged."""
    cases: Mapping[CaseKey, Sequence[MeasuredRun]]
    not_run: int = 0
    """Planned runs without a result, those in quarantine not counted."""
    source: str = field(default="", compare=False)
    """The file that was read, as the user would write it."""

    @property
    def runs(self) -> int:
        """All runs."""
        return sum(map(len, self.cases.values()))


def find_results(value: str, outputs: Path, others: Sequence[str] = ()) -> Path:
    """Return the results file of a campaign.

    Args:
        value: a campaign's folder, a results file, or a campaign below ``campaigns`` of `outputs` such as
            ``smoke/default-0123456789ab``; ``smoke`` is enough where the suite has one campaign.
        others: further names that would have been valid, for the message.

    Raises:
        UsageError: there is no such campaign, several are meant, or it has no results yet.
    """
    campaigns = outputs / "campaigns"
    places = [Path(value), campaigns / value]
    for place in places:
        if place.is_file():
            return place
        if (place / REPORT).is_file():
            return place / REPORT
        inside = sorted(place.glob(f"*/{REPORT}"))
        if len(inside) == 1:
            return inside[0]
        if inside:
            names = ", ".join(repr(f"{value.rstrip('/')}/{path.parent.name}") for path in inside)
            raise UsageError(f"{value!r} has several campaigns; name one of them: {names}.")
    if any(place.is_dir() for place in places):
        raise UsageError(
            f"The folder {value!r} has no {REPORT}: it is not a campaign, or the campaign has not finished."
        )
    known = [
        *others,
        *sorted(path.parent.relative_to(campaigns).as_posix() for path in campaigns.glob(f"*/*/{REPORT}")),
    ]
    raise UsageError(f"There is no campaign {value!r}. {nearest(value, known, 'There are no campaigns yet.')}")


def nearest(name: str, known: Sequence[str], none: str) -> str:
    """Return the hint for a name that does not exist."""
    return did_you_mean(name, known) or (f"There are: {', '.join(known)}." if known else none)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        InputError: it cannot be read, or is not a JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise InputError(f"{str(path)!r} is not a JSON object.")
    return data


def measured_of(data: Mapping[str, Any], source: str) -> Measured:
    """Return what a comparison needs of the results of an evaluation.

    Args:
        data: `clawtrace.results/1`.
        source: what to call the file in messages.

    Raises:
        InputError: it is of another format.
    """
    if data.get("schema") != RESULTS:
        found = data.get("schema")
        raise InputError(f"{source!r} is not a results file: `schema` is {found!r}, expected {RESULTS!r}.")
    try:
        return Measured(
            suite_id=data["suite_id"],
            started_at=data["started_at"],
            clawtrace=data["clawtrace"],
            cases={
                (case["case_id"], case["model_id"]): tuple(_run(run) for run in case["runs"]) for case in data["cases"]
            },
            not_run=sum(not left.get("quarantined") for left in data.get("not_run", ())),
            source=source,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{source!r} is not complete ({type(error).__name__}: {error}); an earlier version may have written it. "
            "Run `clawtrace eval` again."
        ) from error


def _run(run: Mapping[str, Any]) -> MeasuredRun:
    trace = run["trace"]
    return MeasuredRun(
        outcome=run["outcome"],
        values=values_of(run["totals"], trace["duration_ms"]) if trace["complete"] is True else {},
        assertions={one["id"]: one["status"] for one in run["assertions"]},
        run_id=run["run_id"],
        quarantined=run.get("quarantined", False),
        stale=any(one.get("stale") for one in run["assertions"]),
        definitions={one["id"]: one.get("definition") for one in run["assertions"]},
    )


def values_of(totals: Mapping[str, Any], duration_ms: float | None) -> dict[str, float]:
    """Return what is known of a run whose trace is complete, by name in `MEASURES`.

    Args:
        totals: its row of `run_totals`.
    """
    found = {
        "duration_ms": duration_ms,
        "tokens": tokens_used(totals),
        **{name: totals.get(name) for name in ("cost_usd", "llm_calls", "tool_calls")},
    }
    return {name: float(value) for name, value in found.items() if value is not None}


# --- baselines --------------------------------------------------------------------------------------------------------


SCHEMA = "clawtrace.baseline/1"


class Baseline(NamedTuple):
    """A campaign kept under a name."""

    name: str
    set_at: str
    """ISO 8601 in UTC."""
    source: str
    """The campaign's folder, relative to the folder of results where it lies in it."""
    measured: Measured

    def labels(self) -> dict[str, Any]:
        """Return what its file says of it, the cases left out."""
        about = self._asdict() | {"suite_id": self.measured.suite_id, "started_at": self.measured.started_at}
        del about["measured"]
        return about


def baseline_names(outputs: Path) -> list[str]:
    """Return the names of all baselines, in alphabetical order."""
    return sorted(path.stem for path in (outputs / "baselines").glob("*.json") if is_slug(path.stem))


def set_baseline(name: str, campaign: str, outputs: Path, now: str) -> Baseline:
    """Keep a campaign under `name`; a baseline that had the name is replaced.

    Args:
        name: letters, digits, ``_``, ``-`` and ``.``.
        campaign: as `find_results` takes it.
        now: ISO 8601 in UTC.

    Raises:
        UsageError: the name cannot be one, or there is no such campaign.
        InputError: its results cannot be read.
    """
    if not is_slug(name):
        raise UsageError(f"A baseline's name has letters, digits, `_`, `-` and `.` only, found {name!r}.")
    file = find_results(campaign, outputs)
    folder = file.parent.resolve()
    inside = folder.is_relative_to(outputs.resolve())
    source = folder.relative_to(outputs.resolve()).as_posix() if inside else folder.name
    baseline = Baseline(name, now, source, measured_of(read_json(file), str(file)))
    write_json(_path(name, outputs), _as_json(baseline))
    return baseline


def load_baseline(name: str, outputs: Path) -> Baseline:
    """Return the baseline of that name.

    Raises:
        UsageError: there is none.
        InputError: its file cannot be read.
    """
    path = _path(name, outputs)
    if not is_slug(name) or not path.is_file():
        hint = nearest(name, baseline_names(outputs), "There are no baselines yet.")
        raise UsageError(f"There is no baseline {name!r}. {hint}")
    data = read_json(path)
    if data.get("schema") != SCHEMA:
        raise InputError(f"{str(path)!r} is not a baseline: `schema` is {data.get('schema')!r}, expected {SCHEMA!r}.")
    try:
        return Baseline(data["name"], data["set_at"], data["source"], _measured(data, name))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"The baseline {str(path)!r} is not complete ({type(error).__name__}: {error}).") from error


def is_baseline(value: str, outputs: Path) -> bool:
    """Return whether a user who says `value` means a baseline; a path goes before a baseline's name."""
    return value in baseline_names(outputs) and not Path(value).exists()


def find_campaign(value: str, outputs: Path) -> Measured:
    """Return the campaign or baseline that a user calls `value`; a path goes before a baseline's name.

    Raises:
        UsageError: there is neither, or both a baseline and a suite have that name.
        InputError: what was found cannot be read.
    """
    names = baseline_names(outputs)
    if is_baseline(value, outputs) and (outputs / "campaigns" / value).exists():
        raise UsageError(
            f"{value!r} is a baseline and a suite; give the file {str(_path(value, outputs))!r} or the campaign's folder."
        )
    if is_baseline(value, outputs):
        return load_baseline(value, outputs).measured
    data = read_json(find_results(value, outputs, names))
    return _measured(data, value) if data.get("schema") == SCHEMA else measured_of(data, value)


def find_sides(first: str, second: str, outputs: Path) -> tuple[Measured, Measured]:
    """Return two campaigns or baselines; ``CAMPAIGN@MODEL`` is the runs with that model, which are compared by case alone.

    Raises:
        UsageError: one is not there, or has no run with the model, or only one side names a model.
        InputError: what was found cannot be read.
    """
    named = [("", "", value) if Path(value).exists() else value.rpartition("@") for value in (first, second)]
    models = [model if at else None for _, at, model in named]
    if None not in models:
        one, other = (_of_model(find_campaign(campaign, outputs), model) for campaign, _, model in named)
        return one, other
    if models != [None, None]:
        raise UsageError("Name a model on both sides, such as `smoke@small smoke@large`, or on none.")
    return find_campaign(first, outputs), find_campaign(second, outputs)


def _of_model(measured: Measured, model: str) -> Measured:
    """Return the runs with a model, as if the suite listed no models."""
    cases: dict[CaseKey, Sequence[MeasuredRun]] = {
        (case_id, None): runs for (case_id, one), runs in measured.cases.items() if one == model
    }
    if not cases:
        hint = nearest(model, sorted({one for _, one in measured.cases if one}), "Its suite lists no models.")
        raise UsageError(f"{measured.source!r} has no runs with the model {model!r}. {hint}")
    return replace(measured, cases=cases)


def _path(name: str, outputs: Path) -> Path:
    return outputs / "baselines" / f"{name}.json"


def _as_json(baseline: Baseline) -> dict[str, Any]:
    measured = baseline.measured
    return {
        "schema": SCHEMA,
        **baseline.labels(),
        "clawtrace": measured.clawtrace,
        "not_run": measured.not_run,
        "cases": [
            {"case_id": case_id, "model_id": model_id, "runs": [run._asdict() for run in runs]}
            for (case_id, model_id), runs in measured.cases.items()
        ],
    }


def _measured(data: Mapping[str, Any], source: str) -> Measured:
    cases = {
        (case["case_id"], case["model_id"]): tuple(MeasuredRun(**run) for run in case["runs"]) for case in data["cases"]
    }
    return Measured(data["suite_id"], data["started_at"], data["clawtrace"], cases, data["not_run"], source)
