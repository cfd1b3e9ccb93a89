"""`llm_judge`: a judge scores a file, the final answer or the conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from clawtrace.assertions.probe import Finding, unknown_workspace
from clawtrace.assertions.probing.documents import section_of
from clawtrace.assertions.probing.files import PathText, Text, located, read_text
from clawtrace.assertions.probing.judged import JudgedProbe
from clawtrace.assertions.world import World

__all__ = ["LlmJudge"]


class LlmJudge(JudgedProbe):
    """A judge's score of what the run left reaches the threshold.

    Use it for what no rule can check, such as whether a text is persuasive. The judge is one of the evaluation profile's; it
    states its evidence, then a score. What it scores is quoted to it as data. A file or section that does not exist fails
    without asking it. `consistency` asks several times: a judge that is not sure of itself does not pass.

    Example:
        - type: llm_judge
          path: "memory/drafts/{{today}}-output.md"
          rubric: "Score 1-5: Is this email persuasive and brand-safe?"
          pass_threshold: 4
    """

    main_field = "rubric"
    run_files = ("path",)

    rubric: Text
    """What the judge is asked, and what scores mean."""
    target: Literal["path", "final_response", "conversation"] = "path"
    """What is judged: the file `path`, the final answer, or everything that was said."""
    path: PathText | None = None
    """The file, relative to the run's workspace."""
    section: Text | None = None
    """Judge only the part below this heading of the file."""

    @model_validator(mode="after")
    def _one_target(self) -> LlmJudge:
        if self.target == "path" and self.path is None:
            raise ValueError("one of `path` and `target: final_response|conversation` says what is judged")
        if self.target != "path" and (self.path is not None or self.section is not None):
            raise ValueError(f"`path` and `section` name a file, but `target` is {self.target!r}")
        return self

    def probe(self, world: World) -> Finding:
        """Ask the judge about the target."""
        if self.path is not None:
            return self._of_file(self.path, world)
        if self.target == "conversation":
            text = world.conversation() if world.conversation is not None else None
            missing = "messages.text"
        else:
            facts = world.facts() if world.facts is not None else {}
            said = facts.get("final_output")
            text, missing = (said if said is not None else world.final_output), "runs.final_output"
        if text is None:
            return Finding(
                None, f"What was to be judged, the {self.target.replace('_', ' ')}, is not recorded.", None, missing
            )
        if not text.strip():
            return Finding(False, f"The {self.target.replace('_', ' ')} is empty.")
        return self.judged(world, self.rubric, text)

    def _of_file(self, path: str, world: World) -> Finding:
        file = located(path, world)
        if file is None:
            return unknown_workspace(path)
        if not file.is_file():
            return Finding(False, f"`{path}` does not exist.")
        text: str | None = read_text(file)
        if self.section is not None:
            text = section_of(text or "", self.section)
            if text is None:
                return Finding(False, f"`{path}` lacks the section {self.section!r}.")
        return self.judged(world, self.rubric, text or "")
