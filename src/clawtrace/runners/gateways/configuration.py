"""The `openclaw.json` of one run, from the agent, the model and the settings; it holds no key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clawtrace.providers.models import ModelChoice

__all__ = ["TOKEN", "agent_id_of", "configuration", "model_ref"]

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
