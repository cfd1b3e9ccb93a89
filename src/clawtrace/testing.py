"""A scripted replacement for a hosted model: deterministic agents for examples and tests, without network or key.

One HTTP server plays one script over OpenAI Chat Completions (``…/chat/completions``), OpenAI Responses
(``…/responses``), Anthropic Messages (``…/messages``) and Gemini (``…:generateContent``), plain and streamed; any path
prefix and any key will do.

In Python::

    from clawtrace.testing import scripted_model

    steps = [
        {"tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}], "usage": {"input": 812, "output": 19}},
        {"text": "It is sunny in Paris.", "usage": {"input": 850, "output": 9}},
    ]
    with scripted_model(steps) as model:
        run_my_agent(base_url=model.url + "/v1")
    assert [exchange.status for exchange in model.log] == [200, 200]

From a shell, ``clawtrace model-server script.yaml`` is such a server.

A script file holds ``steps:`` (and optionally ``default:``); the first step that is unused and whose ``when`` holds
answers a request. Every exchange is logged: the truth that a trace can be compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawtrace._scripted_model.script import (
    Script,
    ScriptedFailure,
    ScriptedStep,
    ScriptedToolCall,
    Usage,
    When,
    load_script,
)
from clawtrace._scripted_model.server import Exchange, ScriptedModel

__all__ = [
    "Exchange",
    "Script",
    "ScriptedFailure",
    "ScriptedModel",
    "ScriptedStep",
    "ScriptedToolCall",
    "Usage",
    "When",
    "load_script",
    "scripted_model",
]

Steps = Sequence[ScriptedStep | Mapping[str, Any]]


@contextmanager
def scripted_model(
    script: Script | Path | str | Steps, *, port: int = 0, log_path: Path | None = None
) -> Iterator[ScriptedModel]:
    """Run a scripted model while the block runs.

    Args:
        script: A `Script`, the path of a YAML file, or the steps themselves.
        port: 0 takes any free port.
        log_path: Where to write the log as JSON lines; `ScriptedModel.log` holds it in any case.

    Raises:
        ConfigError: the file is no script.
        pydantic.ValidationError: the steps are no steps.
    """
    if isinstance(script, Script):
        whole = script
    elif isinstance(script, (str, Path)):
        whole = load_script(Path(script))
    else:
        whole = Script.model_validate({"steps": list(script)})
    model = ScriptedModel(whole, port, log_path).start()
    try:
        yield model
    finally:
        model.stop()
