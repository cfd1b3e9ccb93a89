"""The walk: nested intervals, cycles, and which spans are one logical call."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.tree.walk import Walked
from clawtrace.facts.calls.tree.walk import walk as walk_run
from clawtrace.facts.spans.span import Span


def span(parent: int | None, kind: str = "other", **fields: Any) -> Span:
    """A span whose parent is known by its place in the list."""
    start = fields.pop("start", 0)
    return Span(
        parent_sid=parent,
        kind=kind,
        scope=fields.pop("scope", "s"),
        start_ns=start,
        end_ns=fields.pop("end", start + 1),
        **fields,
    )


def walk(spans: list[Span]) -> Walked:
    return walk_run(spans, [one.parent_sid for one in spans], Ledger(spans))


def calls(spans: list[Span]) -> list[int | None]:
    """The call of each span, as the tree alone shows it."""
    ledger = Ledger(spans)
    walk_run(spans, [one.parent_sid for one in spans], ledger)
    return ledger.group


def ancestors(parents: list[int | None], node: int) -> list[int]:
    """The literal definition: follow parents up."""
    found = []
    parent = parents[node]
    while parent is not None:
        found.append(parent)
        parent = parents[parent]
    return found


@st.composite
def forests(draw: st.DrawFn) -> list[int | None]:
    size = draw(st.integers(1, 25))
    return [draw(st.one_of(st.none(), st.integers(0, n - 1))) if n else None for n in range(size)]


class TestTree:
    @given(forests())
    def test_intervals_are_ancestry(self, parents: list[int | None]) -> None:
        """D lies inside of a's interval exactly when a is an ancestor of d; depth and root follow."""
        w = walk([span(parent) for parent in parents])
        for d in range(len(parents)):
            above = ancestors(parents, d)
            inside = [a for a in range(len(parents)) if w.enter[a] < w.enter[d] and w.leave[d] < w.leave[a]]

            assert sorted(above) == inside
            assert w.depth[d] == len(above)
            assert w.root[d] == (above[-1] if above else d)
            assert w.enter[d] < w.leave[d]

    @given(st.lists(st.one_of(st.none(), st.integers(0, 11)), min_size=1, max_size=12))
    def test_cycles_are_cut_and_harmless(self, parents: list[int | None]) -> None:
        """Whatever parents are claimed, each span is entered once, and only spans on a cycle are cut."""
        rows = [span(p if p is None or p < len(parents) else None) for p in parents]
        w = walk(rows)
        positions = sorted([*w.enter, *w.leave])

        assert positions == list(range(1, 2 * len(rows) + 1))
        for sid, cut in enumerate(w.cut):
            if cut:
                node, steps = rows[sid].parent_sid, 0
                while node is not None and node != sid and steps <= len(rows):
                    node, steps = rows[node].parent_sid, steps + 1
                assert node == sid

    def test_five_thousand_deep(self) -> None:
        """Depth is bounded by nothing but the number of spans."""
        w = walk([span(None if n == 0 else n - 1) for n in range(5000)])

        assert w.depth[4999] == 4999
        assert (w.enter[0], w.leave[0]) == (1, 10000)


class TestModelCalls:
    def groups(self, *rows: Span) -> list[int | None]:
        return calls(list(rows))

    def test_a_wrapper_without_id_is_the_call_inside(self) -> None:
        one, two = self.groups(span(None, "llm", scope="outer"), span(0, "llm", scope="inner", response_id="r1"))

        assert one == two

    def test_a_sub_agents_call_below_a_tool_is_its_own(self) -> None:
        """The search for the enclosing model call stops at a tool or an agent."""
        groups = self.groups(
            span(None, "llm"), span(0, "tool", tool_name="t"), span(1, "llm"), span(2, "agent"), span(3, "llm")
        )

        assert len({groups[0], groups[2], groups[4]}) == 3

    def test_a_wrapper_of_two_answered_calls_counts_none(self) -> None:
        groups = self.groups(
            span(None, "llm"), span(0, "llm", response_id="a"), span(0, "llm", response_id="b", start=2)
        )

        assert groups[1] != groups[2]
        assert groups[0] in (groups[1], groups[2])

    def test_the_same_response_in_another_trace_is_the_same_call(self) -> None:
        one, two = self.groups(
            span(None, "llm", scope="sdk", response_id="r"), span(None, "llm", scope="oi", response_id="r")
        )

        assert one == two

    def test_a_server_that_repeats_one_id_is_counted_call_by_call(self) -> None:
        """Within one scope two spans side by side are two calls, whatever their id; a second scope pairs by order."""
        a1, a2, b1, b2 = self.groups(
            span(None, "llm", scope="a", response_id="x"),
            span(None, "llm", scope="a", response_id="x", start=5),
            span(None, "llm", scope="b", response_id="x", start=6),
            span(None, "llm", scope="b", response_id="x", start=7),
        )

        assert a1 != a2
        assert (b1, b2) == (a1, a2)


class TestToolCalls:
    def test_mcp_layers_are_one_call(self) -> None:
        groups = calls(
            [
                span(None, "tool", tool_name="w", tool_call_id="c"),
                span(0, "tool", scope="mcp", tool_name="w"),
                span(1, "tool", tool_name="w"),
            ]
        )

        assert len(set(groups)) == 1

    def test_the_same_tool_below_an_agent_is_a_call_of_its_own(self) -> None:
        groups = calls([span(None, "tool", tool_name="t"), span(0, "agent"), span(1, "tool", tool_name="t")])

        assert groups[0] != groups[2]

    def test_siblings_of_one_name_are_two_calls(self) -> None:
        groups = calls([span(None), span(0, "tool", tool_name="t"), span(0, "tool", tool_name="t", start=2)])

        assert groups[1] != groups[2]


class TestCauses:
    def test_a_failure_that_travels_up_counts_once(self) -> None:
        w = walk(
            [
                span(None, "agent", failed=True, message="boom", end=9),
                span(0, "chain", end=8),
                span(1, "tool", failed=True, message="E: boom", start=3, end=4),
            ]
        )

        assert w.cause == [False, False, True]

    def test_a_later_failure_of_the_parent_is_its_own(self) -> None:
        """The tool's failure was handled and work went on: what the agent then failed of is another cause."""
        w = walk(
            [
                span(None, "agent", failed=True, message="limit exceeded", end=9),
                span(0, "tool", failed=True, message="no such file", start=1, end=2),
                span(0, "llm", start=3, end=4),
            ]
        )

        assert w.cause == [True, True, False]

    def test_infrastructure_is_no_cause_and_hides_none(self) -> None:
        w = walk(
            [span(None, "llm", failed=True, message="x", end=5), span(0, "infra", failed=True, message="x", start=1)]
        )

        assert w.cause == [True, False]
