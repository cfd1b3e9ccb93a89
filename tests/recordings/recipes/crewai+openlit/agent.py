"""CrewAI through OpenLIT."""

import lab
import openlit

openlit.init(application_name="agent", disable_metrics=True, disable_batch=True)

from crewai import LLM, Agent, Crew, Task  # noqa: E402
from crewai.tools import tool  # noqa: E402

TOOLS = [tool(function.__name__)(function) for function in lab.TOOLS]


def agent(role: str, tools: list, **more: object) -> Agent:
    model = LLM(model=f"openai/{lab.MODEL}", base_url=lab.URL, api_key="scripted", stream=lab.SCENARIO == "streaming")
    return Agent(role=role, goal="Answer.", backstory=f"You are the {role}.", tools=tools, llm=model, **more)


alone = lab.SCENARIO != "delegation"
first = agent("assistant", TOOLS if alone else [], allow_delegation=not alone)
agents = [first] if alone else [first, agent("researcher", TOOLS)]
task = Task(description=lab.QUESTION, expected_output="An answer.", agent=first)
lab.answer(str(Crew(agents=agents, tasks=[task]).kickoff()))
