"""gptme without a dialogue: the coding agent with its shell, whose spans it writes itself, over OpenLLMetry's of the model's SDK."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lab

os.environ["PATH"] = os.pathsep.join((str(lab.commands("shell")), os.environ["PATH"]))
gptme = str(Path(sys.executable).with_name("gptme"))
options = [
    "--non-interactive",
    "--name",
    "recorded",
    "--tool-format",
    "tool",
    "--tools",
    "shell,complete",
    "--context",
    "files",
]
command = [gptme, *options, "--output-format", "json", "--model", f"local/{lab.MODEL}", lab.QUESTION]
done = subprocess.run(command, env=os.environ | {"OTLP_ENDPOINT": lab.ENDPOINT}, stdout=subprocess.PIPE, text=True)
print(done.stdout)
if done.returncode:
    sys.exit(done.returncode)
messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
said = [message["content"] for message in messages if message.get("role") == "assistant"]
lab.answer(said[-1].split("\n@complete")[0].strip())
