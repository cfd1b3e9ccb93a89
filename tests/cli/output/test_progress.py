"""What a person sees while a command takes long: what is being done and how far it is, on standard error."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from click.testing import Result
from tests.cli.conftest import PROGRAM, clean_environment

from clawtrace.cli.output import campaign_progress as _campaign
from clawtrace.cli.output import progress as _progress
from clawtrace.model.verdict import RunResult, Status
from clawtrace.session.session import Session

CHECKS = "assertions: [{type: tool_was_called, tool: get_weather}, {type: no_span_errors}]"


@pytest.fixture
def recording(recordings: Path) -> Path:
    return recordings / "pydantic-ai" / "one_tool" / "traces.otlp.jsonl"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What the commands say that they do."""
    said: list[tuple[str, int, int]] = []

    @contextmanager
    def working() -> Iterator[Callable[[str, int, int], None]]:
        yield lambda *one: said.append(one)

    monkeypatch.setattr(_progress, "working", working)
    return said


def check_reading(seen: list[tuple[str, int, int]], recording: Path) -> None:
    """The whole file was read and its spans became facts, step by step."""
    read = [(done, total) for what, done, total in seen if what == "reading recordings"]
    facts = [(done, total) for what, done, total in seen if what == "computing what the spans say"]

    assert read
    assert read[-1] == (recording.stat().st_size,) * 2
    assert facts[0][0] == 0 < facts[0][1]
    assert facts[-1][0] == facts[-1][1]
    assert len(facts) >= 4


def test_judging_says_how_far_it_is(invoke: Callable[..., Result], seen, recording, tmp_path) -> None:
    """Reading by bytes, facts by spans, judging by assertions, and each report that is written."""
    Path("checks.yaml").write_text(CHECKS, encoding="utf-8")
    result = invoke("eval", "--traces", recording, "--assertions", "checks.yaml", "--report", "json=r.json")

    assert result.exit_code == 0, result.output
    check_reading(seen, recording)
    assert [entry for entry in seen if entry[0] == "judging"] == [("judging", done, 2) for done in range(3)]
    assert seen[-1] == ("writing the report json", 0, 1)


def test_reading_commands_say_how_far_they_are(invoke: Callable[..., Result], seen, recording) -> None:
    """`inspect` and `query` alike."""
    for command, last in ((("inspect",), "reading the facts"), (("query", "SELECT 1", "--traces"), "asking the query")):
        seen.clear()
        assert invoke(*command, recording).exit_code == 0
        check_reading(seen, recording)
        assert seen[-1] == (last, 0, 0)


def test_a_wrapped_command_is_silent_until_it_ended(invoke: Callable[..., Result], seen) -> None:
    """The terminal is the command's; what is done with its spans comes after it."""
    marks = f"import os; os.write(1, b'%d' % {len(seen)})"
    Path("checks.yaml").write_text("assertions: [{type: agent_exit_code, value: 0}]", encoding="utf-8")
    result = invoke("run", "--assertions", "checks.yaml", "--", sys.executable, "-c", marks)

    assert result.exit_code in (0, 3), result.output
    assert [what for what, *_ in seen if what not in ("judging", "asking agent_exit_code")] == [
        "computing what the spans say"
    ] * 4 + ["reading the trees of spans", "reading the facts"]


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal, a line says where it is each time that it has taken long again."""
    monkeypatch.setattr(_progress, "Timer", Held)
    with _progress.working() as working:
        assert Held.waiting == []
        working("reading recordings", 1, 4)
        working("reading recordings", 2, 4)
        Held.waiting.pop().over()
        working("reading the facts", 0, 0)
        Held.waiting.pop().over()

    assert capsys.readouterr().err.splitlines() == ["reading recordings 50 %", "reading the facts"]
    Held.waiting.pop().over()  # it had begun when the block ended
    assert capsys.readouterr().err == ""


def test_of_two_the_inner_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said around it meanwhile is not shown in turns with it, and is shown again afterwards."""
    monkeypatch.setattr(_progress, "Timer", Held)
    Held.waiting.clear()
    with _progress.working() as around:
        around("asking the query", 0, 0)
        with _progress.working() as inner:
            around("asking the query", 1, 4)
            inner("putting faults into the run", 0, 0)
            for timer in [*Held.waiting]:
                timer.over()
        Held.waiting.clear()
        around("asking the query", 1, 2)
        Held.waiting.pop().over()

    assert capsys.readouterr().err.splitlines() == ["putting faults into the run", "asking the query 50 %"]


class TestLines:
    """A log of a campaign, without a terminal."""

    @staticmethod
    def campaign(statuses: Sequence[Status | None], *, quiet: bool = False) -> None:
        """Let the runs of a campaign end; None is one that was not run."""
        runs = [planned(f"case_{number}") for number in range(len(statuses))]
        with _campaign.progress(quiet=quiet) as listener:
            listener.planned(SimpleNamespace(runs=runs))
            for run, status in zip(runs, statuses, strict=True):
                listener.started(run)
                if status is None:
                    listener.left_out(run, "interrupted")
                else:
                    listener.finished(run, ended(run, status))

    def test_a_small_campaign_has_a_line_for_each_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.campaign([Status.PASS, Status.FAIL, None])

        assert capsys.readouterr().err.splitlines() == [
            "[1/3] pass case_0 [small] #1 in 1.5 s",
            "[2/3] fail case_1 [small] #1 in 1.5 s",
        ]

    def test_with_quiet_it_has_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.campaign([Status.FAIL], quiet=True)

        assert capsys.readouterr().err == ""

    def test_a_large_one_has_those_of_failed_runs_and_one_at_the_end(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.campaign([Status.PASS] * 30 + [Status.INCONCLUSIVE] + [Status.PASS] * 30)

        assert capsys.readouterr().err.splitlines() == [
            "[31/61] inconclusive case_30 [small] #1 in 1.5 s",
            "[61/61] 1 undecided, 244 spans, $0.6100",
        ]

    def test_one_of_which_all_fails_has_no_more_lines_than_a_reader_wants(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.campaign([Status.FAIL] * 200)

        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == _campaign.MOST_LINES + 1
        assert lines[-1] == "[200/200] 200 failed, 800 spans, $2.00"

    def test_a_long_campaign_says_now_and_then_how_far_it_is(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        seconds = iter(range(1_000))
        monkeypatch.setattr(_campaign, "monotonic", lambda: next(seconds))
        self.campaign([Status.PASS] * 60)

        lines = capsys.readouterr().err.splitlines()
        assert 3 <= len(lines) <= 7
        assert lines[-1] == "[60/60] 240 spans, $0.6000"


def planned(case_id: str) -> Any:
    """A planned run, as far as progress reads it."""
    case = SimpleNamespace(config=SimpleNamespace(case_id=case_id))
    return SimpleNamespace(run_id=f"suite/small/{case_id}/1-aa", case=case, model_id="small", repetition=1)


def ended(run: Any, status: Status) -> RunResult:
    """Return what came of a run."""
    more = {"spans": 4, "duration_ms": 1_500.0, "totals": {"cost_low": 0.01}}
    return RunResult(run.run_id, run.case.config.case_id, "small", 1, status, (), **more)


class Held:
    """A timer whose time is over when the test says so."""

    waiting: ClassVar[list[Held]] = []

    def __init__(self, seconds: float, over: Callable[[], None]) -> None:
        assert seconds == _progress.LOGGED_SECONDS
        self.over = over

    def start(self) -> None:
        self.waiting.append(self)

    def cancel(self) -> None:
        """Do nothing."""


@pytest.mark.full
def test_a_terminal_shows_it_after_two_seconds(recording: Path, tmp_path: Path) -> None:
    """A recording that comes slowly through a pipe: its reading is shown while it lasts, and gone when it is over."""
    ours, theirs = pty.openpty()
    command = [str(PROGRAM), "inspect", "-", "--one-run"]
    environment = clean_environment(TERM="xterm")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=environment
    )
    os.close(theirs)
    assert process.stdin is not None
    first, *rest = recording.read_bytes().splitlines(keepends=True)
    process.stdin.write(first)
    process.stdin.flush()
    shown = b""
    while b"reading recordings" not in shown:
        shown += os.read(ours, 4_096)
    process.stdin.write(b"".join(rest))
    out, _ = process.communicate()
    os.close(ours)

    assert process.returncode == 0
    assert b"get_weather" in out


@pytest.mark.parametrize(("flags", "trees"), [((), 1), (("--quiet",), 0)])
def test_a_tree_that_is_not_shown_is_not_read(
    invoke: Callable[..., Result], recording: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], trees: int
) -> None:
    read: list[str] = []
    tree = Session.tree
    monkeypatch.setattr(Session, "tree", lambda self, run_id: read.append(run_id) or tree(self, run_id))
    Path("checks.yaml").write_text("assertions: [{type: tool_not_invoked, tool: get_weather}]", encoding="utf-8")

    result = invoke("eval", "--traces", recording, "--assertions", "checks.yaml", *flags)

    assert result.exit_code == 1, result.output
    assert len(read) == trees
