"""Coding agents against a model that behaves at random: every fact is true or unknown, and no verdict contradicts the truth.

    python tests/soak/cli_soak.py [--client NAME]… [--runs N] [--seed S] [--only RUN] [--out FOLDER] [--unknown]

Each run is one process of the program from npm for each turn, in a new workspace and home, as `clawtrace run` starts it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "live_agents"))
sys.path.insert(0, str(Path(__file__).parents[1] / "live_openclaw"))

import agents_install
import openclaw_install
from cli_clients import AGENTS, MARKS, Client, Place, results, task_of
from cli_model import CliMind
from openclaw_client import OPENCLAWS
from random_model import LAST_TOOLS, UNKNOWN_TOOLS, RandomModel, run_of
from truth import RanCommand, Truth

from clawtrace.model.run import RunRecord
from clawtrace.runners.base import TelemetryTarget
from clawtrace.runners.starting.environment import with_telemetry
from clawtrace.session.session import Session
from clawtrace.testing import Exchange
from soak import Tally, add, judge, report

CLIENTS = {client.name: client for client in (*AGENTS, *OPENCLAWS)}
TRANSCRIPTS = "transcripts"
"""Added to the name of a client whose runs are judged again with what these say."""


class RanTooLongError(Exception):
    """Which run did not end in its time."""


@dataclass
class Run:
    """One run: its agent, its folders, and its process while it is there."""

    client: Client
    run_id: str
    seed: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    killed: bool = False
    minds: list[CliMind] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        """Folder that the agent works in."""
        return self.folder / "work"

    def mind(self, chance: random.Random) -> CliMind:
        """Return what answers the run."""
        self.minds.append(CliMind(chance, self.client, self.workspace, self.kill))
        return self.minds[-1]

    def kill(self) -> None:
        """End the agent in the middle of its work."""
        self.killed = True
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def turns(self) -> list[str]:
        """Return what the user says."""
        chance = random.Random(f"job:{self.seed}:{self.run_id}")
        number = self.run_id.rpartition(".")[2]
        return [f"Task {number}.{turn}: do what is needed." for turn in range(chance.choice((1, 1, 2)))]


def play(run: Run, installed: tuple[Path, Mapping[str, str]], session: Session, model: RandomModel) -> Truth:
    """Make one run and return what truly happened.

    Args:
        run: not begun.
        installed: folder of its programs, and more of its environment.
        session: that receives its spans.
        model: that it asks.
    """
    programs, more = installed
    trace_id, parent = os.urandom(16).hex(), os.urandom(8).hex()
    record = RunRecord(run.run_id, run.run_id, trace_id=trace_id, parent_span_id=parent, workspace=str(run.workspace))
    session.open_run(record)
    url = f"{model.url}/{run.run_id}"
    run.workspace.mkdir(parents=True)
    (run.workspace / "notes.txt").write_text("One note.\n")
    home = run.folder / "home"
    for name, text in run.client.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text.replace("{url}", url), encoding="utf-8")
    home.mkdir(exist_ok=True)
    target = TelemetryTarget(
        session.endpoints.grpc, session.endpoints.http, trace_id, parent, {}, session.endpoints.token
    )
    own = {name: value.replace("{url}", url).replace("{home}", str(home)) for name, value in run.client.env.items()}
    own |= {**more, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    env = with_telemetry({"LANG": "C.UTF-8"}, own, target, "http/protobuf", run.run_id)
    started, code = time.time_ns(), 0
    place = Place(run.folder, run.workspace, programs, url)
    for number, line in enumerate(run.client.commands(place, run.turns())):
        command = [part.replace("$OTLP", env["OTEL_EXPORTER_OTLP_ENDPOINT"]) for part in line]
        with (run.folder / f"output.{number}").open("wb") as said:
            run.process = subprocess.Popen(
                command, cwd=run.workspace, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )  # fmt: skip
            try:
                code = run.process.wait(run.client.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(run.process.pid, signal.SIGKILL)
                raise RanTooLongError(f"{run.run_id} did not end in time") from None
        if code:
            break
    closed = record._replace(
        started_ns=started, ended_ns=time.time_ns(), agent_exit_code=None if run.killed else code,
        run_status="failed" if code else "success", ended_by_signal=-code if code < 0 else None,
    )  # fmt: skip
    session.close_run(closed, processes_gone=True)
    exchanges = [one for one in list(model.log) if run_of(one.path) == run.run_id]
    return truth_of(run, exchanges, model.cut[run.run_id], failed=bool(code))


def truth_of(run: Run, exchanges: Sequence[Exchange], cut: int, *, failed: bool) -> Truth:
    """Return what happened in one run, from the model's log and from what the agent sent to the model about its tools."""
    client = run.client
    said = {_plain(call): (text, bad) for one in exchanges for call, text, bad in results(one.request)}
    marks = {
        mark for path in run.folder.rglob(MARKS) for mark in path.read_text().split()
    }  # sub-agents work in other folders
    codes = run.minds[0].codes if run.minds else {}
    ids = Counter(call["id"] for one in exchanges for call in one.tool_calls)
    tools, refused, unclear = [], [], []
    for one in (one for one in exchanges if one.status == 200):
        for call in one.tool_calls:
            if call["name"] in LAST_TOOLS:
                continue
            text, bad = said.get(_plain(call["id"]), (None, True))
            mark = re.search(r"mark-\d+", str(call["arguments"]))
            shared = ids[call["id"]] > 1  # whose result it is, is not known, and some agents send one for each id
            if shared:
                text, bad = ("ran", False) if mark and mark[0] in marks else (None, False)
            bad = (
                bad
                or bool(mark and codes.get(mark[0]))
                or (text is not None and re.search(client.failed, text) is not None)
            )
            noted = {
                "name": call["name"],
                "arguments": call["arguments"],
                "error": (text or "no result") if bad else None,
                "start": one.at,
            }
            if shared and text is None:
                unclear += [noted, noted | {"error": "no result"}]
            elif text is None and call["name"] in UNKNOWN_TOOLS:
                refused.append(call)
            elif text is None or re.search(client.unclear, text):
                unclear.append(noted)
            elif re.search(client.refused, text):
                refused.append(call)
            else:
                tools.append(noted)
    answered = [one for one in exchanges if one.status == 200]
    tasks = [(one, task) for one in exchanges if (task := task_of(one.request)) is not None]
    agents = [client.main or client.name, *([client.helper_name] if any(task[0] for _, task in tasks) else [])]
    last = next((one for one, task in reversed(tasks) if not task[0]), None)
    output = None if failed or last is None or last.status != 200 or last.tool_calls else last.text
    commands = tuple(RanCommand(mark, mark in marks, code) for mark, code in codes.items())
    files = tuple(_files(run, answered))
    raised = "the agent failed" if failed else None
    return Truth(
        answered, [one for one in exchanges if one.status != 200], tools, refused, agents, output, raised, cut, client.counts_itself,
        client.helper_name, tuple(unclear), commands, files, len(agents) == 1,
    )  # fmt: skip


def _plain(call: str) -> str:
    """Return the id of a call without the signs that some clients leave out."""
    return re.sub(r"\W|_", "", call)


def _files(run: Run, answered: Sequence[Exchange]) -> Any:
    if run.client.write is None:
        return
    tool, key, _ = run.client.write
    for call in (call for one in answered for call in one.tool_calls if call["name"] == tool):
        if isinstance(call["arguments"], dict) and isinstance(call["arguments"].get(key), str):
            name = Path(call["arguments"][key]).name
            yield name, (run.workspace / name).exists()


@dataclass(frozen=True)
class Judged:
    """What `soak.judge` wants to know of a run."""

    framework: Client
    seed: str
    claims: int = 60

    @property
    def again(self) -> str:
        """What makes the runs again, without the options that all programs have."""
        return f"cli_soak.py --client {self.framework.name}"


def soak(
    clients: Sequence[Client], seed: str, numbers: Sequence[int], out: Path | None, only: str | None = None
) -> dict[str, Tally]:
    """Make runs of every client; return what was found by its name."""
    tallies: dict[str, Tally] = {}
    runs: dict[str, Run] = {}
    model = RandomModel(seed, lambda run, chance: runs[run].mind(chance))
    with (
        tempfile.TemporaryDirectory() as name,
        Session.open(receive=True) as session,
        ExitStack() as stack,
        ThreadPoolExecutor(2) as together,
    ):
        model.start()

        def one(run: Run, installed: tuple[Path, Mapping[str, str]]) -> tuple[Run, dict[str, Tally]]:
            truth = {run.run_id: play(run, installed, session, model)}
            judged = Judged(run.client, seed)
            found = {run.client.name: judge(judged, truth, session, out, keep=only is not None)}
            if logs := run.client.logs(run.folder):
                session.load_logs(logs, lambda _: run.run_id)
                kept = out and out / TRANSCRIPTS
                name = f"{run.client.name}+{TRANSCRIPTS}"
                found[name] = judge(judged, truth, session, kept, keep=only is not None)
                if kept and (only or found[name].wrong):
                    places = kept / run.client.name / f"{seed}-{run.run_id.rpartition('.')[2]}"
                    for number, log in enumerate(logs):
                        shutil.copyfile(log, places / f"{number}.jsonl")
            return run, found

        try:
            jobs = []
            for client in clients:
                try:
                    installed = client.install(stack)
                except (agents_install.CannotInstallError, openclaw_install.CannotInstallError) as error:
                    print(f"not run: {error}", file=sys.stderr)
                    continue
                for number in numbers:
                    run = Run(client, f"{client.name}.{number}", seed, Path(name) / f"{client.name}.{number}")
                    if only in (None, run.run_id):
                        runs[run.run_id] = run
                        jobs.append(together.submit(one, run, installed))
            for job in jobs:
                try:
                    run, found = job.result()
                except RanTooLongError as error:
                    print(f"not judged: {error}", file=sys.stderr)
                    continue
                if only is not None:
                    print(
                        *(path.read_text(errors="replace") for path in sorted(run.folder.glob("output.*"))),
                        file=sys.stderr,
                    )
                for judged, tally in found.items():
                    print(f"{run.run_id} as {judged}: {tally.facts}, verdicts {tally.verdicts}", file=sys.stderr)
                    add(tallies.setdefault(judged, Tally()), tally)
        finally:
            together.shutdown(cancel_futures=True)  # without the model the runs that are left would all fail
            model.stop()
    for tally in tallies.values():
        tally.wrong += tally.contradictions()
    return tallies


def main() -> int:
    """Run what the command line says; return what `report` says of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--client", action="append", choices=list(CLIENTS), help="by default all")
    parser.add_argument("--runs", type=int, default=30, help="runs of each client")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", help="make this one run again, and record it in any case")
    parser.add_argument("--out", type=Path, help="folder for recordings of what is wrong")
    parser.add_argument("--unknown", action="store_true", help="list what is unknown, by reason")
    options = parser.parse_args()
    chosen = [CLIENTS[name] for name in options.client or CLIENTS]
    numbers = [int(options.only.rpartition(".")[2])] if options.only else range(options.runs)
    tallies = soak(chosen, options.seed, numbers, options.out, options.only)
    return report(tallies, unknown=options.unknown)


if __name__ == "__main__":
    sys.exit(main())
