"""Agents of a run, and who delegated to whom."""

from __future__ import annotations

from building import Lab, S, agent, chat, hex_id, tool


class TestAgents:
    def test_a_sub_agent_below_a_tool(self, lab: Lab) -> None:
        lab.put(
            agent("a"),
            tool("t", "a", at=1, tool="ask"),
            agent("b", "t", at=2, to=9, agent="researcher"),
            chat("m", "b", at=3),
        )

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "tool"),
        ]
        assert lab.rows("SELECT agent_span_id FROM llm_calls") == [(hex_id("b"),)]

    def test_a_handoff_names_its_source(self, lab: Lab) -> None:
        """The target stands next to its source, below one chain: the name decides, not the nesting."""
        chain = S("c", "", 0, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
        lab.put(
            chain, agent("a", "c", at=1, to=20), agent("b", "c", at=21, to=40, agent="researcher", **{"gen_ai.agent.handoff_parent": "assistant"})
        )  # fmt: skip

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "handoff"),
        ]


def test_a_handoff_span_names_its_target(lab: Lab) -> None:
    attrs = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "assistant", "gen_ai.handoff.to_agent": "billing"}  # fmt: skip
    chain = S("c", "", 1, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
    handoff = S("h", "a", 10, 11, "handoff", attrs)
    lab.put(chain, agent("a", "c", at=2, to=12), handoff, agent("b", "c", at=13, to=40, agent="billing"))

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
        ("assistant", None, "root"),
        ("billing", 1, "handoff"),
    ]
