"""Mistral Vibe, whose spans it writes itself: the coding agent in its headless mode, with its own shell and sub-agents."""

import os
import sys
from pathlib import Path

import lab

CONFIG = f"""
enable_telemetry = true
enable_otel = true
otel_endpoint = "{lab.ENDPOINT}"
active_model = "scripted"
[[providers]]
name = "scripted"
api_base = "{lab.URL}"
api_key_env_var = "OPENAI_API_KEY"
[[models]]
name = "{lab.MODEL}"
provider = "scripted"
alias = "scripted"
"""
RESEARCHER = """
display_name = "Researcher"
description = "finds things out"
agent_type = "subagent"
"""
home = Path.home() / ".vibe"
(home / "agents").mkdir(parents=True)
(home / "config.toml").write_text(CONFIG)
(home / "agents" / "researcher.toml").write_text(RESEARCHER)
path = os.pathsep.join((str(lab.commands("bash", timeout=None)), os.environ["PATH"]))
vibe = str(Path(sys.executable).with_name("vibe"))
allowed = [] if lab.SCENARIO == "tool_denied" else ["--auto-approve"]
lab.run_agent([vibe, "--legacy-harness", "--trust", *allowed, "-p", lab.QUESTION], PATH=path)
