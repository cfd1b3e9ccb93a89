"""Google ADK under OpenLIT, which also instruments the model's SDK."""

import asyncio
import os

import lab
import openlit
from opentelemetry import trace

openlit.init(application_name="weather", environment="test", disable_metrics=True)
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.models.google_llm import Gemini  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.adk.tools.agent_tool import AgentTool  # noqa: E402
from google.genai import types  # noqa: E402

os.environ["GOOGLE_GEMINI_BASE_URL"] = lab.URL.removesuffix("/v1")
MODEL = Gemini(model=lab.MODEL)


def logged(tool, args, tool_context) -> None:
    if isinstance(tool, AgentTool):
        with lab.logged(tool.name, args, kind="agent_as_tool"):
            pass


async def main() -> str:
    more = {"tools": lab.TOOLS}
    if lab.SCENARIO in ("delegation", "transfer"):
        researcher = LlmAgent(
            name="researcher", model=MODEL, instruction=lab.RESEARCHER_SYSTEM, description="Researches", tools=lab.TOOLS
        )
        more = {"sub_agents": [researcher]} if lab.SCENARIO == "transfer" else {"tools": [AgentTool(researcher)]}
    assistant = LlmAgent(name="assistant", model=MODEL, instruction=lab.SYSTEM, before_tool_callback=logged, **more)
    runner = InMemoryRunner(agent=assistant, app_name="agent")
    session = await runner.session_service.create_session(app_name="agent", user_id="user")
    said = ""
    message = types.Content(role="user", parts=[types.Part(text=lab.QUESTION)])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        if event.error_code or event.error_message:
            raise RuntimeError(event.error_message)
        if event.is_final_response() and event.content:
            said = "".join(part.text or "" for part in event.content.parts)
    return said


try:
    lab.answer(asyncio.run(main()))
finally:
    trace.get_tracer_provider().shutdown()
