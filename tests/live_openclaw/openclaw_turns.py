"""An agent for the runner `command`: a real OpenClaw gateway, and turns that its command line hands to it.

    python openclaw_turns.py SETTINGS SESSION=MESSAGE…

The gateway is started, asked for each session's turn (sessions side by side), and stopped; its exporter flushes when it
is asked to end, so everything has been exported when this program ends. `SETTINGS` is a JSON file: `node`, `openclaw`
(program files), `bin` (folder of node and npm), `stage` (folder for what plugins need), `model_url`, `workspace`, `home`
(folder for what OpenClaw writes), `deny` (tools that no agent may use), `refuse` (text: a plugin's hook refuses `exec`
calls whose command holds it), `tools` (more of OpenClaw's own settings of tools), `await` (by session the text that its
transcript holds at last: a sub-agent answers after the turn that asked for it).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from clawtrace.runners.gateways.keeper import answer_text, answers, at_a_change

sys.path.insert(0, str(Path(__file__).parents[1]))

from free_port import free_port

# Limits for a machine that is busy with other things; whatever is waited for is an event.
READY_SECONDS = 500
TURN_SECONDS = 500
AWAIT_SECONDS = 500
EXIT_SECONDS = 300

POLICY = "policy"
"""Name of the plugin that refuses tool calls."""

HOOK = """
export default {
  id: "policy", name: "policy", description: "Refuses what no agent may run.",
  register(api) {
    api.on("before_tool_call", (event) =>
      event.toolName === "exec" && String(event.params.command).includes(REFUSED)
        ? { block: true, blockReason: "the policy forbids this command" } : undefined);
  },
};
"""


def main(settings_file: str, *turns: str) -> int:
    """Run the turns; the exit code is that of the first turn that failed, else 0."""
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    home = Path(settings["home"])
    home.mkdir(parents=True, exist_ok=True)
    port = free_port()
    _write_policy(home / POLICY, settings["refuse"])
    config = home / "openclaw.json"
    config.write_text(json.dumps(configuration(settings, port), indent=2), encoding="utf-8")
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": os.pathsep.join((settings["bin"], os.environ.get("PATH", ""))),
        "NPM_CONFIG_USERCONFIG": os.environ.get("NPM_CONFIG_USERCONFIG", str(Path.home() / ".npmrc")),
        "OPENCLAW_STATE_DIR": str(home / "state"),
        "OPENCLAW_CONFIG_PATH": str(config),
        "OPENCLAW_PLUGIN_STAGE_DIR": settings["stage"],
        "OPENCLAW_NO_RESPAWN": "1",
    }
    program = [settings["node"], settings["openclaw"]]
    with (home / "gateway.log").open("wb") as log:
        gateway = subprocess.Popen([*program, "gateway", "run"], env=environment, stdout=log, stderr=log)
        try:
            _wait_until_ready(gateway, port, home / "gateway.log")
            code = _turns(program, environment, turns)
            _wait_for_answers(home / "state" / "agents" / "support" / "sessions", settings["await"])
            return code
        finally:
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(EXIT_SECONDS)


def configuration(settings: dict[str, Any], port: int) -> dict[str, Any]:
    """Return an `openclaw.json`: one scripted model, two agents, telemetry as the environment says."""
    price = {"input": 3, "output": 15, "cacheRead": 0, "cacheWrite": 0}
    models = [
        {
            "id": name, "name": name, "reasoning": False, "input": ["text"], "cost": price, "contextWindow": 128_000,
            "maxTokens": 4096, "compat": {"supportsUsageInStreaming": True},
        }
        for name in ("gpt-4o", "gpt-4o-mini")
    ]  # fmt: skip
    provider = {"baseUrl": settings["model_url"], "apiKey": "none", "api": "openai-completions", "models": models}
    return {
        "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": "loopback"}, "reload": {"mode": "off"}},
        "models": {"mode": "merge", "providers": {"scripted": provider}},
        "agents": {
            "defaults": {
                "model": {"primary": "scripted/gpt-4o"}, "workspace": settings["workspace"], "skipBootstrap": True,
                "heartbeat": {"every": "0m"},
            },
            "list": [
                {"id": "support", "default": True, "subagents": {"allowAgents": ["researcher"]}},
                {"id": "researcher", "model": {"primary": "scripted/gpt-4o-mini"}},
            ],
        },
        "tools": {"exec": {"security": "full", "ask": "off"}, "deny": settings["deny"], **settings["tools"]},
        "plugins": {
            "allow": ["diagnostics-otel", POLICY], "slots": {"memory": "none"},
            "entries": {"diagnostics-otel": {"enabled": True}, POLICY: {"enabled": True}},
            "load": {"paths": [str(Path(settings["home"]) / POLICY)]},
            "deny": ["amazon-bedrock", "amazon-bedrock-mantle", "anthropic-vertex", "codex"],
        },
        # Endpoint, headers and resource come from the environment that clawtrace sets.
        "diagnostics": {
            "enabled": True,
            "otel": {"enabled": True, "protocol": "http/protobuf", "traces": True, "metrics": False, "logs": True, "sampleRate": 1.0},
        },
        "logging": {"file": str(Path(settings["home"]) / "gateway.jsonl")},
        "update": {"checkOnStart": False},
    }  # fmt: skip


def _write_policy(folder: Path, refused: str) -> None:
    """Write the plugin that refuses commands; an empty text refuses none."""
    folder.mkdir(exist_ok=True)
    manifest = {"id": POLICY, "activation": {"onStartup": True}, "configSchema": {"type": "object", "properties": {}}}
    package = {"name": POLICY, "version": "1.0.0", "type": "module", "openclaw": {"extensions": ["./index.js"]}}
    (folder / "openclaw.plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
    condition = json.dumps(refused or "\0")
    (folder / "index.js").write_text(HOOK.replace("REFUSED", condition), encoding="utf-8")


def _wait_for_answers(sessions: Path, awaited: dict[str, str]) -> None:
    """Return when each session's transcript holds its text: OpenClaw writes there that a sub-agent's result was announced."""
    for session, text in awaited.items():
        transcript = sessions / f"{session}.jsonl"

        def said(file: Path = transcript, text: str = text) -> bool:
            return file.exists() and text in file.read_text(encoding="utf-8")

        if not at_a_change(sessions, said, AWAIT_SECONDS):
            sys.exit(f"session {session!r} never said {text!r}")


def _turns(program: list[str], environment: dict[str, str], turns: tuple[str, ...]) -> int:
    asked = []
    for turn in turns:
        session, _, message = turn.partition("=")
        command = [*program, "agent", "--agent", "support", "--session-id", session, "--message", message, "--json"]
        asked.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    codes = []
    try:
        for process in asked:
            said, _ = process.communicate(timeout=TURN_SECONDS)
            codes.append(process.returncode)
            sys.stdout.write(answer_text(said))
    finally:
        for process in asked:
            process.kill()
    return next((code for code in codes if code), 0)


def _wait_until_ready(gateway: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the gateway answers: its health page is asked whenever it has written something, such as that it is ready."""

    def answers_or_ended() -> bool:
        return gateway.poll() is not None or answers(port)

    if not at_a_change(log.parent, answers_or_ended, READY_SECONDS) or gateway.poll() is not None:
        sys.exit(f"the gateway did not become ready:\n{log.read_text(errors='replace')[-4000:]}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
