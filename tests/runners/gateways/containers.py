#!/usr/bin/env python3
"""A program that "runs containers": it writes down each command line and executes what it says, in this machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

words = sys.argv[1:]
log = Path(__file__).with_name("asked.jsonl")
with log.open("a") as stream:
    stream.write(json.dumps(words) + "\n")
running = Path(__file__).with_name("running")
running.mkdir(exist_ok=True)
match words:
    case ["run", *rest]:
        options: dict[str, list[str]] = {}
        while rest[0].startswith("--"):
            name = rest.pop(0)
            options.setdefault(name, []).append("" if name in ("--rm", "--init") else rest.pop(0))
        image, *command = rest
        env = {name: os.environ[name] for name in [*options["--env"], "PATH"] if name in os.environ}
        process = subprocess.Popen([options["--entrypoint"][0], *command], env=env, cwd=options["--workdir"][0])
        container = running / options["--name"][0]
        container.write_text(json.dumps({"pid": process.pid, "env": sorted(options["--env"])}))
        (container.with_suffix(".env")).write_text(json.dumps(env))
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
        container.unlink(missing_ok=True)
        sys.exit(code if code >= 0 else 128 - code)
    case ["exec", name, *command]:
        env = json.loads((running / name).with_suffix(".env").read_text())
        sys.exit(subprocess.run(command, env=env, check=False).returncode)
    case ["rm", "--force", name]:
        container = running / name
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended in this moment
            os.kill(json.loads(container.read_text())["pid"], signal.SIGKILL)
        container.unlink(missing_ok=True)
