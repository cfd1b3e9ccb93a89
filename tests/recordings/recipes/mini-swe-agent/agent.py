"""mini-swe-agent, a coding agent whose only tool is a shell, under Alibaba's LoongSuite: its instrumentations of the agent and of LiteLLM."""

import os

import lab
from opentelemetry.instrumentation.litellm import LiteLLMInstrumentor
from opentelemetry.instrumentation.minisweagent import MiniSweAgentInstrumentor

provider = lab.export()
LiteLLMInstrumentor().instrument(tracer_provider=provider)
MiniSweAgentInstrumentor().instrument(tracer_provider=provider)

import minisweagent.environments  # noqa: E402
import yaml  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.config import builtin_config_dir  # noqa: E402
from minisweagent.models.litellm_model import LitellmModel  # noqa: E402

SUBMIT = "printf 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n21 degrees in Paris'"
os.environ["PATH"] = os.pathsep.join((str(lab.commands("bash")), os.environ["PATH"]))
config = yaml.safe_load((builtin_config_dir / "mini.yaml").read_text())
settings = {"api_base": lab.URL, "api_key": "none", "max_retries": 0}
model = LitellmModel(model_name=f"openai/{lab.MODEL}", model_kwargs=settings, cost_tracking="ignore_errors")
environment = minisweagent.environments.get_environment({"environment_class": "local"})
kept = {key: value for key, value in config["agent"].items() if key in ("system_template", "instance_template")}
try:
    done = DefaultAgent(model, environment, **kept).run(lab.QUESTION)
    if done.get("exit_status") != "Submitted":
        raise SystemExit(1)
    with lab.logged("bash", {"command": SUBMIT}):
        lab.answer(done["submission"].strip())
finally:
    provider.shutdown()
