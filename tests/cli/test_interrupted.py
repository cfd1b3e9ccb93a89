"""Every write of a command fails, or is its last: each file is then the old one or the new one, and the next command works."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import yaml
from tests.cassettes.tapes import provider
from tests.cassettes.test_command import ASK
from tests.cli.conftest import PROGRAM, clean_environment, run_in_process

from not_run import not_run

pytestmark = pytest.mark.full

CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "ftruncate")
RARE = ("fsync", "fdatasync", "rename")
FASTER = ("--seccomp-bpf",)
"""With it no signal is delivered."""
HOW = ("signal=KILL", "error=ENOSPC", "error=EIO")
STRACE = ("strace", "-f", "-q", "-e", f"trace={','.join(CALLS)}")
RECORDING = Path(__file__).parents[1] / "recordings" / "ag2" / "tool_error" / "traces.otlp.jsonl"
CHECKS = "assertions:\n- {type: no_loops, max_repeats: 3}\n"
READ: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".xml": ElementTree.fromstring,
    ".yaml": lambda text: list(yaml.safe_load_all(text)),
}


class Job(NamedTuple):
    """A command that writes."""

    before: tuple[tuple[str, ...], ...]
    """Commands that were run before."""
    command: tuple[str, ...]
    writes: tuple[str, ...]
    """Globs of files that are there whole, of before or new, however the command ended."""


EVALUATED = ("eval", "--suite", "s", "--no-reuse")
REPORTED = (
    "eval",
    "--traces",
    "in.jsonl",
    "--assertions",
    "c.yaml",
    "--report",
    "json=r.json",
    "--report",
    "junit=r.xml",
)
ASKED = (
    "model-server",
    "--cassette",
    "tape.yaml",
    "--mode",
    "record",
    "--",
    sys.executable,
    "-c",
    ASK.replace("exit(7)", "exit(0)"),
    "hi",
)
JOBS = {
    "reports": Job((REPORTED,), REPORTED, ("r.*",)),
    "campaign": Job((EVALUATED,), EVALUATED, ("outputs/**/*.json",)),
    "baseline": Job(
        (EVALUATED, ("baseline", "set", "b", "s")), ("baseline", "set", "b", "s"), ("outputs/baselines/*.json",)
    ),
    "cassette": Job((ASKED,), ASKED, ("tape.yaml",)),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if shutil.which("strace") is None:
        not_run("strace", "strace, which makes system calls fail")
    with provider("hello") as url:
        yield url


def run(folder: Path, command: tuple[str, ...], url: str, *around: str) -> subprocess.CompletedProcess[str]:
    env = clean_environment(OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY="x")
    return subprocess.run(
        [*around, str(PROGRAM), *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def prepared(tmp_path: Path, address: str) -> Callable[[Job], Path]:
    """Make the folder in which a job's commands were run before."""

    def prepare(job: Job) -> Path:
        folder = tmp_path / "before"
        case = folder / "configs/cases/a/test.yaml"
        case.parent.mkdir(parents=True)
        case.write_text(
            "schema_version: 1\ncase_id: a\ntitle: A\ninput: {messages: [{role: user, content: go}]}\n"
            f"runner: {{type: command, command: '{sys.executable} -c \"print(1)\"'}}\n"
            "assertions: [{type: agent_exit_code, value: 0}]\n"
        )
        (folder / "configs/suites").mkdir()
        (folder / "configs/suites/s.yaml").write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
        (folder / "clawtrace.yaml").write_text("schema_version: 1\n")
        (folder / "in.jsonl").write_bytes(RECORDING.read_bytes())
        (folder / "c.yaml").write_text(CHECKS)
        for command in job.before:
            done = run(folder, command, address)
            assert done.returncode == 0, done.stderr
        return folder

    return prepare


@pytest.mark.parametrize("name", JOBS)
def test_at_every_write(name: str, prepared: Callable[[Job], Path], address: str, tmp_path: Path) -> None:
    """A kill at each call that makes a file durable; else each call fails in one of three ways, in turn."""
    job = JOBS[name]
    before, struck = prepared(job), 0
    for call, (way, how) in itertools.product(CALLS, enumerate(HOW)):
        for number in range(1, 400) if call in RARE and "KILL" in how else range(1 + way, 400, 3):
            folder, log = tmp_path / "now", tmp_path / "log"
            shutil.copytree(before, folder, symlinks=True)
            done = run(
                folder,
                job.command,
                address,
                *STRACE,
                *([] if "KILL" in how else FASTER),
                "-o",
                str(log),
                "-e",
                f"inject={call}:{how}:when={number}",
            )
            said = log.read_text(errors="replace").splitlines()
            where = next((line for line in said if "INJECTED" in line or "killed by" in line), "")
            if where:
                struck += 1
                check(job, folder, done, address, where)
            shutil.rmtree(folder)
            if not where:
                break
    assert struck > 3


def check(job: Job, folder: Path, done: subprocess.CompletedProcess[str], url: str, where: str) -> None:
    """Whatever happened is said without a traceback of clawtrace's, every file is whole, and the command works again."""
    assert "bug in clawtrace" not in done.stderr, where
    assert "/clawtrace/" not in done.stderr or "Traceback" not in done.stderr, where
    files = [file for pattern in job.writes for file in folder.glob(pattern)]
    assert files, where
    for file in files:
        READ[file.suffix](file.read_text())
    starts_another = "--" in job.command
    again = run(folder, job.command, url) if starts_another else run_in_process(folder, *job.command)
    assert again.returncode == 0, f"{where}: {again.stderr}"
