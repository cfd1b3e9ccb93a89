"""The input of the process that keeps a gateway: its instructions and the run's `openclaw.json`, both without keys."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.providers.models import ModelChoice

__all__ = [
    "ANSWER_FILE",
    "CONFIG_REFUSED",
    "NOT_READY",
    "TOKEN",
    "TURNS_FILE",
    "Container",
    "GatewayOrder",
    "agent_id_of",
    "configuration",
    "remove",
    "said_file",
]

ANSWER_FILE = "answer.txt"
"""In the home: the answer to the last turn."""

TURNS_FILE = "turns.json"
"""In the home: when each turn was started, in nanoseconds since the epoch."""

CONFIG_REFUSED = 78
"""Exit code where the program refuses its configuration: EX_CONFIG of sysexits.h."""
_REMOVE_SECONDS = 60
NOT_READY = 69
"""Exit code where the gateway did not come up: EX_UNAVAILABLE."""


@dataclass(frozen=True, slots=True)
class Container:
    """The container that a gateway runs in."""

    program: str
    """What runs containers, such as `docker`."""
    image: str
    name: str
    """Unique; by it the container is removed."""
    variables: tuple[str, ...] = ()
    """Names or globs of the variables that it gets from the process that starts it."""


@dataclass(frozen=True, slots=True)
class GatewayOrder:
    """One gateway and its turns."""

    cli: list[str]
    """Words that start the command line interface; in the image where there is one."""
    configuration: dict[str, Any]
    """`openclaw.json` without the port."""
    home: str
    """Absolute folder for everything that the gateway writes; it is there for this run alone."""
    workspace: str
    """Absolute."""
    agent: str
    """Id of the agent that is spoken to."""
    session: str
    """Id of the session that all turns are of."""
    turns: list[str] | None
    """Texts of the turns; None: each is asked for with the answer to the one before, in files of the home (`said_file`)."""
    timeout_seconds: float
    """Time for one turn; the run's limit is kept by the process above."""
    plugin_stage: str
    """Absolute folder where what plugins need is installed once."""
    container: Container | None = None


def said_file(home: Path, number: int) -> Path:
    """Return the file in which a turn, counted from 1, is written when it is known: its text as JSON, null where there is none.

    It is asked for by another file, without the suffix.
    """
    return home / f"turn-{number}.json"


def remove(container: Container, env: Mapping[str, str]) -> None:
    """Remove a container, whatever became of the process that started it; one that is gone is none."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [container.program, "rm", "--force", container.name],
            env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_REMOVE_SECONDS, check=False,
        )  # fmt: skip


# --- openclaw.json ----------------------------------------------------------------------------------------------------


TOKEN = "OPENCLAW_GATEWAY_TOKEN"
"""The variable with the secret between the gateway and its command line; made anew for each run."""
_APIS = {
    "anthropic": "anthropic-messages",
    "google": "google-generative-ai",
    "openai": "openai-responses",
    "openai-responses": "openai-responses",
}
"""What a provider at another address speaks; the others Chat Completions."""
_GOOGLE_VERSION = "v1beta"
"""Part of Google's address here, and not of the variable that moves it."""
_CONTEXT = 128_000
_OUTPUT = 16_384


def agent_id_of(program: Mapping[str, Any], agent_id: str) -> str:
    """Return the id by which the program knows an agent."""
    return str(program.get("agent", {}).get("id") or agent_id)


def model_ref(choice: ModelChoice) -> str:
    """Return the name of a model in the program's configuration."""
    provider = choice.provider.removesuffix("-chat").removesuffix("-responses")
    return f"{provider}/{choice.name}"


def configuration(
    choice: ModelChoice,
    key_variable: str | None,
    address: str | None,
    program: Mapping[str, Any],
    agent_id: str,
    workspace: str,
    home: str,
    *,
    params: Mapping[str, Any],
    deny_tools: list[str],
    heartbeat: str | None,
    fragment: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the configuration of a run, but for the port.

    Args:
        choice: the run's only model.
        key_variable: the variable that holds its key; None: it has none.
        address: where the provider is; None: its usual address.
        home: folder for everything that the gateway writes.
        heartbeat: how often the agent wakes by itself; None: never.
        fragment: more of the configuration; it goes before the defaults, and after what a run needs.
    """
    ref, provider = model_ref(choice), model_ref(choice).partition("/")[0]
    alias = program.get("model_defaults", {}).get("aliases", {}).get("default")
    of_model = ({"alias": alias} if alias else {}) | ({"params": dict(params)} if params else {})
    agent = {"id": agent_id_of(program, agent_id), "default": True, "workspace": workspace}
    if prompt := program.get("agent", {}).get("prompt"):
        agent["systemPromptOverride"] = prompt
    usual = {
        "agents": {"defaults": {"skipBootstrap": True, "heartbeat": {"every": heartbeat or "0m"}}},
        "tools": {"exec": {"security": "full", "ask": "off"}},
        "plugins": {"slots": {"memory": "none"}},
        "diagnostics": {"otel": {"metrics": False, "logs": True}},
        "update": {"checkOnStart": False},
    }
    needed: dict[str, Any] = {
        "gateway": {
            "mode": "local", "bind": "loopback", "auth": {"mode": "token", "token": f"${{{TOKEN}}}"}, "reload": {"mode": "off"},
        },
        "agents": {"defaults": {"model": {"primary": ref}, "models": {ref: of_model}, "workspace": workspace}},
        "plugins": {"entries": {"diagnostics-otel": {"enabled": True}}},
        "logging": {"file": f"{home}/gateway.jsonl"},
        # Endpoint, headers and resource come from the environment that clawtrace sets.
        "diagnostics": {
            "enabled": True, "otel": {"enabled": True, "protocol": "http/protobuf", "traces": True, "sampleRate": 1.0},
        },
    }  # fmt: skip
    if address is not None:
        entry = {
            "id": choice.name, "name": choice.name, "reasoning": False, "input": ["text"], "contextWindow": _CONTEXT,
            "maxTokens": _OUTPUT, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }  # fmt: skip
        api = _APIS.get(choice.provider, "openai-completions")
        if choice.provider == "google" and not re.search(r"/v\d\w*/?$", address):
            address = f"{address.rstrip('/')}/{_GOOGLE_VERSION}"
        if api == "openai-completions":
            entry["compat"] = {"supportsUsageInStreaming": True}
        key = f"${{{key_variable}}}" if key_variable else "none"
        needed["models"] = {
            "mode": "merge",
            "providers": {provider: {"baseUrl": address, "apiKey": key, "api": api, "models": [entry]}},
        }
    found = _merged(_merged(_merged(usual, program.get("agents_defaults", {}), "agents", "defaults"), fragment), needed)
    listed: list[dict[str, Any]] = fragment.get("agents", {}).get("list", [])
    own = [one for one in listed if one.get("id") == agent["id"]] or [{}]
    found["agents"]["list"] = [{**own[0], **agent}, *(one for one in listed if one.get("id") != agent["id"])]
    tools, plugins = found["tools"], found["plugins"]
    tools["deny"] = [*dict.fromkeys([*tools.get("deny", ()), *deny_tools])]
    plugins["allow"] = [*dict.fromkeys([*plugins.get("allow", ()), "diagnostics-otel"])]
    return found


def _merged(base: Mapping[str, Any], over: Mapping[str, Any], *at: str) -> dict[str, Any]:
    """Return `base` with `over` on it, key by key in mappings at any depth; `at` is where in `base` it belongs."""
    for name in reversed(at):
        over = {name: over}
    found = dict(base)
    for key, value in over.items():
        before = found.get(key)
        found[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, Mapping) else value
    return found
