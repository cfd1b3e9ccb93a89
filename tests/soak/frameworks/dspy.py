# /// script
# dependencies = [
#     "dspy==3.4.1",
#     "openinference-instrumentation-dspy==0.1.48",
#     "openinference-instrumentation-litellm==0.1.51",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openinference,litellm"]
# named-agents = false
# ///
"""DSPy's ReAct, which has the model write down the tool that it wants."""

from __future__ import annotations

import sys
from typing import Any

import dspy
from agent_program import MAX_STEPS, MODEL, TOOLS, Job, main, system


def run(job: Job) -> str | None:
    engine = "litellm" if "litellm" in sys.argv[1] else "auto"
    model = dspy.LM(f"openai/{MODEL}", engine=engine, api_base=job.url, api_key="none", cache=False, num_retries=1)
    signature = dspy.Signature("question -> answer", system("assistant"))
    said = None
    with dspy.context(lm=model):
        agent = dspy.ReAct(signature, tools=list(TOOLS.values()), max_iters=MAX_STEPS)
        for turn in job.turns:
            said = agent(question=turn).answer
    return said


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.dspy import DSPyInstrumentor

    DSPyInstrumentor().instrument(tracer_provider=provider)


def _litellm(provider: Any) -> None:
    from openinference.instrumentation.litellm import LiteLLMInstrumentor

    LiteLLMInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"openinference": _openinference, "litellm": _litellm}, together=2)
