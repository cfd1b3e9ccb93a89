"""`python_hook`: a Python function of the user's own judges."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from clawtrace.assertions.probe import Finding, Probe
from clawtrace.assertions.probing.files import Text
from clawtrace.assertions.probing.hook_process import HookError, call_hook
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World

__all__ = ["PythonHook"]


def _check_name(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")):
        raise refused(f"must be a name of Python, found {text!r}")
    return text


Name = Annotated[str, Field(strict=True), AfterValidator(_check_name)]


class PythonHook(Probe):
    """The Python function answers true.

    Some questions need code: a parser, a database, arithmetic over several files. The function takes nothing, `run`, or `run`
    and `context`, and returns true or false, or a mapping of `passed`, `message` and `metadata`. `run` holds the facts
    that `clawtrace inspect --json` prints for the run, with its `workspace`, `run_status`, `agent_exit_code` and `changes`;
    keys are attributes as well. It runs in its own process, with a time limit, and without network unless the
    evaluation profile allows it; hooks are off until the profile says `allow_local_python_hooks: true`.

    Example:
        - type: python_hook
          path: hooks/my_check.py
          callable_name: check_output
    """

    main_field = "path"
    case_files = ("path",)
    needs_permission = True
    outside = True

    path: Text | None = None
    """Python file, relative to the case file."""
    import_path: Name | None = None
    """Dotted name of a module, importable from the folder in which clawtrace was started."""
    callable_name: Name
    """Name of the function."""
    timeout: Annotated[float, Field(strict=True, gt=0, le=3600)] = 60.0
    """Time limit in seconds."""

    @model_validator(mode="after")
    def _check(self) -> PythonHook:
        if (self.path is None) == (self.import_path is None):
            found = "neither is given" if self.path is None else "both are given"
            raise refused(f"needs exactly one of `path` and `import_path`; {found}")
        return self

    def probe(self, world: World) -> Finding:
        """Call the function in its own process."""
        if not world.hooks.allowed:
            raise HookError("Python hooks are off; `security_policy: {allow_local_python_hooks: true}` allows them")
        order = {
            "path": None if self.path is None else str(self.case_file("path", world)),
            "import_path": self.import_path,
            "import_from": str(Path.cwd()),
            "callable_name": self.callable_name,
            "run": _run(world),
            "context": {
                "check_id": self.id,
                "case_dir": _text(world.case_dir),
                "workspace": _text(world.workspace),
                "folder": _text(world.folder),
            },
        }
        answer = call_hook(order, network=world.hooks.network, env=_environment(world), limit_s=self.timeout)
        said = answer["message"] or f"the hook `{self.callable_name}` says {'yes' if answer['passed'] else 'no'}."
        return Finding(answer["passed"], said, {"passed": answer["passed"], "metadata": answer["metadata"]})

    def expectation(self) -> Any:
        """Return the function."""
        return {"passes": f"{self.path or self.import_path}:{self.callable_name}"}


def _environment(world: World) -> dict[str, str]:
    """Return what a hook gets of the caller's variables: the keys of agents and judges are not its business."""
    return {
        name: value
        for name, value in world.env.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in world.hooks.env)
    }


def _run(world: World) -> dict[str, Any]:
    """Return what a hook gets about the run: its facts, and its world."""
    return {
        **(world.facts() if world.facts is not None else {"run_id": world.run_id}),
        "run_status": world.run_status,
        "agent_exit_code": world.agent_exit_code,
        "workspace": _text(world.workspace),
        "changes": None if world.changes is None else {kind: list(paths) for kind, paths in world.changes.items()},
        "stdout": _text(world.stdout),
        "stderr": _text(world.stderr),
    }


def _text(path: Any) -> str | None:
    return None if path is None else str(path)
