"""fast-agent with its own spans and tools that are functions."""

import asyncio
from pathlib import Path

import lab

Path("fastagent.config.yaml").write_text(
    f"default_model: openai.{lab.MODEL}\nopenai: {{api_key: scripted, base_url: '{lab.URL}'}}\n"
    f"otel: {{enabled: true, service_name: agent, otlp_endpoint: '{lab.ENDPOINT}/v1/traces'}}\n"
    "logger: {type: none, progress_display: false, show_chat: false, show_tools: false}\n"
)
from fast_agent import FastAgent  # noqa: E402

fast = FastAgent("lab", parse_cli_args=False, quiet=True)
if lab.SCENARIO == "delegation":

    @fast.agent(name="researcher", instruction=lab.RESEARCHER_SYSTEM, function_tools=lab.TOOLS)
    @fast.agent(name="assistant", instruction=lab.SYSTEM, agents=["researcher"], default=True)
    async def main():
        async with fast.run() as app:
            lab.answer(await app.send(lab.QUESTION, "assistant"))
else:

    @fast.agent(name="assistant", instruction=lab.SYSTEM, function_tools=lab.TOOLS)
    async def main():
        async with fast.run() as app:
            lab.answer(await app.send(lab.QUESTION))


asyncio.run(main())
