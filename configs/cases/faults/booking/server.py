"""An MCP server with the tools of a travel agency; nothing here knows clawtrace."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("travel")


@server.tool()
def search_flights(city: str) -> list[dict[str, str]]:
    """Find tomorrow's flights to a city."""
    return [{"flight": "TP 1001", "to": city, "at": "09:40"}]


@server.tool()
def book_flight(flight: str) -> str:
    """Book a flight, which cannot be undone."""
    return f"booked {flight}"


if __name__ == "__main__":
    server.run("stdio")
