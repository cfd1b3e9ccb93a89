"""OpenHands' SDK, whose spans Laminar's library writes and sends to any OTLP endpoint: its agent with a terminal and sub-agents."""

import os
from pathlib import Path

import lab

os.environ["PATH"] = os.pathsep.join((str(lab.commands("terminal")), os.environ["PATH"]))

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.conversation import get_agent_final_response
from openhands.sdk.subagent import register_agent
from openhands.tools.task import TaskToolSet
from openhands.tools.terminal import TerminalTool

TERMINAL = Tool(name=TerminalTool.name, params={"terminal_type": "subprocess"})


def researcher(llm: LLM) -> Agent:
    return Agent(llm=llm, tools=[TERMINAL])


register_agent("researcher", researcher, "finds things out")
llm = LLM(
    model=f"openai/{lab.MODEL}",
    base_url=lab.URL,
    api_key="scripted",
    stream=lab.SCENARIO == "streaming",
    num_retries=2,
    retry_min_wait=0,
    retry_max_wait=1,
    usage_id="agent",
)
agent = Agent(llm=llm, tools=[TERMINAL, Tool(name=TaskToolSet.name)])
conversation = Conversation(agent=agent, workspace=Path.cwd(), visualizer=None)
try:
    conversation.send_message(lab.QUESTION)
    conversation.run()
    lab.answer(get_agent_final_response(conversation.state.events))
except Exception as error:
    print(error)
    raise SystemExit(1) from error
finally:
    conversation.close()
