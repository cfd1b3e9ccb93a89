"""The Claude Agent SDK under LangSmith's integration, which exports by OpenTelemetry (as Langfuse advises, too)."""

import asyncio
import tempfile

import claude_agent_sdk as sdk
import lab
from langsmith.integrations.claude_agent_sdk import configure_claude_agent_sdk
from langsmith.run_trees import get_cached_client

provider = lab.export()
configure_claude_agent_sdk()
SETTINGS = {
    "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2", "ENABLE_TOOL_SEARCH": "false",
}  # fmt: skip


def offered(function):
    async def answer(given: dict) -> dict:
        with lab.logged(f"mcp__lab__{function.__name__}", given):
            return {"content": [{"type": "text", "text": function.__wrapped__(**given)}]}

    accepted = lab.schema(function)["function"]
    return sdk.tool(accepted["name"], accepted["description"], accepted["parameters"])(answer)


async def main() -> None:
    server = sdk.create_sdk_mcp_server("lab", tools=list(map(offered, lab.TOOLS)))
    names = [f"mcp__lab__{tool.__name__}" for tool in lab.TOOLS]
    with tempfile.TemporaryDirectory() as home:
        options = sdk.ClaudeAgentOptions(
            model="claude-sonnet-4-5", system_prompt=lab.SYSTEM, mcp_servers={"lab": server}, setting_sources=[], cwd=home,
            tools=["Agent"] if lab.SCENARIO == "delegation" else [], allowed_tools=[*names, "Agent"], max_turns=9,
            agents={"researcher": sdk.AgentDefinition("Finds things out.", lab.RESEARCHER_SYSTEM, tools=names[:2])}
            if lab.SCENARIO == "delegation" else None,
            include_partial_messages=lab.SCENARIO == "streaming",
            env=SETTINGS | {"HOME": home, "CLAUDE_CONFIG_DIR": home},
        )  # fmt: skip
        async with sdk.ClaudeSDKClient(options) as client:
            await client.query(lab.QUESTION)
            result = [message async for message in client.receive_response()][-1]
    if result.is_error:
        raise RuntimeError(result.result)
    lab.answer(result.result)


try:
    asyncio.run(main())
finally:
    get_cached_client().flush()
    provider.shutdown()
