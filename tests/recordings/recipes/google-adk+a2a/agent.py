"""Google ADK whose researcher is another process behind A2A: a remote agent as a tool, or one to hand over to."""

import asyncio
import os
import socket
import subprocess
import sys
import urllib.request

import lab
from google.adk.agents import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.starlette import StarletteInstrumentor

provider = lab.export()
os.environ["GOOGLE_GEMINI_BASE_URL"] = lab.URL.removesuffix("/v1")
MODEL = Gemini(model=lab.MODEL)


def serve(port: int) -> None:
    import uvicorn
    from google.adk.a2a.utils.agent_to_a2a import to_a2a

    researcher = LlmAgent(
        name="researcher", model=MODEL, instruction=lab.RESEARCHER_SYSTEM, description="Researches", tools=lab.TOOLS
    )
    app = to_a2a(researcher, host="127.0.0.1", port=port)
    StarletteInstrumentor().instrument_app(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def logged(tool, args, tool_context) -> None:
    if isinstance(tool, AgentTool):
        with lab.logged(tool.name, args, kind="agent_as_tool"):
            pass


async def ask(card: str) -> str:
    researcher = RemoteA2aAgent(name="researcher", description="Researches", agent_card=card)
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


def wait(url: str, server: subprocess.Popen) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url).read()
            return
        except OSError:
            pass


def main() -> None:
    HTTPXClientInstrumentor().instrument()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, lab.SCENARIO, str(port)])
    card = f"http://127.0.0.1:{port}/.well-known/agent-card.json"
    try:
        wait(card, server)
        lab.answer(asyncio.run(ask(card)))
    finally:
        server.terminate()
        server.wait()
        provider.shutdown()


if len(sys.argv) > 2:
    serve(int(sys.argv[2]))
else:
    main()
