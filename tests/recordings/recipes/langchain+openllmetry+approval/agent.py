"""The program of `langchain+openinference+approval`, through another instrumentation."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "langchain+openinference+approval" / "agent.py"), run_name="__main__")
