"""An agent program of `tests/soak/frameworks` with any instrumentations at once.

    python pairing.py FRAMEWORK,INSTRUMENTATION… JOBS LOG

Instrumentations are those of the program itself, or of `OTHERS`: those of what lies below it. They are switched on in the order
in which they are named.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import partial
from pathlib import Path
from typing import Any

import agent_program

OTHERS = {
    "openinference-openai": "openinference.instrumentation.openai:OpenAIInstrumentor",
    "openllmetry-openai": "opentelemetry.instrumentation.openai:OpenAIInstrumentor",
    "genai-openai": "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor",
    "v2-openai": "opentelemetry.instrumentation.openai_v2:OpenAIInstrumentor",
}
"""Class of an instrumentation, by its name here."""


def _instrument(provider: Any, place: str) -> None:
    module, name = place.split(":")
    getattr(importlib.import_module(module), name)().instrument(tracer_provider=provider)


def _nothing(provider: Any) -> None:
    """The framework itself: it is the first word of the command line."""


def _exported(run: Any) -> Any:
    """Return `run` with a wait for the exporter that has a separate thread, which the provider does not know."""

    def waiting(job: agent_program.Job) -> str | None:
        try:
            return run(job)
        finally:
            tracing = sys.modules.get("langchain_core.tracers.langchain")
            if tracing is not None:
                tracing.wait_for_all_tracers()

    return waiting


def main() -> None:
    """Run the program of the command line."""
    framework = sys.argv[1].split(",")[0]
    given: dict[str, Any] = {}

    def note(run: Any, instrument: Any, together: int = 1) -> None:
        given.update(run=run, instrument=instrument, together=together)

    real, agent_program.main = agent_program.main, note
    path = Path(agent_program.__file__).parent / "frameworks" / f"{framework.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location("__main__", path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    others = {name: partial(_instrument, place=place) for name, place in OTHERS.items()}
    real(_exported(given["run"]), {framework: _nothing, **others, **given["instrument"]}, given["together"])


if __name__ == "__main__":
    main()
