"""The history of campaigns: what each case came to, campaign by campaign, when it broke and after which edit (`clawtrace.history/1`).

Each campaign's folder has a file with a line for each time that it was carried out, because the next time writes over the results.
The lines of one suite and run profile are one history, wherever they lie: an edited profile is another folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clawtrace import __version__
from clawtrace.campaign.comparing.measured import CaseKey
from clawtrace.errors import UsageError
from clawtrace.report.json_text import Struct
from clawtrace.report.results import LastGreen
from clawtrace.support.figures import utc_text
from clawtrace.support.files import whole_text_file
from clawtrace.verdicts.gating.pass_rate import PassRate, wilson

__all__ = [
    "FILE",
    "ON_A_PAGE",
    "History",
    "KeptCampaign",
    "KeptCase",
    "history_of",
    "history_until",
    "keep",
    "kept_in",
    "last_green",
    "since_green",
]

FILE = "history.jsonl"
SCHEMA = "clawtrace.history-line/1"
MOST_CAMPAIGNS = 200
MOST_BYTES = 8_000_000
"""A line has some 400 bytes for each case with each model; the oldest lines go first."""
ON_A_PAGE = 20
"""Campaigns of each case that a page holds, the newest."""
_PLACES = (FILE, f"*/{FILE}", f"*/*/{FILE}", f"campaigns/*/*/{FILE}")
"""Below a campaign's folder, a suite's, that of all campaigns, and that of results."""


class KeptCase(NamedTuple):
    """One campaign's entry for a case with a model."""

    case_id: str
    model_id: str | None
    exit_code: int
    """What its runs asked for together."""
    passed: int
    failed: int
    undecided: int
    broke: int
    not_run: int
    quarantined: bool
    reused: int
    fresh: tuple[int, int]
    """Of the passes and the failures, those of runs that were not reused."""
    measures: Mapping[str, float]
    """Medians, by name as in comparisons, and `score`; only what is known."""
    parts: Mapping[str, str]
    """One digest a part of what its agent was given and of what judged it, by the part's name in words."""
    unknown: str
    """Why an edit of its agent may not show in the parts; empty where each does."""
    edited: tuple[str, ...]
    """Which parts differ from the last campaign before in which it was green, in words."""

    @property
    def key(self) -> CaseKey:
        """Case and model."""
        return self.case_id, self.model_id

    @property
    def is_green(self) -> bool:
        """Whether all of its planned runs were made, and nothing that counts did not pass."""
        return not self.exit_code and not self.not_run and self.passed + self.failed > 0


class KeptCampaign(NamedTuple):
    """One line: a campaign that was carried out."""

    suite_id: str
    run_profile: str
    started_at: str
    """ISO 8601 in UTC."""
    cases: Mapping[CaseKey, KeptCase]
    folder: Path = Path()
    """The folder in which the entry was read."""

    def is_of(self, other: KeptCampaign) -> bool:
        """Whether both have the same suite and run profile: they are of one history."""
        return (self.suite_id, self.run_profile) == (other.suite_id, other.run_profile)


# --- the file ---------------------------------------------------------------------------------------------------------


def kept_in(folders: Iterable[Path]) -> list[KeptCampaign]:
    """Return the campaigns of folders that have a history, the oldest first; what is damaged is passed over."""
    found = [_campaign(line, folder) for folder in folders for line in _lines(folder)]
    return sorted((one for one in found if one is not None), key=lambda one: one.started_at)


def keep(campaign: KeptCampaign, folder: Path) -> None:
    """Add a campaign, which has cases, to the history of its folder, whose lock the caller holds.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    cases = list(campaign.cases.values())
    common = {name: part for name, part in cases[0].parts.items() if all(one.parts.get(name) == part for one in cases)}
    line = {
        "schema": SCHEMA,
        "clawtrace": __version__,
        "suite_id": campaign.suite_id,
        "run_profile": campaign.run_profile,
        "started_at": campaign.started_at,
        "parts": common,
        "cases": [
            one._asdict() | {"parts": {name: part for name, part in one.parts.items() if name not in common}}
            for one in cases
        ],
    }
    texts = _lines(folder)[-MOST_CAMPAIGNS + 1 :]
    texts.append(json.dumps(line, separators=(",", ":")))  # in ASCII: a file name that is no UTF-8 is an escape
    size = sum(map(len, texts))
    while size > MOST_BYTES and len(texts) > 1:
        size -= len(texts.pop(0))
    with whole_text_file(folder / FILE) as stream:
        stream.writelines(f"{text}\n" for text in texts)


def _lines(folder: Path) -> list[str]:
    try:
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.split("\n") if line]


def _campaign(line: str, folder: Path) -> KeptCampaign | None:
    try:
        said = json.loads(line)
        if said["schema"] != SCHEMA:
            return None
        cases = [_case(one, said["parts"]) for one in said["cases"]]
        names = {name: str(said[name]) for name in ("suite_id", "run_profile", "started_at")}
    except (ValueError, KeyError, TypeError):
        return None
    return KeptCampaign(**names, cases={one.key: one for one in cases}, folder=folder)


def _case(said: Mapping[str, Any], common: Mapping[str, str]) -> KeptCase:
    fields = {name: said[name] for name in KeptCase._fields}
    lists = {name: tuple(said[name]) for name in ("fresh", "edited")}
    return KeptCase(**fields | lists | {"parts": {**common, **said["parts"]}})


# --- what it says -----------------------------------------------------------------------------------------------------


class CampaignOfCase(Struct):
    """A case with a model in one campaign."""

    campaign: str
    """The campaign's folder, as `campaign` of `clawtrace compare` takes it."""
    started_at: str
    """The start of the campaign, ISO 8601 in UTC."""
    exit_code: int
    """The exit code of its runs together: 0 passed, 1 failed, 3 undecided, 4 broken."""
    passed: int
    """Runs that passed."""
    failed: int
    """Runs that failed."""
    undecided: int
    """Runs that did neither."""
    broke: int
    """Runs that broke before they could be judged."""
    not_run: int
    """Planned runs without a result."""
    reused: int
    """Runs that were taken over from an earlier campaign: of them nothing was measured anew."""
    quarantined: bool
    """Whether the case decided nothing."""
    pass_rate: float | None
    """`passed` divided by the runs that were judged."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95, as wide as undecided runs could make it."""
    measures: Mapping[str, float]
    """Medians of the runs whose trace is complete: `duration_ms`, `tokens`, `cost_usd`, `llm_calls`, `tool_calls`, `score`; what is unknown is left out."""
    edited: list[str]
    """What differs from the last campaign before in which the case was green, in words."""
    unknown: str
    """Why an edit of the agent may be missing there; empty where none can."""


class Flakiness(Struct):
    """Runs with the same inputs that were judged by the same, and came out differently."""

    otherwise: int
    """Decided runs on the smaller side, passes or failures, of all inputs with both."""
    runs: int
    """Decided runs of these inputs; a reused run counts once."""
    at_least: float
    """Lower end of the Wilson interval of `otherwise` of `runs`: cases are ranked by it."""


class CaseHistory(Struct):
    """A case with a model over the campaigns that have it."""

    case_id: str
    """The case."""
    model_id: str | None
    """The suite's model entry."""
    broke: CampaignOfCase | None
    """Of a case that is not green now, the first campaign since in which it was not; null where it is green."""
    last_green: LastGreen | None
    """The last campaign before that one in which it was green, and what was edited between them; null where it is green or never was."""
    flaky: Flakiness | None
    """Null where equal runs always came out alike."""
    campaigns: list[CampaignOfCase]
    """The oldest first."""


class SuiteHistory(Struct):
    """The campaigns of a suite with one run profile."""

    suite_id: str
    """The suite."""
    run_profile: str
    """Id of the run profile."""
    cases: list[CaseHistory]
    """Those that are not green first, of them those that were; then the flaky ones by rank, then the others; each as in the newest campaign."""


class History(Struct):
    """The results of the campaigns of a folder."""

    schema: Literal["clawtrace.history/1"]
    """Name and version of this format: keys may be added, never changed."""
    clawtrace: str
    """Version of clawtrace that read them."""
    suites: list[SuiteHistory]
    """In order of their first campaigns."""


def history_of(place: Path, newest: int = MOST_CAMPAIGNS) -> History:
    """Return the history of all campaigns below a folder: of results, of campaigns, of a suite, or of one campaign.

    Args:
        newest: campaigns of each case that are listed; all that are kept decide what the history says of it.

    Raises:
        UsageError: there is none.
    """
    campaigns = kept_in(file.parent for pattern in _PLACES for file in place.glob(pattern))
    if not campaigns:
        raise UsageError(
            f"There is no history in {str(place)!r}: `clawtrace eval --suite ID` adds to the `{FILE}` of its campaign's folder."
        )
    return _together(campaigns, newest)


def history_until(folder: Path, started_at: datetime) -> History | None:
    """Return the history of a campaign's suite and run profile up to that campaign; None where it is in none.

    Args:
        folder: of the campaign.
    """
    campaigns = kept_in(file.parent for file in folder.parent.glob(f"*/{FILE}"))
    own = next((one for one in campaigns if one.folder == folder and one.started_at == utc_text(started_at)), None)
    if own is None:
        return None
    return _together([one for one in campaigns if one.is_of(own) and one.started_at <= own.started_at], ON_A_PAGE)


def _together(campaigns: Sequence[KeptCampaign], newest: int) -> History:
    suites: dict[tuple[str, str], list[KeptCampaign]] = {}
    for one in campaigns:
        suites.setdefault((one.suite_id, one.run_profile), []).append(one)
    return History(
        schema="clawtrace.history/1",
        clawtrace=__version__,
        suites=[
            SuiteHistory(suite_id=key[0], run_profile=key[1], cases=_cases(of, newest)) for key, of in suites.items()
        ],
    )


def _cases(campaigns: Sequence[KeptCampaign], newest: int) -> list[CaseHistory]:
    keys = dict.fromkeys(key for one in reversed(campaigns) for key in one.cases)
    found = [_history(key, [one for one in campaigns if key in one.cases], newest) for key in keys]
    return sorted(
        found, key=lambda one: (one.broke is None, one.last_green is None, -(one.flaky.at_least if one.flaky else 0))
    )


def _history(key: CaseKey, campaigns: Sequence[KeptCampaign], newest: int) -> CaseHistory:
    points = [_point(one, one.cases[key]) for one in campaigns]
    green = [number for number, one in enumerate(campaigns) if one.cases[key].is_green]
    since = green[-1] + 1 if green else 0
    broke = next((number for number in range(since, len(points)) if points[number].exit_code), None)
    return CaseHistory(
        case_id=key[0],
        model_id=key[1],
        broke=None if broke is None else points[broke],
        last_green=None
        if broke is None or not green
        else since_green(campaigns[green[-1]], campaigns[broke].cases[key]),
        flaky=_flakiness(campaigns, key),
        campaigns=points[-newest:],
    )


def _point(campaign: KeptCampaign, case: KeptCase) -> CampaignOfCase:
    rate = PassRate(case.passed, case.failed, case.undecided)
    own = {"campaign": _name(campaign), "started_at": campaign.started_at}
    return CampaignOfCase.of(case, pass_rate=rate.rate, interval=rate.interval, **own)


def _name(campaign: KeptCampaign) -> str:
    return "/".join(campaign.folder.parts[-2:])


def last_green(key: CaseKey, campaigns: Sequence[KeptCampaign]) -> KeptCampaign | None:
    """Return the newest campaign in which a case was green."""
    return next((one for one in reversed(campaigns) if key in one.cases and one.cases[key].is_green), None)


def since_green(green: KeptCampaign, now: KeptCase) -> LastGreen:
    """Return what a report says of the last campaign in which a case was green.

    Args:
        now: the case in a later campaign.
    """
    return LastGreen(campaign=_name(green), started_at=green.started_at, edited=list(now.edited), unknown=now.unknown)


def _flakiness(campaigns: Sequence[KeptCampaign], key: CaseKey) -> Flakiness | None:
    """Return how often equal runs differ. Where edits of the agent may be unknown, only runs of one campaign are equal."""
    equal: dict[tuple[object, ...], tuple[int, int]] = {}
    for campaign in campaigns:
        case = campaign.cases[key]
        same = (*sorted(case.parts.items()), campaign.started_at if case.unknown else "")
        known = equal.get(same)
        passed, failed = (case.passed, case.failed) if known is None else case.fresh
        equal[same] = passed + (known or (0, 0))[0], failed + (known or (0, 0))[1]
    mixed = [counts for counts in equal.values() if all(counts)]
    if not mixed:
        return None
    otherwise, runs = sum(map(min, mixed)), sum(map(sum, mixed))
    return Flakiness(otherwise=otherwise, runs=runs, at_least=wilson(otherwise, runs)[0])
