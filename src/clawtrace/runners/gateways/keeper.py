"""The process that keeps a gateway: ``python -P -m clawtrace.runners.gateways.keeper ORDER.json``.

It has the configuration checked by OpenClaw's own command line, has it install the plugin that exports if it does not carry it,
starts the gateway, gives it the turns one after the other, waits for its sub-agents, and ends it with SIGTERM: its exporter
flushes then, so all is exported when this process ends. What the agent answered is standard output.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import NoReturn

from pydantic import TypeAdapter
from watchfiles import watch

from clawtrace.runners.gateways.order import (
    ANSWER_FILE,
    CONFIG_REFUSED,
    NOT_READY,
    TOKEN,
    TURNS_FILE,
    GatewayOrder,
    remove,
    said_file,
)
from clawtrace.runners.gateways.state import sub_agents_ended

__all__ = ["answer_text", "answers", "at_a_change", "main"]

_EXIT_SECONDS = 20
"""For a gateway to end once it was asked to; less than what this process itself is given."""
_PORTS = 5
"""The number of ports that are tried: another program may take one between its choice and its use."""
_PLUGIN = "@openclaw/diagnostics-otel"
"""The plugin that exports. 2026.4 carries it, and so do OpenClaw's own images; only one that is installed by its name may export:
a folder named in `plugins.load.paths` is not trusted with what it would export."""
_NO_PLUGIN = re.compile(r"plugin not (?:installed|found): diagnostics-otel")
"""The output of the configuration check if the plugin is missing."""
_NO_PROMPT = "systemPromptOverride"
_UTILITY = "utilityModel"
"""The setting of a second model, which newer versions ask for titles and recaps if it is not empty; 2026.4 refuses it."""
_HAS_NO_UTILITY = re.compile(r"OpenClaw 2026\.[1-4]\.")
_TAKEN = ("EADDRINUSE", "already in use", "already listening")


def main() -> int:
    """Run the turns; return the exit code of the first that failed, else 0."""
    signal.signal(signal.SIGTERM, _end)
    return _Keeper(TypeAdapter(GatewayOrder).validate_json(Path(sys.argv[1]).read_bytes())).run()


def _end(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would cut off the clearing up
    raise SystemExit(128 + signal.SIGTERM)


class _Keeper:
    def __init__(self, order: GatewayOrder) -> None:
        self._order = order
        self._home = Path(order.home)
        self._log = self._home / "gateway.log"
        self._one_model = False
        self._port = 0
        self._config = self._home / "openclaw.json"
        self._env = {
            **os.environ,
            "HOME": order.home,
            "NPM_CONFIG_USERCONFIG": os.environ.get("NPM_CONFIG_USERCONFIG", str(Path.home() / ".npmrc")),
            "OPENCLAW_STATE_DIR": str(self._home / "state"),
            "OPENCLAW_CONFIG_PATH": str(self._config),
            "OPENCLAW_PLUGIN_STAGE_DIR": order.plugin_stage,
            "OPENCLAW_NO_RESPAWN": "1",
            TOKEN: secrets.token_hex(16),
        }

    def run(self) -> int:
        self._home.mkdir(parents=True, exist_ok=True)
        self._one_model = not _HAS_NO_UTILITY.search(self._asked(["--version"], self._env).stdout)
        self._write()
        self._check()
        for _ in range(_PORTS):
            command = self._command(["gateway", "run"], alone=True)
            with self._log.open("wb") as log:
                gateway = subprocess.Popen(command, env=self._env, stdout=log, stderr=log)
                try:
                    if self._ready(gateway):
                        return self._turns()
                finally:
                    self._stop(gateway)
            if not any(word in self._said() for word in _TAKEN):
                break
            self._write()
        sys.stderr.write(f"the gateway did not become ready: {self._said()[-2000:]}\n")
        return NOT_READY

    def _write(self) -> None:
        """Write the configuration with a port that is free now."""
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self._port = chosen.getsockname()[1]
        whole = self._order.configuration
        whole = {**whole, "gateway": {**whole["gateway"], "port": self._port}}
        if self._one_model:
            agents = whole["agents"]
            whole["agents"] = {**agents, "defaults": {_UTILITY: "", **agents["defaults"]}}
        self._config.write_text(json.dumps(whole, indent=1), encoding="utf-8")

    def _check(self) -> None:
        """Let the program check the configuration, and install the exporting plugin if it is missing.

        Raises:
            SystemExit: the configuration is refused, or the plugin is not to be had.
        """
        if not _NO_PLUGIN.search(self._validated()):
            return
        said = self._install()
        if _NO_PLUGIN.search(self._validated()):
            sys.stderr.write(
                f"this OpenClaw does not carry its plugin `diagnostics-otel`, without which it exports no spans, and "
                f"`openclaw plugins install {_PLUGIN}` could not install it: {said}\n"
            )
            raise SystemExit(NOT_READY)

    def _validated(self) -> str:
        """Return what the program says of its configuration, which it accepts."""
        done = self._asked(["config", "validate"], self._env)
        said = (done.stdout + done.stderr).strip()
        if done.returncode and self._one_model and _UTILITY in said:
            self._one_model = False
            self._write()
            return self._validated()
        if done.returncode:
            sys.stderr.write(f"OpenClaw refuses its configuration: {said[-2000:]}\n")
            if _NO_PROMPT in said:
                sys.stderr.write(
                    "this OpenClaw writes the system prompt itself: move `openclaw.agent.prompt` of agent.yaml "
                    "into the agent's `workspace/AGENTS.md`\n"
                )
            raise SystemExit(CONFIG_REFUSED)
        return said

    def _install(self) -> str:
        """Install the plugin into the state of this run; return the last line that was said.

        Its configuration is an empty one: the run's own asks for the plugin, and would have it installed from somewhere else first.
        """
        empty = self._home / "plugin.json"
        empty.write_text("{}", encoding="utf-8")
        cache = str(Path(self._order.plugin_stage) / "npm")
        done = self._asked(
            ["plugins", "install", _PLUGIN],
            {**self._env, "OPENCLAW_CONFIG_PATH": str(empty), "NPM_CONFIG_CACHE": cache},
        )
        return (done.stdout + done.stderr).strip().rpartition("\n")[2]

    def _asked(self, words: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(words, alone=True),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    # Processes and containers ---------------------------------------------------------------

    def _command(self, words: Sequence[str], *, alone: bool = False) -> list[str]:
        """Return a command of OpenClaw's: in a separate container if `alone`, else in the gateway's."""
        order, container = self._order, self._order.container
        if container is None:
            return [*order.cli, *words]
        if not alone:
            return [container.program, "exec", container.name, *order.cli, *words]
        folders = dict.fromkeys((order.home, order.workspace, order.plugin_stage))
        return [
            container.program, "run", "--rm", "--init", "--name", container.name, "--network", "host",
            "--user", f"{os.getuid()}:{os.getgid()}", "--workdir", order.workspace,
            *(word for folder in folders for word in ("--volume", f"{folder}:{folder}")),
            *(word for name in self._passed(container.variables) for word in ("--env", name)),  # values stay in the environment
            "--entrypoint", order.cli[0], container.image, *order.cli[1:], *words,
        ]  # fmt: skip

    def _passed(self, globs: Sequence[str]) -> list[str]:
        own = {"HOME", TOKEN, "NPM_CONFIG_CACHE", "TZ", "LANG"}
        return sorted(
            name
            for name in self._env
            if name in own
            or name.startswith(("OTEL_", "OPENCLAW_", "TRACEPARENT"))
            or any(fnmatchcase(name, glob) for glob in globs)
        )

    def _stop(self, gateway: subprocess.Popen[bytes]) -> None:
        """End the gateway and remove its container; SIGTERM, which may have ended the turn before it reaches us, waits for that."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if gateway.poll() is None:
            gateway.send_signal(signal.SIGTERM)
        try:
            gateway.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            gateway.kill()
            gateway.wait()
        if self._order.container is not None:
            # Also where the program above was killed, and cannot.
            remove(self._order.container, self._env)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _ready(self, gateway: subprocess.Popen[bytes]) -> bool:
        """Wait until the gateway answers or has ended; its health page is asked whenever it has written something."""
        at_a_change(self._home, lambda: gateway.poll() is not None or answers(self._port))
        return gateway.poll() is None

    # Turns ----------------------------------------------------------------------------------

    def _turns(self) -> int:
        started: list[int] = []
        for text in self._texts():
            started.append(time.time_ns())
            (self._home / TURNS_FILE).write_text(json.dumps(started), encoding="utf-8")
            code = self._turn(text)
            if code:
                return code
        state = self._home / "state"
        at_a_change(state, lambda: sub_agents_ended(state))
        return 0

    def _texts(self) -> Iterator[str]:
        if self._order.turns is not None:
            yield from self._order.turns
            return
        for number in count(1):
            file = said_file(self._home, number)
            file.with_suffix("").touch()
            at_a_change(self._home, file.exists)
            text = json.loads(file.read_text(encoding="utf-8"))
            if text is None:
                return
            yield text

    def _turn(self, text: str) -> int:
        order = self._order
        words = ["agent", "--agent", order.agent, "--session-id", order.session, "--message", text, "--json"]
        seconds = str(max(1, round(order.timeout_seconds)))
        done = subprocess.run(
            self._command([*words, "--timeout", seconds]), env=self._env, stdout=subprocess.PIPE, text=True, check=False
        )
        answer = answer_text(done.stdout)
        (self._home / ANSWER_FILE).write_text(answer, encoding="utf-8")
        sys.stdout.write(answer)
        sys.stdout.flush()
        return done.returncode if done.returncode >= 0 else 128 - done.returncode


def answer_text(said: str) -> str:
    """Return the texts that the agent answered with, one a line; none where the program says that it failed."""
    try:
        answer = json.loads(said)
        if answer.get("ok") is False:
            return ""
        payloads = answer.get("result", answer)["payloads"]  # without a gateway they stand alone
    except (ValueError, KeyError, TypeError, AttributeError):
        return said
    return "".join(f"{payload['text']}\n" for payload in payloads if payload.get("text"))


def at_a_change(folder: Path, holds: Callable[[], bool], seconds: float = math.inf) -> bool:
    """Return whether `holds` does, looking again whenever a file below `folder` changes, until `seconds` have passed."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        # What happens between the last look and the watch's start is seen by the look after its time-out.
        next(watch(folder, rust_timeout=500, yield_on_timeout=True, debounce=50, step=10, watch_filter=None))
    return True


def answers(port: int) -> bool:
    """Return whether the gateway on a port is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
