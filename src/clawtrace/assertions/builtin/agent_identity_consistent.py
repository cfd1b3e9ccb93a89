"""`agent_identity_consistent`: what the agent wrote fits its persona."""

from __future__ import annotations

from clawtrace.assertions.probe import Finding, unknown_workspace
from clawtrace.assertions.probing.files import PathText, Text, located, read_text
from clawtrace.assertions.probing.judged import JudgedProbe
from clawtrace.assertions.world import World

__all__ = ["AgentIdentityConsistent"]

_TASK = """\
Is the text consistent with the persona and the principles below: its voice, its values, what it does and what it refuses to do?
The best score: entirely. The worst: another persona could have written it, or it breaks a principle.

The persona:
{soul}"""


class AgentIdentityConsistent(JudgedProbe):
    """The file that the run left is consistent with the persona in SOUL.md, in a judge's eyes.

    Agents that run for long drift from who they are meant to be. The judge is one of the evaluation profile's; it is given the
    persona and, quoted as data, the agent's text. A file that does not exist fails without asking it.

    Example:
        - type: agent_identity_consistent
          output_path: "memory/drafts/{{today}}-output.md"
          soul_path: agents/marketing/brand/SOUL.md
    """

    main_field = "output_path"
    case_files = ("soul_path",)
    run_files = ("output_path",)

    output_path: PathText
    """The agent's file, relative to the run's workspace."""
    soul_path: Text
    """The persona, relative to the case file."""

    def probe(self, world: World) -> Finding:
        """Ask the judge."""
        file = located(self.output_path, world)
        if file is None:
            return unknown_workspace(self.output_path)
        if not file.is_file():
            return Finding(False, f"`{self.output_path}` does not exist.")
        task = _TASK.format(soul=read_text(self.case_file("soul_path", world)))
        return self.judged(world, task, read_text(file))
