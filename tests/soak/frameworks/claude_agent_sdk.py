# /// script
# dependencies = [
#     "claude-agent-sdk==0.2.189",
#     "openinference-instrumentation-claude-agent-sdk==0.1.22",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference"]
# helpers = ["subagent"]
# main-agent = "claude-code"
# ///
"""The Claude Agent SDK, which starts the `claude` command that it contains; its main agent has no name."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import aclosing
from typing import Any

import claude_agent_sdk as sdk
from agent_program import MAX_STEPS, TOOLS, Job, main, schema, system, tools_as, write

MODEL = "claude-sonnet-4-5"
CALLED = tools_as("mcp__lab__")
SETTINGS = {
    "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2", "ENABLE_TOOL_SEARCH": "false",
}  # fmt: skip


def _offered(name: str) -> Any:
    async def answer(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": CALLED[name](**given)}]}

    return sdk.tool(name, TOOLS[name].__doc__ or "", schema(TOOLS[name]))(answer)


async def _subagent_ended(asked: Any, _id: Any, _context: Any) -> Any:
    end = time.time()
    start = end - asked.get("duration_ms", 0) / 1000
    write(
        kind="tool",
        name=asked["tool_name"],
        arguments=asked["tool_input"],
        start=start,
        end=end,
        error=asked.get("error"),
    )
    return {}


def run(job: Job) -> str | None:
    return asyncio.run(_run(job))


async def _run(job: Job) -> str | None:
    lab = sdk.create_sdk_mcp_server("lab", tools=[_offered(name) for name in TOOLS])
    names = [f"mcp__lab__{name}" for name in TOOLS]
    hooks = [sdk.HookMatcher(matcher="Agent", hooks=[_subagent_ended])]
    helper = sdk.AgentDefinition("Finds things out.", system("researcher"), tools=names[:2])
    with tempfile.TemporaryDirectory() as home:
        options = sdk.ClaudeAgentOptions(
            model=MODEL, system_prompt=system("assistant"), mcp_servers={"lab": lab}, setting_sources=[], cwd=home,
            tools=["Agent"] if job.helper else [], agents={"researcher": helper} if job.helper else None,
            allowed_tools=[*names, "Agent"], max_turns=MAX_STEPS, include_partial_messages=job.stream,
            hooks={"PostToolUse": hooks, "PostToolUseFailure": hooks},
            env=SETTINGS | {"ANTHROPIC_BASE_URL": job.url.removesuffix("/v1"), "HOME": home, "CLAUDE_CONFIG_DIR": home},
        )  # fmt: skip
        if len(job.turns) == 1:
            async with aclosing(sdk.query(prompt=job.turns[0], options=options)) as said:  # type: ignore[type-var]
                return _text([message async for message in said][-1])
        output = None
        async with sdk.ClaudeSDKClient(options) as client:
            for turn in job.turns:
                await client.query(turn)
                output = _text([message async for message in client.receive_response()][-1])
        return output


def _text(result: Any) -> str | None:
    if result.is_error:
        raise RuntimeError(result.result)
    return result.result


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.claude_agent_sdk import ClaudeAgentSDKInstrumentor

    ClaudeAgentSDKInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"openinference": _openinference}, together=2)
