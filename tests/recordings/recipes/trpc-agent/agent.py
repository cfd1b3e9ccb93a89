"""tRPC-Agent's agents, with their own spans."""

import asyncio
import os
import traceback

import lab

provider = lab.export()

from trpc_agent_sdk.agents import LlmAgent  # noqa: E402
from trpc_agent_sdk.configs import RunConfig  # noqa: E402
from trpc_agent_sdk.models import OpenAIModel  # noqa: E402
from trpc_agent_sdk.runners import Runner  # noqa: E402
from trpc_agent_sdk.sessions import InMemorySessionService  # noqa: E402
from trpc_agent_sdk.tools import AgentTool, FunctionTool  # noqa: E402
from trpc_agent_sdk.types import Content, Part  # noqa: E402

TOOLS = [FunctionTool(tool) for tool in lab.TOOLS]


def agent(name: str, instruction: str, tools: list, **more) -> LlmAgent:
    model = OpenAIModel(model_name=lab.MODEL, api_key="scripted", base_url=lab.URL)
    return LlmAgent(name=name, description=name, model=model, instruction=instruction, tools=tools, **more)


class Researcher(AgentTool):
    async def _run_async_impl(self, *, tool_context, args):
        with lab.logged("researcher", args, kind="agent_as_tool"):
            return await super()._run_async_impl(tool_context=tool_context, args=args)


def root() -> LlmAgent:
    if lab.SCENARIO not in ("delegation", "transfer"):
        return agent("assistant", lab.SYSTEM, TOOLS, parallel_tool_calls=lab.SCENARIO == "parallel_tools")
    researcher = agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)
    if lab.SCENARIO == "delegation":
        return agent("assistant", lab.SYSTEM, [Researcher(agent=researcher)])
    return agent("assistant", lab.SYSTEM, [], sub_agents=[researcher])


async def main() -> None:
    runner = Runner(app_name="weather", agent=root(), session_service=InMemorySessionService())
    texts = [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]
    for text in texts:
        message = Content(role="user", parts=[Part(text=text)])
        asked = {"user_id": "me", "session_id": "1", "new_message": message}
        said = ""
        async for event in runner.run_async(**asked, run_config=RunConfig(streaming=lab.SCENARIO == "streaming")):
            if event.error_code:
                raise RuntimeError(event.error_message)
            if not event.partial and event.content and event.content.parts:
                said = "".join(part.text or "" for part in event.content.parts) or said
    lab.answer(said)
    await runner.close()


code = 0
try:
    asyncio.run(main())
except Exception:
    traceback.print_exc()
    code = 1
finally:
    provider.shutdown()
    os._exit(code)  # one of its threads goes on
