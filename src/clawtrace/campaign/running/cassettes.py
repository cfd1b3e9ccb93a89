"""The cassettes of a campaign: opened before anything starts, shared by the runs that name the same file, written at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.config.files.document import display
from clawtrace.errors import CassetteMissError, UsageError
from clawtrace.runners.starting.command_turn import MISSES_FILE
from clawtrace.support.figures import amount

if TYPE_CHECKING:
    from clawtrace.cassettes.cassette import Cassette
    from clawtrace.cassettes.playing import Playback
    from clawtrace.model.verdict import RunResult
    from clawtrace.session.session import Session

__all__ = ["Cassettes", "key_names", "misses_of", "opened_cassettes", "passed_by", "tools_passed_by", "with_any_keys"]


@dataclass(frozen=True, slots=True)
class Cassettes:
    """The cassettes that the runs of a campaign use."""

    env: Mapping[str, str] = field(default_factory=dict)
    by_path: Mapping[Path, Cassette] = field(default_factory=dict)
    answered: dict[tuple[str, bool], set[int]] = field(default_factory=dict)
    """By folder of a run, and whether it was the user's model: the exchanges that answered its attempts."""

    @contextmanager
    def played(self, planned: PlannedRun, *, by_user: bool = False) -> Iterator[Playback | None]:
        """Run the server that a run's agent takes for its providers; None where the agent asks them itself.

        Args:
            by_user: it is for the model that plays the user, which no fault strikes.
        """
        use, faults = planned.case.cassette, () if by_user else planned.case.faults
        if by_user and planned.case.config.input.user is None:
            use = None
        if use is None and not faults:
            yield None
            return
        from clawtrace.cassettes.faults import Faults
        from clawtrace.cassettes.mcp_calls import with_mcp
        from clawtrace.cassettes.playing import Playback

        cassette = None if use is None else self.by_path[use.path]
        earlier = self.answered.setdefault((planned.folder, by_user), set())
        playback = with_mcp(Playback(cassette, self.env, Faults(faults), earlier=frozenset(earlier))).start()
        try:
            yield playback
        finally:
            playback.stop()
            earlier |= playback.used


@contextmanager
def opened_cassettes(plan: Plan, runs: Sequence[PlannedRun], env: Mapping[str, str]) -> Iterator[Cassettes]:
    """Open the cassettes of the runs whose agents are started.

    Raises:
        ConfigError: a file is no cassette.
        UsageError: a file cannot be written, another process records into it, or a case is left out that it is recorded for.
    """
    uses = {use.path: use for planned in runs if (use := planned.case.cassette) is not None}
    if not uses:
        yield Cassettes(env)
        return
    from clawtrace.cassettes.cassette import Cassette
    from clawtrace.cassettes.matching import Rules
    from clawtrace.config.projects.session_settings import session_settings

    ran = {planned.case.config.case_id for planned in runs}
    for case in plan.suite.cases:
        use = uses.get(case.cassette.path) if case.cassette is not None and case.config.case_id not in ran else None
        if use is not None and use.settings.mode == "record":
            raise UsageError(
                f"the cassette {display(use.path)} would be written anew without what the case `{case.config.case_id}` asks, which "
                "is not run: use `--cassette-mode auto`, or record all cases that share it"
            )
    redaction = session_settings(plan.suite.project).redaction
    with ExitStack() as stack:
        found = {}
        for path, use in uses.items():
            said = use.settings
            rules = Rules(tuple((one.pattern, one.as_) for one in said.normalise), tuple(said.ignore))
            found[path] = stack.enter_context(closing(Cassette(path, said.mode, rules, redaction, env)))
        yield Cassettes(env, found)


def misses_of(folder: Path, *playbacks: Playback | None) -> list[str]:
    """Return what was asked of cassettes that they do not hold: of a run's, and of those that its agent gave to programs."""
    told = folder / MISSES_FILE
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return [miss for one in playbacks if one is not None for miss in one.misses] + [json.loads(line) for line in lines]


def passed_by(models: Playback, totals: Mapping[str, Any]) -> str:
    """Return that more model calls are in a run's trace than came to its cassette, in one sentence; empty where none is.

    Args:
        totals: the run's row of `run_totals`.
    """
    calls = totals.get("llm_calls_low") or 0
    if calls <= models.asked:
        return ""
    return (
        f"cassette: the trace has {amount(calls, 'model call')}, and {amount(models.asked, 'request')} came to the cassette: the "
        "agent must take the addresses of its providers from the environment (OPENAI_BASE_URL and the like), else they are asked"
    )


def tools_passed_by(models: Playback, session: Session, found: RunResult) -> str:
    """Return that tools were perhaps called which a replay holds and was not asked for; empty where none was.

    Raises:
        CassetteMissError: the trace has such calls.
    """
    if not models.unasked_tools or found.totals.get("tool_calls_high") == 0:
        return ""
    (details,) = session.details([found.run_id])
    calls = details.data()["tool_calls"]
    called = {one["name"] for one in calls if one["certain"] and one["outcome"] == "ok"}
    to_do = "`clawtrace mcp-proxy` must take its place, started by the agent's own processes or with the variable CLAWTRACE_RUN_SERVER"
    if live := sorted(models.unasked_tools & called):
        raise CassetteMissError(
            f"cassette: the trace has calls of {', '.join(f'`{name}`' for name in live)} that no replay answered, though calls of an "
            f"MCP server's tool of that name are recorded: the server itself was asked. {to_do}. If the agent has another tool of "
            "that name, record its case into a separate cassette"
        )
    if models.tools:
        return ""
    return (
        "cassette: it holds calls of MCP servers, and none came: where this agent calls their tools, the server itself was asked; "
        f"{to_do}"
    )


def with_any_keys(planned: PlannedRun, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the caller's environment with something in place of keys that are not set, where a run may need none."""
    if planned.case.cassette is None or planned.case.cassette.settings.mode == "record":
        return env
    from clawtrace._scripted_model.http_server import placeholder_keys

    return {**env, **placeholder_keys("any", env), **{name: "any" for name in key_names(planned) if not env.get(name)}}


def key_names(planned: PlannedRun) -> list[str]:
    """Return the variables that the settings of a run name for keys."""
    user = planned.case.config.input.user
    named = (
        planned.asked.more.get("api_key_env"),
        getattr(planned.settings, "api_key_env", None),
        user and user.api_key_env,
    )
    return [str(name) for name in named if name]
