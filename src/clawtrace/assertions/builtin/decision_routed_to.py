"""`decision_routed_to`: the router chose an agent."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.documents import routed_agents
from clawtrace.assertions.probing.files import PathText, Text, located, read_text, stale_reason
from clawtrace.assertions.world import World

__all__ = ["DecisionRoutedTo"]


class DecisionRoutedTo(Probe):
    """The router's last decision is `expected_agent`.

    A request that went to the wrong agent may still be answered, badly. The state file is a YAML or JSON mapping or a list of
    them, of which the last decides; the agent is `selected_agent`, else `agent`, else `to`, compared whole. A file that was
    there before the run and was not touched holds the decisions of an earlier one, and fails unless `allow_stale` accepts it.

    Example:
        - type: decision_routed_to
          state_path: memory/router-state.yaml
          expected_agent: agents/marketing/brand
    """

    run_files = ("state_path",)

    state_path: PathText
    """The router's state file, relative to the run's workspace."""
    expected_agent: Text
    """Agent id or path, whole."""
    allow_stale: bool = False
    """Whether a file that was there before the run and was not touched is accepted."""

    def probe(self, world: World) -> Finding:
        """Read the last decision."""
        file = located(self.state_path, world)
        if file is None:
            return unknown_workspace(self.state_path)
        if not file.is_file():
            return Finding(False, f"`{self.state_path}` does not exist.", {"exists": False})
        old = "" if self.allow_stale else stale_reason(file, world, None)
        if old is None:
            sentence = f"whether this run wrote `{self.state_path}` is unknown; `allow_stale: true` accepts it."
            return Finding(None, sentence, {"exists": True}, "runs.started_ns")
        if old:
            sentence = f"`{self.state_path}` is stale: {old}; `allow_stale: true` accepts it."
            return Finding(False, sentence, {"exists": True, "stale": True})
        try:
            agents = routed_agents(read_text(file))
        except ValueError as error:
            return Finding(False, f"`{self.state_path}` {error}.")
        if not agents:
            return Finding(False, f"`{self.state_path}` records no decision.", {"agents": []})
        right = agents[-1] == self.expected_agent
        sentence = f"the router chose `{agents[-1]}`, expected `{self.expected_agent}`."
        return Finding(right, sentence, {"agents": agents})

    def expectation(self) -> Any:
        """Return the agent."""
        return self.expected_agent
