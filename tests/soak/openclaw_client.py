"""OpenClaw as a client of the soak: a gateway for each run, kept as the runner `openclaw` keeps it, and the transcripts that it leaves."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "live_openclaw"))

from cli_clients import Client, Place, Shell
from openclaw_install import NEWEST, VERSION, install
from plugin_registry import plugin_registry

from clawtrace.providers.models import ModelChoice
from clawtrace.runners.gateways.order import GatewayOrder, configuration
from clawtrace.runners.gateways.state import keep_transcripts
from clawtrace.runners.starting.environment import allowed_environment

_CONFIGURATION = {
    "agents": {"list": [{"id": "main", "subagents": {"allowAgents": ["researcher"]}}, {"id": "researcher"}]},
    # Each would have packages installed, of providers that no run asks.
    "plugins": {"deny": ["amazon-bedrock", "amazon-bedrock-mantle", "anthropic-vertex", "codex"]},
}


@dataclass(frozen=True)
class OpenClawClient(Client):
    """One version of OpenClaw."""

    def install(self, stack: ExitStack) -> tuple[Path, Mapping[str, str]]:
        """Return its programs, and an environment in which it can install what its plugins need, or the plugin that it does not carry."""
        found = install(self.package)
        own = Path(os.environ.get("NPM_CONFIG_USERCONFIG", Path.home() / ".npmrc"))
        allowed = allowed_environment(os.environ, ["NPM_CONFIG_*", "PYTHONPATH"])
        if self.package == VERSION:
            return found.bin, allowed | {"NPM_CONFIG_USERCONFIG": str(own)}
        registry = stack.enter_context(plugin_registry(install(VERSION).program))
        npmrc = Path(stack.enter_context(TemporaryDirectory())) / "npmrc"
        settings = own.read_text(encoding="utf-8") if own.exists() else ""
        npmrc.write_text(f"{settings}\n@openclaw:registry={registry}\n", encoding="utf-8")
        return found.bin, allowed | {"NPM_CONFIG_USERCONFIG": str(npmrc)}

    def commands(self, place: Place, turns: Sequence[str]) -> list[list[str]]:
        """Return the one command that starts the gateway, gives it all turns, and waits for its sub-agents."""
        root, home = place.programs.parent, place.folder / "home"
        choice = ModelChoice("gpt-4o", "scripted", f"{place.url}/v1")
        settings = configuration(
            choice, None, choice.base_url, {}, "main", str(place.workspace), str(home),
            params={}, deny_tools=[], heartbeat=None, fragment=_CONFIGURATION,
        )  # fmt: skip
        cli = [str(place.programs / "node"), str(root / "node_modules" / "openclaw" / "openclaw.mjs")]
        order = GatewayOrder(
            cli,
            settings,
            str(home),
            str(place.workspace),
            "main",
            "soak",
            list(turns),
            self.seconds,
            str(root / "stage"),
        )
        file = place.folder / "gateway.json"
        file.write_text(json.dumps(asdict(order)), encoding="utf-8")
        return [[sys.executable, "-P", "-m", "clawtrace.runners.gateways.keeper", str(file)]]

    def logs(self, folder: Path) -> Sequence[Path]:
        """Return the transcripts of its sessions."""
        return keep_transcripts(folder / "home" / "state", folder / "transcripts")[0]


OPENCLAWS = [
    OpenClawClient(
        f"openclaw-{version}", version,
        start=(), resume=(),
        shell=Shell("exec", "command", {}, {limit: 1}),
        read=("read", "path"), write=("write", "path", "content"),
        helper=("sessions_spawn", {"agentId": "researcher"}, "task"), helper_name="researcher",
        refused=r"^Tool \S+ not found|^Validation failed|exec parameter \S+ is unsupported",
        failed=r"exited with code [1-9]|Command (timed out|not found)|^ENOENT|\"status\": ?\"error\"",
        main="main",
        seconds=600,
    )
    for version, limit in ((VERSION, "timeout"), (NEWEST, "timeoutSeconds"))
]  # fmt: skip
