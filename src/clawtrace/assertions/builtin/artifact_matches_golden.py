"""`artifact_matches_golden`: a file resembles its reference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from clawtrace.assertions.matching.answer_text import rouge_l
from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import ArtifactProbe
from clawtrace.assertions.probing.files import Text, read_text
from clawtrace.assertions.world import World
from clawtrace.support.figures import beside

__all__ = ["ArtifactMatchesGolden"]


class ArtifactMatchesGolden(ArtifactProbe):
    """The file that the run left is as similar to the golden file as asked.

    It finds the draft that lost half of its points. The measure is ROUGE-L F1: the longest common subsequence of words, over
    the number of words of both, without regard to case; 1 is the same text, and below `rouge_threshold` it fails. So does a
    file that was there before the run and was not touched, however similar it is, unless `allow_stale` accepts it.

    Example:
        - type: artifact_matches_golden
          path: "memory/drafts/{{today}}-output.md"
          golden: golden/email-output.md
          rouge_threshold: 0.8
    """

    version = 2
    case_files = ("golden",)

    golden: Text
    """The reference file, relative to the case file."""
    rouge_threshold: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.7
    """Least ROUGE-L F1, above 0 up to 1."""

    def look(self, file: Path, world: World) -> Finding:
        """Compare with the golden file."""
        golden = read_text(self.case_file("golden", world))
        score = round(rouge_l(golden, read_text(file)), 12)  # a quotient of floats
        said = beside(score, self.rouge_threshold, written=".4g")
        sentence = (
            f"ROUGE-L of `{self.path}` against `{self.golden}` is {said}, expected at least {self.rouge_threshold:g}."
        )
        return Finding(score >= self.rouge_threshold, sentence, {"rouge_l": float(said)})
