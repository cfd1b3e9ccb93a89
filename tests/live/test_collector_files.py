"""The GitHub workflow and the Kubernetes job of `collector-config/`, done step by step, with a stand-in for what only those places have."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from free_port import free_port
from otelcol import CONFIGS, PROGRAM

pytestmark = [pytest.mark.full, pytest.mark.needs("otelcol", "curl")]

SIDECAR = (CONFIGS.parent / "docs" / "sidecar.md").read_text(encoding="utf-8")
GOOD = re.search(r"cat > agent.py <<'PYTHON'\n(.*?)PYTHON\n", SIDECAR, re.DOTALL)[1]
"""The agent of the page, which looks something up."""
BAD = GOOD.replace('"look_up"', '"close_account"').replace("look_up", "close_account")
CHECKS = re.search(r"cat > checks.yaml <<'YAML'\n(.*?)YAML\n", SIDECAR, re.DOTALL)[1]

DOCKER = f"""#!{sys.executable}
import os, subprocess, sys
words = sys.argv[1:]
if words[0] == "logs":
    sys.exit(subprocess.call(["cat", f"{{words[1]}}.log"]))
assert words[0] == "run" and "--detach" in words, words
named = {{words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--")}}
here, there, _ = named["--volume"].split(":")
name, _, value = named["--env"].partition("=")
config = named["--config"].replace(there, here)
log = open(f"{{named['--name']}}.log", "w")
started = subprocess.Popen([{str(PROGRAM)!r}, "--config", config], env=os.environ | {{name: value}}, stdout=log, stderr=log)
open("otelcol.pid", "w").write(str(started.pid))
"""


@pytest.fixture
def place(tmp_path):
    """An empty folder; an environment in which the program and its interpreter are found first; and ports in place of the usual ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "docker").write_text(DOCKER)
    (tools / "pip").write_text('#!/bin/sh\n[ -f requirements.txt ] && [ "$*" = "install -r requirements.txt" ]\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    ports = {usual: str(free_port()) for usual in ("4317", "4318", "14317", "14318")}
    env = {
        "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "OTLP_GRPC": f"127.0.0.1:{ports['14317']}",
        "OTLP_HTTP": f"127.0.0.1:{ports['14318']}",
    }
    (work / "clawtrace.yaml").write_text(
        f"receiver: {{grpc_port: {ports['4317']}, http_port: {ports['4318']}}}\nsettle_ms: 3000\n"
    )
    yield Place(work, env, ports)
    for file in (work / "sidecar.json", work / "otelcol.pid"):
        if file.is_file():
            pid = re.search(r'"pid": (\d+)|^(\d+)$', file.read_text())
            subprocess.run(["kill", pid[1] or pid[2]], stderr=subprocess.DEVNULL)


class Place:
    """Where the steps are done."""

    def __init__(self, work: Path, env: dict[str, str], ports: dict[str, str]) -> None:
        self.work, self.env, self.ports = work, env, ports

    def text(self, file: str) -> str:
        """A file of the folder, with the ports of this place."""
        text = (CONFIGS / file).read_text(encoding="utf-8")
        return re.sub(r"(127\.0\.0\.1:)(\d+)", lambda found: found[1] + self.ports[found[2]], text)


@pytest.mark.parametrize(("agent", "passes"), [(GOOD, True), (BAD, False)], ids=["good", "bad"])
def test_the_github_workflow(place, agent, passes):
    """Its steps in order: the build is green for the good agent; for the bad one it is red, and the logs are shown."""
    (job,) = yaml.safe_load(place.text("github-actions.yaml"))["jobs"].values()
    outcomes: list[tuple[str, int]] = []
    for step in job["steps"]:
        if "uses" in step:
            assert step["uses"].startswith(("actions/checkout@", "actions/setup-python@"))
            if step["uses"].startswith("actions/checkout@"):
                shutil.copytree(CONFIGS, place.work / "collector-config")
                for name, text in (("agent.py", agent), ("checks.yaml", CHECKS), ("requirements.txt", "")):
                    (place.work / name).write_text(text)
            continue
        failed = any(code for _, code in outcomes)
        if failed != (step.get("if") == "failure()"):
            continue
        with (place.work / "step.log").open("w") as log:  # a pipe would be held open by what a step leaves running
            code = subprocess.call(
                ["bash", "-e", "-c", step["run"]], cwd=place.work, env=place.env, stdout=log, stderr=log, timeout=120
            )
        outcomes.append((step.get("name", step["run"]), code))
    last = (place.work / "step.log").read_text()

    assert [bool(code) for _, code in outcomes] == ([False] * 4 if passes else [False, False, False, True, False]), (
        outcomes,
        last,
    )
    assert (place.work / "results.xml").is_file()
    assert passes or "Everything is ready" in last  # the Collector's log


@pytest.mark.parametrize(("agent", "code"), [(GOOD, 0), (BAD, 1)], ids=["good", "bad"])
def test_the_kubernetes_job(place, agent, code):
    """Its containers in order, ended in the other order: the pod's exit code is that of the verdicts."""
    pod = yaml.safe_load(place.text("kubernetes-sidecar.yaml"))["spec"]["template"]["spec"]
    volumes = {"shared": place.work, "gate": place.work / "gate", "otelcol": CONFIGS}
    assert {volume["name"] for volume in pod["volumes"]} == set(volumes)
    (place.work / "gate").mkdir()
    shutil.copy(CONFIGS / "gate.sh", place.work / "gate")
    (place.work / "gate" / "checks.yaml").write_text(CHECKS)
    (place.work / "agent.py").write_text(agent)

    def command(container: dict) -> tuple[list[str], dict[str, str]]:
        words = [*container.get("command", [str(PROGRAM)]), *container.get("args", [])]
        for mount in container["volumeMounts"]:
            words = [re.sub(rf"^{mount['mountPath']}(?=/)", str(volumes[mount["name"]]), word) for word in words]
        return words, place.env | {one["name"]: one["value"] for one in container.get("env", [])}

    sidecars = []
    try:
        for container in pod["initContainers"]:
            assert container["restartPolicy"] == "Always"
            words, env = command(container)
            sidecars.append(subprocess.Popen(words, cwd=place.work, env=env))
            probe = container.get("startupProbe", {}).get("exec", {}).get("command")
            end = time.monotonic() + 60
            while probe and subprocess.run(command(container | {"command": probe, "args": []})[0]).returncode:
                assert time.monotonic() < end
                time.sleep(container["startupProbe"]["periodSeconds"] / 10)
        (container,) = pod["containers"]
        words, env = command(container)
        done = subprocess.run(words, cwd=place.work, env=env, capture_output=True, text=True, timeout=120)
    finally:
        for one in reversed(sidecars):
            one.terminate()
            one.wait(60)

    assert done.returncode == code, (shlex.join(words), done.stdout, done.stderr)
    assert ("1 run: 1 passed" in done.stdout) is (code == 0)
    assert [one.returncode for one in sidecars] == [0, 0]
