"""What other pipelines take from this repository: the GitHub Action, the GitLab template, the pre-commit hook, the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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


class PullRequest:
    """Comments of one pull request, behind the part of GitHub's API that the action uses."""

    def __init__(self) -> None:
        others = [
            {"id": number, "body": None if number else "see `<!-- clawtrace .%20good -->`"} for number in range(100)
        ]
        self.comments: list[dict[str, Any]] = others
        self.asked: list[str] = []
        self.refuses = False
        self.variables: dict[str, str] = {}

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self.refuses and method != "GET":
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST":
            self.comments.append({"id": len(self.comments), **body})
            return 201, self.comments[-1]
        if method == "PATCH":
            comment = self.comments[int(path.rpartition("/")[2])]
            comment.update(body)
            return 200, comment
        page = int(path.rpartition("=")[2])
        return 200, self.comments[(page - 1) * 100 : page * 100]


@pytest.fixture
def pull_request(tmp_path: Path) -> Iterator[PullRequest]:
    """A fake of GitHub's API on a socket; `variables` are what a workflow has to reach it."""
    fake = PullRequest()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            assert self.headers["Authorization"] == "Bearer secret"
            status, answer = fake.answer(self.command, self.path, json.loads(sent or b"{}"))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _do  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fake.variables = {
            "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
            "GITHUB_REPOSITORY": "me/agents",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_RUN_ID": "99",
        }
        yield fake
        server.shutdown()


@pytest.mark.full
@pytest.mark.needs("bash")
def test_the_comment_of_the_action_updates_itself(project: Path, pull_request: PullRequest) -> None:
    """Green is a few lines; a planted regression replaces them with its culprit; without permission a warning says so."""
    given = {"suite": "good", "install": "", "args": "--repeat 3", "token": "secret", "baseline": "main"}
    given["page-url"] = "https://pages.example/report.html"

    def comment() -> str:
        done = run_the_action(project, given, "comment", **pull_request.variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(pull_request.comments) == 101
        assert ("not written" in done.stdout) is pull_request.refuses, done.stdout
        return str(pull_request.comments[-1]["body"])

    mark = "<!-- clawtrace .%20good -->"
    assert run_the_action(project, given).returncode == 0
    assert "> The results were not compared with the baseline `main`: see the workflow run." in comment()

    shell("clawtrace baseline set main good", project)
    green = [line for line in comment().splitlines() if line]
    against = green.pop(2)
    title = "good: 3 of 3 runs passed](https://pages.example/report.html)"
    assert green == [mark, f"### ✅ [{title}", "[Workflow run](https://github.com/me/agents/actions/runs/99)"]
    assert against.startswith("Against main: no case got worse.")

    case = project / "configs" / "cases" / "good" / "test.yaml"
    case.write_text(case.read_text("utf-8").replace("one_tool", "unknown_tool"), encoding="utf-8")
    assert run_the_action(project, given).returncode == 1
    red = re.sub(r"&#(\d+);", lambda one: chr(int(one[1])), comment())
    assert pull_request.asked[-1] == "PATCH /repos/me/agents/issues/comments/100"
    assert red.startswith(
        f"{mark}\n### ❌ [{title.replace('3 of', '0 of')}\nExit code 1: something failed.\nAgainst main: "
    )
    assert "1 case got worse. Each case once: cost $0.0060 → $0.0069 (+15%); tokens 2,202 → " in red
    assert "- **good**: passed 3/3 → 0/3" in red
    assert "configs/cases/good/test.yaml:" in red
    assert "[Run](https://pages.example/report.html#/run/good%2F" in red

    (project / "clawtrace-results" / "results.json").unlink()
    assert comment().startswith(f"{mark}\n### 💥 Nothing was judged\n")

    pull_request.refuses = True
    comment()


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
