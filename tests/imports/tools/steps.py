"""What the agent of every tool does, and what its two models answer: two agents, three model calls, a tool that works and one that fails."""

from contextlib import suppress

WEATHER = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
CALLS = {
    "first": (
        [{"role": "user", "content": "How is the weather?"}],
        {"role": "assistant", "content": None, "tool_calls": [WEATHER]},
        {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    ),
    "inner": (
        [{"role": "user", "content": "Read."}],
        {"role": "assistant", "content": "Read it."},
        {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27},
    ),
    "last": (
        [{"role": "user", "content": "And now?"}],
        {"role": "assistant", "content": "Sunny."},
        {"input_tokens": 30, "output_tokens": 9, "total_tokens": 39},
    ),
}


def refused():
    raise RuntimeError("no such order")


def work(llm, get_weather, refund, researcher):
    """Take the steps with the functions of a tool."""
    llm(*CALLS["first"])
    get_weather(city="Paris")
    with suppress(RuntimeError):
        refund(order="A-1", amount=2.5)
    researcher()
    llm(*CALLS["last"])
    return "Sunny."
