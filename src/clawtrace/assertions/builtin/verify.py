"""`verify`: a command of the user's own judges."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.matching.matchers import one_form
from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.files import PathText, Text, located
from clawtrace.assertions.probing.shell import run_shell
from clawtrace.assertions.world import World

__all__ = ["Verify"]


class Verify(Probe):
    """The command `run` succeeds in the run's workspace after the agent has ended, with the expected output.

    If it can be checked in a terminal, it can be checked here: a test suite, a database, a container. The exit code is looked
    at first: where it is not 0, the output is not looked at. The command is given to `/bin/sh`, gets the environment of
    the clawtrace process, and is ended with everything it started after `timeout` seconds, which fails.

    Example:
        - type: verify
          run: "jq -r .status result.json"
          output_equals: done
    """

    main_field = "run"
    outside = True

    run: Text
    """Shell command."""
    output_contains: Text | None = None
    """Text that its standard output contains."""
    output_equals: Annotated[str, Field(strict=True)] | None = None
    """The expected standard output; surrounding white space is ignored."""
    timeout: Annotated[float, Field(strict=True, gt=0, le=3600)] = 60.0
    """Time limit in seconds."""
    cwd: PathText | None = None
    """Working folder, relative to the workspace; an absolute one also works for recordings."""

    def probe(self, world: World) -> Finding:
        """Run the command."""
        folder = located(self.cwd or ".", world)
        if folder is None:
            return unknown_workspace(f"the command {self.run!r}")
        if not folder.is_dir():
            what = "the run's workspace" if self.cwd is None else f"the folder `{self.cwd}`"
            return Finding(False, f"{what} does not exist.", {"exists": False})
        ended = run_shell(self.run, folder, world.env, self.timeout)
        actual = {"exit_code": ended.exit_code, "stdout": ended.stdout[:2000], "stderr": ended.stderr[:2000]}
        if ended.exit_code is None:
            return Finding(False, f"{self.run!r} did not end within {self.timeout:g} s and was stopped.", actual)
        if ended.exit_code != 0:
            last = ended.stderr.strip() or ended.stdout.strip()
            said = f": {last.splitlines()[-1][:200]}" if last else ""
            return Finding(False, f"{self.run!r} ended with exit code {ended.exit_code}{said}.", actual)
        stdout = one_form(ended.stdout)
        if ended.cut and (self.output_equals is not None or not self._is_in(stdout)):
            sentence = f"{self.run!r} printed more than clawtrace reads: the rest of its output is unknown."
            return Finding(None, sentence, actual, "the rest of the output")
        if not self._is_in(stdout):
            return Finding(False, f"the output of {self.run!r} does not contain {self.output_contains!r}.", actual)
        if self.output_equals is not None and stdout.strip() != one_form(self.output_equals).strip():
            found = stdout.strip()[:200]
            return Finding(False, f"the output of {self.run!r} is {found!r}, expected {self.output_equals!r}.", actual)
        return Finding(True, f"{self.run!r} succeeded.", actual)

    def _is_in(self, stdout: str) -> bool:
        return self.output_contains is None or one_form(self.output_contains) in stdout

    def expectation(self) -> Any:
        """Return the command and its output."""
        asked = self.model_dump(mode="json", include={"run", "output_contains", "output_equals"})
        return {name: value for name, value in asked.items() if value is not None}
