"""nanobot, asked once, with its tracing by Langfuse: the wrapper of OpenAI's client, and nothing of the agent or its tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lab

os.environ["PATH"] = os.pathsep.join((str(lab.commands("exec")), os.environ["PATH"]))
settings = Path.home() / ".nanobot/config.json"
settings.parent.mkdir()
settings.write_text(
    json.dumps(
        {
            "agents": {"defaults": {"provider": "custom", "model": lab.MODEL}},
            "providers": {"custom": {"apiKey": "scripted", "apiBase": lab.URL}},
            "tools": {"exec": {"pathPrepend": os.environ["PATH"], "allowedEnvKeys": ["TOOLS_LOG"]}},
        }
    )
)
nanobot = str(Path(sys.executable).with_name("nanobot"))
environment = os.environ | {
    "LANGFUSE_PUBLIC_KEY": "pk-lf-none",
    "LANGFUSE_SECRET_KEY": "sk-lf-none",
    "LANGFUSE_BASE_URL": lab.ENDPOINT,
}
command = [nanobot, "agent", "--no-markdown", "-m", lab.QUESTION]
done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
print(done.stdout)
if done.returncode or "\nError: " in done.stdout:
    sys.exit(done.returncode or 1)
lab.answer(done.stdout.strip().splitlines()[-1].strip())
