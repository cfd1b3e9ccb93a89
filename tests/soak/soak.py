"""Real frameworks against a model that behaves at random: every fact is true or unknown, and no verdict contradicts the truth.

    python tests/soak/soak.py [--framework NAME]… [--runs N] [--seed S] [--only RUN] [--released-before DAY] [--out FOLDER]

Each framework of `frameworks/` is run in processes that export to one receiver, many runs side by side. What is wrong is
written to the folder, as a recording with its truth, and the command that makes the run again is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claims import claims
from environments import CannotInstallError, Framework, frameworks, program_of, released_before
from random_model import RandomModel, run_of
from truth import Truth, as_recording, compare, may_be_reason, truth_of

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import Status
from clawtrace.session.session import Session
from clawtrace.store.export import export_run

_STANDS_IN: dict[str, tuple[str, tuple[str, ...]]] = {
    **{fact: ("llm_calls", (fact, "outcome")) for fact in (
        "llm_calls", "failed_llm_attempts", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
        "reasoning_tokens", "models",
    )},
    "arguments": ("tool_calls", ("name", "arguments")),
    "tool_calls": ("tool_calls", ("name",)),
    "delegations": ("agents", ("name", "parent_activation_no", "via")),
    "final_output": ("runs", ("final_output",)),
}  # fmt: skip
"""The relation that a fact stands in, and the columns whose doubts concern it."""
_SETTINGS = ("OPENINFERENCE_", "TRACELOOP_", "OTEL_INSTRUMENTATION_", "OTEL_ATTRIBUTE_", "OTEL_TRACES_SAMPLER")
"""Variables that instrumentations and SDKs read, and that are passed on: what is recorded with `OPENINFERENCE_HIDE_INPUTS=true`?"""
RUNS_A_PROCESS = 20
SECONDS_A_RUN = 30


@dataclass
class Tally:
    """What was found of one framework and set of instrumentations."""

    runs: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """Unknown facts with their reasons."""
    wrong: list[str] = field(default_factory=list)
    """In words, one finding each."""
    known: set[str] = field(default_factory=set)
    """Facts that were found in a run."""
    unrecorded: dict[str, str] = field(default_factory=dict)
    """Facts that an instrumentation is said never to record, with a run of which it was said."""

    def contradictions(self) -> list[str]:
        """Return in words which facts are said never to be recorded, and were."""
        both = sorted(self.known & self.unrecorded.keys())
        return [
            f"{self.unrecorded[fact]}: {fact} is said not to be recorded, and is known of other runs" for fact in both
        ]


@dataclass(frozen=True)
class Batch:
    """Runs of one process."""

    framework: Framework
    instrumentation: str
    seed: str
    numbers: Sequence[int]
    command: str = "soak.py --framework"
    """How such runs are made again, up to the framework's name."""
    claims: int = 24
    """How many assertions are asked of a run."""

    @property
    def client(self) -> str:
        """Name of the framework with its instrumentations."""
        framework = self.framework.name.partition("+")[0]
        return "+".join(filter(None, (framework, *self.instrumentation.split(","))))

    @property
    def again(self) -> str:
        """What makes the runs again, without the options that all programs have."""
        if self.framework.name == "pairs":
            return f"matrix.py {self.instrumentation.partition(',')[0]}"
        return f"{self.command} {self.framework.name}"

    def jobs(self, url: str) -> list[dict[str, Any]]:
        """Return what the program is to do."""
        return [self._job(number, url) for number in self.numbers]

    def run_id(self, number: int) -> str:
        """Return the id of a run."""
        return f"{self.client}.{number}"

    def _job(self, number: int, url: str) -> dict[str, Any]:
        run = self.run_id(number)
        chance = random.Random(f"job:{self.seed}:{run}")
        turns = [f"Task {number}.{turn}: do what is needed." for turn in range(chance.choice((1, 1, 1, 2, 3)))]
        return {
            "run": run, "url": f"{url}/{run}/v1", "turns": turns, "stream": chance.random() < 0.4,
            "count_stream": chance.random() < 0.8, "helper": chance.choice((None, *self.framework.helpers, *self.framework.patterns)),
        }  # fmt: skip


def play(
    batch: Batch, program: tuple[str, ...], session: Session, model: RandomModel, folder: Path
) -> dict[str, Truth]:
    """Run the program of one batch and return what truly happened, by run."""
    name = f"{batch.client}.{batch.numbers[0]}"
    jobs, log, said = (folder / f"{name}.{kind}" for kind in ("jobs.json", "log.jsonl", "output"))
    jobs.write_text(json.dumps(batch.jobs(model.url)), encoding="utf-8")
    log.touch()
    for number in batch.numbers:
        session.open_run(RunRecord(batch.run_id(number), batch.run_id(number)))
    environment = {
        **{key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")},
        "PYTHONPATH": str(Path(__file__).parent), "OTEL_EXPORTER_OTLP_ENDPOINT": session.endpoints.http, "OTEL_SERVICE_NAME": "soak",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        # As `clawtrace env` does: past 128 attributes an SDK drops the first, which is the id of the run; and MLflow writes an event for each token.
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1000000", "OTEL_SPAN_EVENT_COUNT_LIMIT": "1000000",
        **{key: value for key, value in os.environ.items() if key.startswith(_SETTINGS)},
    }  # fmt: skip
    command = [*program, batch.instrumentation, str(jobs), str(log)]
    with said.open("wb") as output:
        try:
            limit = 60 + SECONDS_A_RUN * len(batch.numbers)
            done = subprocess.run(command, env=environment, stdout=output, stderr=output, timeout=limit, check=False)
            if done.returncode:
                raise RuntimeError(f"{name} ended with {done.returncode}: {said.read_text(errors='replace')[-3000:]}")
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{name} did not end in time") from None
    if len(batch.numbers) == 1:
        sys.stderr.write(said.read_text(encoding="utf-8", errors="replace"))
    for number in batch.numbers:
        session.close_run(RunRecord(batch.run_id(number), batch.run_id(number)), processes_gone=True, end_run=True)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]  # of a text also U+2028 would end lines
    truths = {}
    for run in map(batch.run_id, batch.numbers):
        exchanges = [one for one in list(model.log) if run_of(one.path) == run]
        of_run = [line for line in lines if line["run"] == run]
        truths[run] = truth_of(exchanges, of_run, model.cut[run], batch.framework, batch.instrumentation)
    return truths


def judge(batch: Batch, truths: dict[str, Truth], session: Session, out: Path | None, *, keep: bool = False) -> Tally:
    """Compare what clawtrace says of the runs of a batch with what happened; `keep` records runs without a finding, too."""
    tally = Tally()
    for run, truth in truths.items():
        (facts,) = session.inspect([run])["runs"]
        tally.runs += 1
        findings = []
        for fact, (status, found, may_be) in compare(truth, facts, batch.framework.named_agents).items():
            tally.facts[status] += 1
            if status == "wrong":
                findings.append(f"{fact}: found {found!r}, true is {may_be!r}")
            unrecorded = f"{fact.replace('_', '-')}-not-recorded" in [gap["reason"] for gap in facts["gaps"]]
            if status == "true" and found and not unrecorded:  # a number of calls may be stated where none has a span
                tally.known.add(fact)
            if status == "unknown":
                reasons = _reasons(fact, facts)
                tally.unknown[f"{fact}: {', '.join(reasons) or '-'}"] += 1
                # Of a run that lost spans, or of tools where none ran, the gap says nothing of the instrumentation.
                none_ran = fact == "tool_calls" and not truth.tools
                never = unrecorded and not facts["incomplete_because"] and not none_ran
                tally.unrecorded |= {fact: run} if never else {}
                findings += [f"{fact}: {reason} is no reason" for reason in reasons if not may_be_reason(reason, truth)]
        for holds, assertion, status in _verdicts(run, truth, session, batch):
            contrary = status is (Status.FAIL if holds else Status.PASS)
            tally.verdicts["wrong" if contrary else "decided" if status in (Status.PASS, Status.FAIL) else "open"] += 1
            if contrary:
                findings.append(f"{json.dumps(assertion)} is {status}, but it is {holds}")
        if findings or keep:
            again = f"{batch.again} --seed {batch.seed} --only {run}"
            tally.wrong += [f"{run}: {finding}" for finding in findings]
            if out is not None:
                _record(
                    out / run.rpartition(".")[0] / f"{batch.seed}-{run.rpartition('.')[2]}",
                    truth,
                    session,
                    run,
                    [again, *findings],
                    named_agents=batch.framework.named_agents,
                )
    return tally


def _verdicts(run: str, truth: Truth, session: Session, batch: Any) -> Iterator[tuple[bool, dict[str, Any], Status]]:
    asked = list(claims(truth, batch.framework.named_agents))
    asked = random.Random(run).sample(asked, min(batch.claims, len(asked)))
    parsed = [parse_assertion({**assertion, "id": str(number)}) for number, (_, assertion) in enumerate(asked)]
    (result,) = session.evaluate([run], parsed, evidence_of_passes=False)
    for (holds, assertion), verdict in zip(asked, result.verdicts, strict=True):
        yield holds, assertion, verdict.status


def _reasons(fact: str, facts: dict[str, Any]) -> list[str]:
    if fact == "complete":
        return ["; ".join(facts["incomplete_because"])[:90]]
    relation, columns = _STANDS_IN.get(fact, (fact, ()))
    open_ones = [one for one in facts["doubts"] if one["column_name"] is None or one["column_name"] in columns]
    return sorted({one["reason"] for one in (*open_ones, *facts["gaps"]) if one["relation"] == relation})


def _record(
    folder: Path, truth: Truth, session: Session, run: str, notes: Sequence[str], *, named_agents: bool = True
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with session._store.lock:
        (folder / "traces.otlp.jsonl").write_text("\n".join(export_run(session._store, run)) + "\n", encoding="utf-8")
    written = as_recording(truth, run.rpartition(".")[0], "\n".join(notes), named_agents=named_agents)
    (folder / "truth.json").write_text(json.dumps(written, indent=1), encoding="utf-8")


def soak(
    chosen: Iterable[Framework],
    seed: str,
    numbers: Sequence[int],
    out: Path | None,
    only: str | None = None,
    *,
    keep: bool = False,
) -> dict[str, Tally]:
    """Run every framework with each of its sets of instrumentations; return what was found by their name.

    `only` makes one run, and `keep` records all of them, also those without a finding.
    """
    tallies: dict[str, Tally] = {}
    batches = []
    for framework in chosen:
        try:
            program = program_of(framework)
        except CannotInstallError as error:
            print(f"not run: {error}", file=sys.stderr)
            continue
        for instrumentation in framework.instrumentations:
            whole = Batch(framework, instrumentation, seed, numbers)
            if only is not None:
                if whole.client != only.rpartition(".")[0]:
                    continue
                whole = Batch(framework, instrumentation, seed, [int(only.rpartition(".")[2])])
            for start in range(0, len(whole.numbers), RUNS_A_PROCESS):
                part = whole.numbers[start : start + RUNS_A_PROCESS]
                batches.append((Batch(framework, instrumentation, seed, part), program))
    if not batches:
        return {}
    with (
        tempfile.TemporaryDirectory() as name,
        Session.open(receive=True) as session,
        ThreadPoolExecutor(2) as together,
    ):
        model = RandomModel(seed)
        model.start()

        def one(batch: Batch, program: tuple[str, ...]) -> tuple[Batch, Tally]:
            try:
                truths = play(batch, program, session, model, Path(name))
            except RuntimeError as error:
                if not batch.framework.before:
                    raise
                # The program is written for the packages of today.
                print(f"not run: {batch.client}: {str(error).strip().rpartition(chr(10))[2]}", file=sys.stderr)
                return batch, Tally()
            return batch, judge(batch, truths, session, out, keep=keep or only is not None)

        try:
            for future in [together.submit(one, *given) for given in batches]:
                batch, found = future.result()
                print(f"{batch.client}.{batch.numbers[0]}: {found.facts}, verdicts {found.verdicts}", file=sys.stderr)
                add(tallies.setdefault(batch.client, Tally()), found)
        finally:
            together.shutdown(cancel_futures=True)  # without the model the runs that are left would all fail
            model.stop()
    for tally in tallies.values():
        tally.wrong += tally.contradictions()
    return tallies


def add(total: Tally, part: Tally) -> None:
    """Add what was found of a part."""
    total.runs += part.runs
    total.facts += part.facts
    total.verdicts += part.verdicts
    total.unknown += part.unknown
    total.wrong += part.wrong
    total.known |= part.known
    total.unrecorded |= part.unrecorded


def table(tallies: dict[str, Tally]) -> Iterator[str]:
    """Yield the lines of the table framework × true, unknown, wrong."""
    yield f"{'client':36}{'runs':>6}{'true':>8}{'unknown':>9}{'wrong':>7}   {'decided':>8}{'open':>7}{'wrong':>7}"
    for client, tally in tallies.items():
        facts, verdicts = tally.facts, tally.verdicts
        yield (
            f"{client:36}{tally.runs:6}{facts['true']:8}{facts['unknown']:9}{facts['wrong']:7}   "
            f"{verdicts['decided']:8}{verdicts['open']:7}{verdicts['wrong']:7}"
        )


def report(tallies: dict[str, Tally], *, unknown: bool) -> int:
    """Print what was found; return what `exit_code` says of it."""
    for client, tally in tallies.items():
        print(*tally.wrong, sep="\n", end="\n" if tally.wrong else "")
        if unknown:
            print(*(f"{client}: {count:5} {reason}" for reason, count in tally.unknown.most_common()), sep="\n")
    print(*table(tallies), sep="\n")
    return exit_code(tallies)


def exit_code(tallies: dict[str, Tally]) -> int:
    """Return 0, 1 where something is wrong, or 2, with words, where nothing was run."""
    if not tallies:
        print("error: nothing was run", file=sys.stderr)
        return 2
    return int(any(tally.wrong for tally in tallies.values()))


def main() -> int:
    """Run what the command line says; return what `report` says of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--framework",
        action="append",
        help="name of a script in frameworks/, or of an environment of it, as openai-agents+mlflow; by default all",
    )
    parser.add_argument("--runs", type=int, default=500, help="runs of each framework and set of instrumentations")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", help="make this one run again, and record it in any case")
    parser.add_argument(
        "--released-before", metavar="DAY", help="use the packages of that day, as 2026-02-15, in place of pinned ones"
    )
    parser.add_argument("--out", type=Path, help="folder for recordings of what is wrong")
    parser.add_argument("--keep", action="store_true", help="record every run, for measure.py")
    parser.add_argument("--unknown", action="store_true", help="list what is unknown, by reason")
    options = parser.parse_args()
    known = frameworks()
    if strange := set(options.framework or ()) - set(known):
        parser.error(f"--framework {', '.join(sorted(strange))}: no such framework; known: {', '.join(sorted(known))}")
    chosen = [known[name] for name in options.framework or known]
    if options.released_before:
        chosen = [released_before(one, options.released_before) for one in chosen]
    tallies = soak(chosen, options.seed, range(options.runs), options.out, options.only, keep=options.keep)
    return report(tallies, unknown=options.unknown)


if __name__ == "__main__":
    sys.exit(main())
