"""What clawtrace itself costs in a large campaign: planning, a run, and memory, with an agent that does nothing.

    python benchmarks/campaign.py [CASES] [command|replay] [CONCURRENCY]

CASES cases × 3 models × 2 repetitions (1 000, that is 6 000 runs). With `command` the agent is `true`, which exports
nothing; with `replay` each run is the same recording of four spans. Printed are the CPU time of planning (files read and
checked, fingerprints, what could be reused), the CPU time and the clock's time a run, agents included, over the first and
the last third of the runs, the memory of the process after each third and when the reports are written, and what planning
costs when all runs are stored.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from clawtrace.campaign.planning.expand import Plan, PlannedRun, expand
from clawtrace.campaign.running.execute import CampaignResult, execute
from clawtrace.campaign.running.listener import Listener
from clawtrace.campaign.running.opening import open_campaign
from clawtrace.campaign.running.reuse import Decision, decide
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.model.verdict import RunResult
from clawtrace.report.base import CampaignReport, formats
from clawtrace.support.memory import collect_seldom
from clawtrace.verdicts.gating.gate import Gate

PLANNING_BAR_S = 2.0
RUN_BAR_MS = 30.0
RECORDING = Path(__file__).parents[1] / "tests/recordings/pydantic-ai/one_tool"

CASE = """\
schema_version: 1
case_id: c{number:04}
title: Case {number}
tags: [all]
runner: {runner}
input: {{messages: [{{role: user, content: Do task {number}.}}]}}
assertions:
  - {{type: agent_exit_code, value: 0}}
  - {{type: tool_not_invoked, tool: delete_{number}}}
"""


def write(root: Path, cases: int, kind: str, concurrency: int) -> None:
    """Write the project."""
    runner = {
        "command": "{type: command, command: ['true']}",
        "replay": f"{{type: replay, traces: [{str(RECORDING)!r}]}}",
    }[kind]
    files = {
        "clawtrace.yaml": "schema_version: 1\n",
        "configs/suites/s.yaml": "schema_version: 1\nsuite_id: s\ntitle: S\n"
        "models: [{model_id: m1}, {model_id: m2}, {model_id: m3}]\n",
        "configs/run_profiles/p.yaml": "schema_version: 1\nrun_profile_id: p\ntitle: P\n"
        f"execution_policy: {{max_concurrency: {concurrency}, run_repetitions: 2}}\n",
    }
    for number in range(cases):
        files[f"configs/cases/c{number:04}/test.yaml"] = CASE.format(number=number, runner=runner)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def planned() -> tuple[Plan, dict[str, Decision], float]:
    """Return the plan of the project in the working folder, and the seconds of CPU that it took."""
    began = cpu()
    suite = load_suite("s", load_project(Path.cwd(), os.environ), os.environ, run_profile="p")
    plan = expand(suite)
    decisions = decide(plan, os.environ, reuse=True)
    return plan, decisions, cpu() - began


def cpu() -> float:
    """Return the seconds of CPU of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def resident_mb() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Thirds(Listener):
    """Notes the CPU time, the clock and the memory at the start and after each third of the runs."""

    def __init__(self, runs: int) -> None:
        self._marks = [runs // 3, 2 * runs // 3, runs]
        self._ended = 0
        self.seen = [(cpu(), time.perf_counter(), resident_mb())]

    def finished(self, run: PlannedRun, result: RunResult) -> None:  # noqa: ARG002
        """Count a finished run."""
        self._ended += 1
        if self._ended in self._marks:
            self.seen.append((cpu(), time.perf_counter(), resident_mb()))


def write_reports(plan: Plan, done: CampaignResult) -> None:
    """Write every report of the campaign into its folder, as the command does."""
    report = CampaignReport.gated("s", datetime.fromtimestamp(done.started_at, UTC), done.results, Gate())
    for format_of in filter(lambda one: one.file_name, formats().values()):
        with (plan.folder / format_of.file_name).open("w", encoding="utf-8") as stream:
            format_of().write(report, stream)


def main() -> None:
    """Measure and print."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    kind = sys.argv[2] if len(sys.argv) > 2 else "command"
    concurrency = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    collect_seldom()  # as the command does
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write(Path(folder), cases, kind, concurrency)
        plan, decisions, seconds = planned()
        print(f"planning {len(plan.runs)} runs: {seconds:.2f} s of CPU, {seconds / PLANNING_BAR_S:.2f} x the bar")
        thirds = Thirds(len(plan.runs))
        with open_campaign(plan) as session:
            done = execute(plan, session, os.environ, thirds, decisions=decisions)
        assert len(done.results) == len(plan.runs), len(done.not_run)
        assert all(one.has_trace == (kind == "replay") for one in done.results)
        for name, first, last in (("first", 0, 1), ("last", 2, 3)):
            runs = len(plan.runs) / 3
            used, taken = (1000 * (thirds.seen[last][at] - thirds.seen[first][at]) / runs for at in (0, 1))
            print(
                f"{name} third: {used:.1f} ms of CPU a run ({used / RUN_BAR_MS:.2f} x the bar), {taken:.1f} ms by the clock"
            )
        write_reports(plan, done)
        print(
            "memory: " + ", ".join(f"{memory:.0f} MB" for memory in [*(seen[2] for seen in thirds.seen), resident_mb()])
        )
        _, decisions, seconds = planned()
        stored = sum(decision.stored is not None for decision in decisions.values())
        print(f"planning again, {stored} runs stored: {seconds:.2f} s of CPU, {seconds / PLANNING_BAR_S:.2f} x the bar")


if __name__ == "__main__":
    main()
