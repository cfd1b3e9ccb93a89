"""Baselines: campaigns kept under a name, to compare later ones with (spec: config.md §6).

A baseline is a copy of what a comparison needs, not a reference: the next run of the same suite and profile writes over
the campaign's folder, and a reference would then compare a campaign with itself. The copy holds no span, message or
argument, so it is small and can be kept in version control.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.campaign.comparing.measured import Measured, MeasuredRun, find_results, measured_of, nearest, read_json
from clawtrace.campaign.results.layout import write_json
from clawtrace.config.base import is_slug
from clawtrace.errors import InputError, UsageError

__all__ = ["Baseline", "baseline_names", "find_campaign", "is_baseline", "load_baseline", "set_baseline"]

SCHEMA = "clawtrace.baseline/1"


class Baseline(NamedTuple):
    """A campaign kept under a name."""

    name: str
    set_at: str
    """ISO 8601 in UTC."""
    source: str
    """The campaign's folder, relative to the folder of results where it lies in it."""
    measured: Measured


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


def _path(name: str, outputs: Path) -> Path:
    return outputs / "baselines" / f"{name}.json"


def _as_json(baseline: Baseline) -> dict[str, Any]:
    measured = baseline.measured
    return {
        "schema": SCHEMA,
        "name": baseline.name,
        "set_at": baseline.set_at,
        "source": baseline.source,
        "suite_id": measured.suite_id,
        "started_at": measured.started_at,
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
