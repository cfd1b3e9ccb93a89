"""The runner `openclaw`: its configuration, its turns and ends, as a local process and in a container."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from watchfiles import watch

from clawtrace.errors import RunnerError
from clawtrace.runners.base import InputsRequest, Message, ModelRequested, RunOutcome
from clawtrace.runners.openclaw import OpenClawRunner, OpenClawSettings
from clawtrace.runners.workspace import AgentFiles

HERE = Path(__file__).parent
PROGRAM = [sys.executable, str(HERE / "program.py")]
KEY = "sk-or-v1-0123456789abcdef"
ENV = {"OPENROUTER_API_KEY": KEY, "PATH": os.environ["PATH"]}
MODEL = {"model_id": "mini", "requested_model": "openai/gpt-4o-mini"}


class OpenClawBench:
    """Runs turns through the runner in separate folders."""

    def __init__(self, bench: Any, folder: Path) -> None:
        self.bench = bench
        self.folder = folder
        self.program: dict[str, Any] = {}
        self.model: dict[str, Any] = {}
        (folder / "agent").mkdir()

    def run(
        self, *turns: str, how: str = "", messages: Any = (), reply: Any = None, **settings: Any
    ) -> tuple[RunOutcome, Path]:
        env = {"PROGRAM": how, "OPENROUTER_API_KEY": KEY, "XDG_CACHE_HOME": str(self.folder / "cache")}
        request = replace(
            self.bench.request(messages=tuple(messages), base_env=env, command=["-"]),
            settings=OpenClawSettings.model_validate(
                {"cli": PROGRAM, "pass_env": ["PROGRAM", "PYTHONPATH"], "timeout_seconds": 60} | settings
            ),
            turns=tuple(Message("user", text) for text in turns),
            reply=reply,
            asked=ModelRequested("mini", "openai/gpt-4o-mini", self.model),
            agent=AgentFiles("support", self.folder / "agent", self.program),
        )
        outcome = OpenClawRunner().run(request, self.bench.target, self.bench.stop)
        return outcome, request.folder

    def configuration(self, **settings: Any) -> dict[str, Any]:
        """Return the `openclaw.json` of a run, as the program finds it when the agent starts."""
        found: dict[str, Any] = {}
        keep = shutil.rmtree

        def read(folder: Path, **more: Any) -> None:
            if Path(folder).name == "gateway":
                found.update(json.loads((Path(folder) / "openclaw.json").read_text()))
            keep(folder, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shutil, "rmtree", read)
            self.run("hello", **settings)
        return found


@pytest.fixture
def openclaw(bench, tmp_path: Path) -> OpenClawBench:
    return OpenClawBench(bench, tmp_path)


def test_turns_in_one_session(openclaw):
    """Messages come with the first turn; each turn's answer is printed, and transcript, changes and starts are known."""
    outcome, folder = openclaw.run("One.", "Two.", messages=[Message("system", "Be brief.")])

    assert (outcome.run_status, outcome.exit_code, outcome.runner_error, outcome.notes) == ("success", 0, None, ())
    assert outcome.final_output == "heard: Two."
    assert (folder / "stdout").read_text() == "heard: [system]\nBe brief.\n\n[user]\nOne.\nheard: Two.\n"
    assert outcome.changes["created"] == ["made.txt"]
    assert (folder / "workspace/SOUL.md").exists()
    (transcript,) = outcome.logs
    assert transcript.parent == folder / "transcripts/agents/support/sessions"
    assert len(transcript.read_text().splitlines()) == 2
    assert len(outcome.turns_started_ns) == 2
    assert not (folder / "gateway").exists()
    assert not (folder / "gateway.json").exists()
    assert (folder / "gateway.log").read_text() == "ready\n"


class Talker:
    """Says its lines one after the other, as a simulated user does; None ends the conversation."""

    def __init__(self, *lines: str | Exception | None) -> None:
        self.lines = list(lines)
        self.heard: list[str | None] = []

    def __call__(self, answer: str | None) -> Message | None:
        """Return the next line."""
        self.heard.append(answer)
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return None if line is None else Message("user", line)


def test_a_simulated_user_says_the_turns(openclaw):
    """Each turn is asked for with the answer to the one before; messages come with the first, and the end is the user's."""
    user = Talker("One.", "Two.", None)
    outcome, folder = openclaw.run(messages=[Message("system", "Be brief.")], reply=user)

    assert (outcome.run_status, outcome.notes, len(outcome.turns_started_ns)) == ("success", (), 2)
    assert user.heard == [None, "heard: [system]\nBe brief.\n\n[user]\nOne.", "heard: Two."]
    assert outcome.final_output == "heard: Two."
    assert not (folder / "gateway").exists()


def test_a_turn_that_fails_ends_a_conversation(openclaw):
    """The user is not asked again, and nothing waits for it."""
    user = Talker("One.", "Two.")
    outcome, _ = openclaw.run(how="fail", reply=user)

    assert (outcome.run_status, outcome.exit_code, outcome.notes, user.heard) == ("failed", 3, (), [None])


def test_a_user_that_fails_ends_the_gateway(openclaw):
    """The error is the run's; the gateway was ended as at the end of a conversation."""
    user = Talker("One.", RunnerError("the model is gone"))
    with pytest.raises(RunnerError, match="the model is gone"):
        openclaw.run(reply=user)

    (folder,) = openclaw.bench.folder.glob("run*")
    assert not (folder / "gateway").exists()
    assert (folder / "gateway.log").read_text() == "ready\n"


def test_one_message_is_given_as_it_is(openclaw):
    """A case without `turns` is one turn."""
    outcome, _ = openclaw.run(messages=[Message("user", "Hello.")])

    assert outcome.final_output == "heard: Hello."


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("refuse", "OpenClaw refuses its configuration: agents: unknown key"),
        ("dead", "the gateway did not become ready: no such plugin"),
        ("bare", "could not install it: fetch failed | ENOTFOUND"),
        ("bare", "`openclaw plugins install @openclaw/diagnostics-otel`"),
        ("no prompt", "move `openclaw.agent.prompt` of agent.yaml into the agent's `workspace/AGENTS.md`"),
    ],
)
def test_what_keeps_the_agent_from_running(openclaw, how, said):
    """It is no failure of the agent's, and says why."""
    with pytest.raises(RunnerError) as error:
        openclaw.run("One.", how=how)

    assert said in str(error.value)


@pytest.mark.parametrize("how", ["new", "unknown"])
def test_other_versions(openclaw, how):
    """A newer one has its plugin installed and asks no second model; one of no known version is asked what it accepts."""
    outcome, _ = openclaw.run("One.", how=how)

    assert (outcome.run_status, outcome.runner_error) == ("success", None)


def test_a_taken_port_is_no_failure(openclaw):
    """The gateway is started again on another one."""
    outcome, _ = openclaw.run("One.", how="taken")

    assert outcome.run_status == "success"


def test_a_turn_that_fails_ends_the_run(openclaw):
    """Later turns are not sent, and that is said."""
    outcome, _ = openclaw.run("One.", "Two.", how="fail")

    assert (outcome.run_status, outcome.exit_code, outcome.runner_error) == ("failed", 3, None)
    assert outcome.notes == ("turn 1 of 2 ended with exit code 3; 1 further turn was not run",)


def test_work_without_a_gateway_is_unseen(openclaw):
    """Where the gateway does not answer, OpenClaw's command line does the work itself, and exports nothing of it."""
    outcome, _ = openclaw.run("One.", how="gone")

    assert (outcome.run_status, outcome.final_output) == ("success", "heard: One.")
    assert outcome.cut_off is not None
    assert "without telemetry" in outcome.cut_off


@pytest.mark.full
@pytest.mark.parametrize("image", [None, "claw:1"])
def test_time_is_limited(openclaw, containers, image):
    """Nothing is left behind: no process, no container; the transcript up to then is kept."""
    outcome, _ = openclaw.run("One.", how="hang", timeout_seconds=4, image=image, docker_cli=str(containers))

    assert (outcome.run_status, outcome.timed_out, outcome.processes_gone) == ("timed_out", True, True)
    assert len(outcome.logs) == 1
    assert not [one for one in (containers.parent / "running").glob("*") if one.suffix != ".env"]


def test_it_can_be_stopped(openclaw, bench, containers):
    """Ctrl-C ends the gateway and removes its container."""
    running = containers.parent / "running"
    found: list[RunOutcome] = []
    thread = threading.Thread(
        target=lambda: found.append(openclaw.run("One.", how="hang", image="claw:1", docker_cli=str(containers))[0])
    )
    thread.start()
    running.mkdir(exist_ok=True)
    for _ in watch(running, rust_timeout=200, yield_on_timeout=True):
        if "exec" in asked_of(containers):
            break
    bench.stop.set()
    thread.join(60)

    assert found[0].run_status == "invalid"
    assert not [one for one in running.glob("*") if one.suffix != ".env"]


CRASHING = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.runners.conftest import Bench
from tests.runners.gateways.test_openclaw import OpenClawBench
from clawtrace.runners.base import TelemetryTarget

folder = Path(sys.argv[2])
bench = Bench(folder, TelemetryTarget("http://127.0.0.1:4317", "http://127.0.0.1:4318", "ab" * 16, "cd" * 8))
OpenClawBench(bench, folder).run("One.", how="hang", image="claw:1", docker_cli=sys.argv[3])
"""


def test_a_crash_leaves_no_container(tmp_path, containers):
    """`kill -9` of the program that runs the suite ends the gateway and removes its container all the same."""
    folder = tmp_path / "project"
    folder.mkdir()
    words = [sys.executable, "-c", CRASHING, str(HERE.parents[2]), str(folder), str(containers)]
    program = subprocess.Popen(words)
    running = containers.parent / "running"
    for _ in watch(running, rust_timeout=200, yield_on_timeout=True):
        assert program.poll() is None
        if "exec" in asked_of(containers):
            break
    program.kill()
    program.wait()
    for _ in watch(running, rust_timeout=200, yield_on_timeout=True):
        if "rm" in asked_of(containers) and all(one.suffix == ".env" for one in running.glob("*")):
            break


@pytest.fixture
def containers(tmp_path: Path) -> Path:
    """A program that runs containers by executing what is in them."""
    copy = tmp_path / "bin" / "containers.py"
    copy.parent.mkdir()
    text = (HERE / "containers.py").read_text()
    copy.write_text(text.replace("/usr/bin/env python3", sys.executable))
    copy.chmod(0o755)
    (copy.parent / "running").mkdir()
    return copy


def asked_of(containers: Path) -> dict[str, list[list[str]]]:
    """Return the command lines by their first word."""
    found: dict[str, list[list[str]]] = {}
    log = containers.with_name("asked.jsonl")
    for line in log.read_text().splitlines() if log.exists() else ():
        words = json.loads(line)
        found.setdefault(words[0], []).append(words)
    return found


def test_in_a_container(openclaw, containers):
    """The gateway has a named container without any value of a variable on its command line; turns are run in it; it is removed."""
    outcome, folder = openclaw.run("One.", "Two.", image="claw:1", docker_cli=str(containers))
    asked = asked_of(containers)
    version, check, gateway = asked["run"]
    name = gateway[gateway.index("--name") + 1]

    assert outcome.final_output == "heard: Two."
    assert version[-1] == "--version"
    assert check[-2:] == ["config", "validate"]
    assert gateway[gateway.index("claw:1") :] == ["claw:1", PROGRAM[1], "gateway", "run"]
    assert gateway[gateway.index("--entrypoint") + 1] == sys.executable
    assert f"{folder}/workspace:{folder}/workspace" in gateway
    assert {"OPENROUTER_API_KEY", "OTEL_RESOURCE_ATTRIBUTES", "OPENCLAW_GATEWAY_TOKEN"} <= set(gateway)
    assert [words[1] for words in asked["exec"]] == [name, name]
    assert {tuple(words) for words in asked["rm"]} == {("rm", "--force", name)}
    assert KEY not in containers.with_name("asked.jsonl").read_text()


class TestConfiguration:
    def test_model_and_agent(self, openclaw):
        """One model at OpenRouter, no key; the agent's fragments, and the workspace of the run."""
        openclaw.program = {
            "agent": {"id": "the-support", "prompt": "Be kind."},
            "agents_defaults": {"timeoutSeconds": 9},
            "model_defaults": {"aliases": {"default": "main"}},
        }
        openclaw.model = {"primary_params": {"reasoning": {"effort": "low"}}}
        found = openclaw.configuration()
        defaults, (agent,) = found["agents"]["defaults"], found["agents"]["list"]

        ref = "openrouter/openai/gpt-4o-mini"
        workspace = defaults["workspace"]
        assert agent == {
            "id": "the-support", "default": True, "workspace": workspace, "systemPromptOverride": "Be kind.",
        }  # fmt: skip
        assert (defaults["model"], defaults["timeoutSeconds"], defaults["heartbeat"]) == (
            {"primary": ref},
            9,
            {"every": "0m"},
        )
        assert defaults["models"] == {ref: {"alias": "main", "params": {"reasoning": {"effort": "low"}}}}
        assert "models" not in found
        assert KEY not in json.dumps(found)
        assert found["diagnostics"]["otel"]["sampleRate"] == 1.0

    def test_another_address(self, openclaw):
        """An OpenAI-compatible server is a separate provider; its key stays in the environment."""
        found = openclaw.configuration(base_url="http://127.0.0.1:9/v1", api_key_env="OPENROUTER_API_KEY")
        (provider,) = found["models"]["providers"].items()

        assert provider[0] == "openai-compatible"
        assert provider[1]["baseUrl"] == "http://127.0.0.1:9/v1"
        assert provider[1]["apiKey"] == "${OPENROUTER_API_KEY}"
        assert found["agents"]["defaults"]["model"] == {"primary": "openai-compatible/openai/gpt-4o-mini"}

    @pytest.mark.parametrize(("moved", "address"), [("", "/v1beta"), ("/v1", "/v1")])
    def test_another_address_of_google(self, openclaw, moved, address):
        """The version is part of the address here; the variable that moves Google has none."""
        base = "http://127.0.0.1:9"
        found = openclaw.configuration(provider="google", base_url=f"{base}{moved}", api_key_env="OPENROUTER_API_KEY")
        provider = found["models"]["providers"]["google"]

        assert (provider["baseUrl"], provider["api"]) == (f"{base}{address}", "google-generative-ai")

    def test_settings(self, openclaw):
        """Denied tools, a heartbeat that is asked for, and more of the file, which cannot switch telemetry off."""
        more = {
            "agents": {"list": [{"id": "support", "subagents": {"allowAgents": ["helper"]}}, {"id": "helper"}]},
            "tools": {"deny": ["browser"], "loopDetection": {"enabled": True}},
            "diagnostics": {"enabled": False, "otel": {"sampleRate": 0.1, "captureContent": True}},
        }
        found = openclaw.configuration(deny_tools=["exec"], heartbeat="30m", config=more)

        assert found["tools"]["deny"] == ["browser", "exec"]
        assert found["tools"]["loopDetection"] == {"enabled": True}
        assert found["agents"]["defaults"]["heartbeat"] == {"every": "30m"}
        workspace = found["agents"]["defaults"]["workspace"]
        assert found["agents"]["list"] == [
            {"id": "support", "subagents": {"allowAgents": ["helper"]}, "default": True, "workspace": workspace}, {"id": "helper"},
        ]  # fmt: skip
        assert (found["diagnostics"]["enabled"], found["diagnostics"]["otel"]["sampleRate"]) == (True, 1.0)
        assert found["diagnostics"]["otel"]["captureContent"] is True

    def test_a_scaffold_and_artifacts(self, openclaw, bench):
        """Files of the case lie over the agent's, and globs choose what is kept."""
        (bench.case_dir / "start").mkdir()
        (bench.case_dir / "start" / "SOUL.md").write_text("Mine.")
        outcome, folder = openclaw.run("One.", scaffold="start", artifacts=["*.md"])

        assert (folder / "workspace/SOUL.md").read_text() == "Mine."
        assert outcome.artifacts == ()


@pytest.mark.parametrize(
    ("settings", "env", "said"),
    [
        ({"cli": ["no-such-claw"]}, ENV, "the program `no-such-claw` is not on PATH"),
        ({"image": "claw:1", "docker_cli": "no-such-runtime"}, ENV, "the program `no-such-runtime` is not on PATH"),
        ({"cli": PROGRAM}, {"PATH": ENV["PATH"]}, "OPENROUTER_API_KEY"),
        ({"cli": PROGRAM, "provider": "anthropic"}, ENV, "ANTHROPIC_API_KEY"),
        ({"cli": PROGRAM, "base_url": "http://a/v1"}, {"PATH": ENV["PATH"]}, None),
        ({"cli": PROGRAM}, ENV, None),
    ],
)
def test_what_is_missing(tmp_path, settings, env, said):
    """It is named before anything starts."""
    asked = ModelRequested("m", "openai/gpt-4o-mini")
    found = OpenClawSettings.model_validate(settings).missing(env, asked)

    assert (said is None and found is None) or (said is not None and said in str(found))


def test_reuse_needs_a_known_version(tmp_path):
    """A package's version or an image's digest is known; another program's or a tag's is not."""
    package = tmp_path / "node_modules/openclaw"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "openclaw", "version": "1"}')
    (package / "openclaw.mjs").touch()

    def inputs(**settings):
        of = OpenClawSettings.model_validate(settings)
        return of.depends_on(InputsRequest(tmp_path, tmp_path, frozenset(), (), dict(os.environ)))

    known = inputs(cli=["node", str(package / "openclaw.mjs")])
    (package / "package.json").write_text('{"name": "openclaw", "version": "2"}')
    assert (known.unknown, inputs(image=f"claw@sha256:{'0' * 64}").unknown) == ("", "")
    assert known.digests != inputs(cli=["node", str(package / "openclaw.mjs")]).digests
    assert inputs(cli=PROGRAM).unknown
    assert inputs(image="claw:1").unknown
