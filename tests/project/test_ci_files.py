"""What other pipelines take from this repository: the GitHub Action, the GitLab template, the pre-commit hook, the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from not_run import not_run
from pipelines import run_the_action, shell

ROOT = Path(__file__).parents[2]
SPANS = ROOT / "tests" / "recordings" / "pydantic-ai" / "one_tool" / "traces.otlp.jsonl"
ASSERTIONS = {
    "good": {"type": "tool_was_called", "tool": "get_weather"},
    "bad": {"type": "tool_not_invoked", "tool": "get_weather"},
    "undecided": {"type": "no_span_errors"},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one suite for each kind of outcome, which replay a recording."""
    for name, assertion in ASSERTIONS.items():
        case = {
            "schema_version": 1,
            "case_id": name,
            "title": name,
            "tags": [name],
            "input": {"messages": []},
            "runner": {"type": "replay", "traces": [str(SPANS if name != "undecided" else tmp_path / "empty.jsonl")]},
            "assertions": [assertion],
        }
        suite = {"schema_version": 1, "suite_id": name, "title": name, "case_selection": {"include_tags": [name]}}
        for path, data in ((f"cases/{name}/test.yaml", case), (f"suites/{name}.yaml", suite)):
            (tmp_path / "configs" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "configs" / path).write_text(yaml.safe_dump(data), encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text('{"resourceSpans": []}\n', encoding="utf-8")
    (tmp_path / "clawtrace.yaml").write_text("{}\n", encoding="utf-8")
    return tmp_path


@pytest.mark.full
@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("suite", "undecided", "code", "ends"),
    [("good", "fail", 0, 0), ("bad", "fail", 1, 1), ("undecided", "fail", 3, 3), ("undecided", "warn", 3, 0)],
)
def test_the_github_action(project: Path, suite: str, undecided: str, code: int, ends: int) -> None:
    """Its step judges the suite, writes every report, annotates, fills the summary, and ends as its inputs say."""
    given = {"suite": suite, "undecided": undecided, "install": "", "args": "--case '*d*' --repeat 1"}
    done = run_the_action(project, given)

    assert done.returncode == ends, done.stdout + done.stderr
    assert (project / "output").read_text("utf-8").split() == [f"exit-code={code}"]
    assert suite in (project / "summary").read_text("utf-8")
    written = {path.name for path in (project / "clawtrace-results").iterdir()}
    assert written == {"summary.md", "results.xml", "results.json", "report.html"}
    assert ("::error" in done.stdout) is (code != 0)
    assert ("::warning title=clawtrace::" in done.stdout) is (undecided == "warn")


def test_the_action_names_only_inputs_that_it_has() -> None:
    """Every input is used, and every one that is used exists; by default its own checkout is installed."""
    text = (ROOT / "action.yml").read_text("utf-8")
    action = yaml.safe_load(text)

    assert set(re.findall(r"\binputs\.([\w-]+)", text)) == set(action["inputs"])
    assert action["inputs"]["install"]["default"] == "${{ github.action_path }}"
    assert (ROOT / "pyproject.toml").is_file()


@pytest.mark.full
@pytest.mark.parametrize(("suite", "code"), [("good", 0), ("bad", 1)])
def test_the_gitlab_template(project: Path, suite: str, code: int) -> None:
    """Its lines run in a plain shell; the artifacts that it names are there, whatever came out."""
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text("utf-8"))[".clawtrace"]
    variables = job["variables"] | {"CLAWTRACE_SUITE": suite, "CLAWTRACE_ARGS": "--repeat 1"}
    done = shell("\n".join(job["script"]), project, "sh", **variables)

    assert done.returncode == code, done.stdout + done.stderr
    named = {*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]}
    assert [name for name in named if not (project / name).is_file()] == []
    assert json.loads((project / "results.json").read_text("utf-8"))["exit_code"] == code


def test_the_pre_commit_hook(project: Path) -> None:
    """It accepts good files and refuses a bad one, and runs for the files of a project only."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    files = re.compile(hook["files"])
    assert all(
        files.search(name) for name in ("clawtrace.yaml", "configs/cases/good/test.yaml", "a/configs/suites/b.yml")
    )
    assert not any(files.search(name) for name in ("src/agent.py", "docs/configs.md", "other.yaml"))

    assert shell(hook["entry"], project).returncode == 0
    (project / "configs" / "suites" / "good.yaml").write_text("suite: good\n", encoding="utf-8")
    assert shell(hook["entry"], project).returncode == 2


def test_the_image_is_built_from_what_is_there() -> None:
    """What the Dockerfile copies exists and is not ignored; it installs this distribution, and starts its program."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE) for name in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()

    assert [name for name in copied if not (ROOT / name).exists() or f"!{name}" not in ignored] == []
    assert f" {project['name']} " in text
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert json.loads(entry)[0] in project["scripts"]
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)


def test_a_release_is_made_of_what_is_pinned() -> None:
    """Actions are named by commit and the image's base by digest; only the job that needs a right has it."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    rights = {name: job.get("permissions", {}) for name, job in workflow["jobs"].items()}

    assert [
        one for one in re.findall(r"uses: (.*)", text) if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one)
    ] == []
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:[\d.]+-slim@sha256:[0-9a-f]{64}", bases[0])
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, given in rights.items() if "write" in given.values()] == ["pypi", "image"]
    assert {"test", "build"} <= set(workflow["jobs"]["pypi"]["needs"])
    assert (ROOT / workflow["jobs"]["test"]["steps"][-1]["run"]).is_file()


@pytest.mark.full
def test_the_commands_of_the_image(tmp_path: Path) -> None:
    """From what the Dockerfile copies, and nothing else, its commands build and install a program that judges a recording."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    for names in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        for name in names.split()[:-1]:
            path = ROOT / name
            (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / name)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    commands = [command for line in re.findall(r"^RUN (.*)$", text, re.MULTILINE) for command in line.split("&&")]
    ours = [command.replace("/wheels", "wheels") for command in commands if command.split()[0] in ("pip", "rm")]
    assert len(ours) == 4
    path = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # The cache of this machine is used, which an image has not.
    script = "\n".join(ours).replace("--no-cache-dir ", "")
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")} | {"PIP_RETRIES": "1"}
    done = shell(script, tmp_path, "sh", **settings, PATH=path, PYTHONPATH="")
    if "Could not find a version" in done.stderr:
        not_run("registry", "this machine lacks a package registry")
    assert done.returncode == 0, done.stdout + done.stderr

    (tmp_path / "checks.yaml").write_text("assertions:\n  - {type: tool_was_called, tool: get_weather}\n", "utf-8")
    judge = f"{json.loads(re.findall(r'^ENTRYPOINT (.*)$', text, re.MULTILINE)[0])[0]} eval --traces {SPANS} --assertions checks.yaml"
    judged = shell(judge, tmp_path, "sh", PATH=path, PYTHONPATH="")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert [*tmp_path.glob("venv/lib/*/site-packages/clawtrace/cli/main.py")]
    assert not (tmp_path / "wheels").exists()
