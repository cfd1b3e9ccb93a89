"""A program with OpenClaw's command line, for what real ones show only by chance: refusals, hangs, taken ports.

    python program.py --version | config validate | plugins install NAME | gateway run | agent --message TEXT …

`PROGRAM` in the environment says how it behaves: `refuse`, `dead`, `hang` (a turn never ends), `fail` (a turn's exit code is 3),
`taken` (the first gateway says that its port is in use), `new` (a version that installs its plugin and asks a second model), `bare`
(one that cannot install it), `unknown` (one that says it has no version, and refuses what newer ones have), `no prompt`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

CONFIG = json.loads(Path(os.environ["OPENCLAW_CONFIG_PATH"]).read_text()) if sys.argv[1:] != ["--version"] else {}
HOME = Path(os.environ["OPENCLAW_STATE_DIR"])
HOW = os.environ.get("PROGRAM", "")


class Ready(BaseHTTPRequestHandler):
    """Answers that the gateway is there."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def gateway() -> None:
    first = HOME / "first"
    if HOW == "dead":
        sys.exit("no such plugin")
    if HOW == "taken" and not first.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        first.touch()
        sys.exit("listen EADDRINUSE: address already in use")
    server = HTTPServer(("127.0.0.1", CONFIG["gateway"]["port"]), Ready)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    server.serve_forever()


def agent(words: list[str]) -> None:
    said = dict(zip(words[::2], words[1::2], strict=False))
    sessions = HOME / "agents" / said["--agent"] / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    with (sessions / f"{said['--session-id']}.jsonl").open("a") as transcript:
        transcript.write(json.dumps({"type": "note", "text": said["--message"]}) + "\n")
    if HOW == "hang":
        signal.pause()
    Path(CONFIG["agents"]["defaults"]["workspace"], "made.txt").write_text(said["--message"])
    result = {"payloads": [{"text": f"heard: {said['--message']}"}]}
    if HOW == "gone":
        print("EMBEDDED FALLBACK: Gateway agent failed; running embedded agent: gateway closed (1000)", file=sys.stderr)
    print(json.dumps(result if HOW == "gone" else {"result": result}))
    sys.exit(3 if HOW == "fail" else 0)


def validate() -> None:
    if HOW == "refuse":
        sys.exit("agents: unknown key")
    if HOW == "unknown" and "utilityModel" in CONFIG["agents"]["defaults"]:
        sys.exit('agents.defaults: Unrecognized key: "utilityModel"')
    if HOW == "no prompt":
        sys.exit('agents.entries.main: Unrecognized key: "systemPromptOverride"')
    if HOW == "new" and CONFIG["agents"]["defaults"].get("utilityModel") != "":
        sys.exit("it would ask a second model")
    if HOW in ("new", "bare") and not (HOME / "plugin").exists():
        print("! plugins.entries.diagnostics-otel: plugin not installed: diagnostics-otel — install it")


def install(name: str) -> None:
    if HOW == "bare":
        sys.exit("fetch failed | ENOTFOUND")
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "plugin").write_text(name)


match sys.argv[1:]:
    case ["--version"]:
        print("" if HOW == "unknown" else f"OpenClaw 2026.{'9.6' if HOW in ('new', 'bare') else '4.27'} (abc)")
    case ["config", "validate"]:
        validate()
    case ["plugins", "install", name]:
        install(name)
    case ["gateway", "run"]:
        gateway()
    case ["agent", *words]:
        agent([word for word in words if word != "--json"])
