"""A proxy between an MCP client and its server: passes on, records and replays tool calls, and makes them fail on purpose."""
