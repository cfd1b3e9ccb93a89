"""LangSmith's spans of tools that failed side by side: only the first that failed has the status of it."""

from __future__ import annotations

from building import Lab, S


def refund(id: str, order: str, error: str | None) -> S:
    attrs = {
        "langsmith.span.kind": "tool",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.system": "langchain",
        "gen_ai.tool.name": "refund_order",
        "gen_ai.tool.call.id": id,
        "gen_ai.prompt": f'{{"order_id":"{order}"}}',
        "gen_ai.completion": "{}",
    }
    events = [("exception", {"exception.message": f"order {order} cannot be refunded"})]
    return S(id, "", 1, 9, "refund_order", attrs, events, error, scope="langsmith")


def test_a_tool_without_output_whose_span_has_an_exception_failed(lab: Lab) -> None:
    lab.put(refund("a", "A-17", None), refund("b", "B-18", "cannot be refunded"))

    assert lab.rows("SELECT outcome, error FROM tool_calls ORDER BY call_id") == [
        ("error", "order A-17 cannot be refunded"),
        ("error", "cannot be refunded"),
    ]
    assert lab.totals("errors") == (2,)
