"""`state_file`: a state file says what it should."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import ArtifactProbe
from clawtrace.assertions.probing.documents import fields_of, lookup, same
from clawtrace.assertions.probing.files import PathText, read_text
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World

__all__ = ["StateFile"]


class StateFile(ArtifactProbe):
    """The state file that the run left has the expected status and fields.

    Agents keep their place in such files, and the next session believes them. It is a YAML or JSON mapping (or Markdown with
    front matter); values are compared with their types: `true` is not 1, and "0" is not 0. A file that was there before the
    run and was not touched is the state of an earlier one, and fails unless `allow_stale` accepts it.

    Example:
        - type: state_file
          path: memory/state.yaml
          expected_status: ready
          expected_fields: {phase: complete, retries: 0}
    """

    run_files = ("path", "state_path")

    path: PathText | None = None  # type: ignore[assignment]  # `state_path` is another word for it
    """The file, relative to the run's workspace."""
    state_path: PathText | None = None
    """Another word for `path`; one of the two."""
    expected_status: Any = None
    """The required value of the key `status`."""
    expected_fields: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    """Keys with what they must be; dots lead into nested mappings."""

    @model_validator(mode="after")
    def _check(self) -> StateFile:
        if (self.path is None) == (self.state_path is None):
            found = "neither is given" if self.path is None else "both are given"
            raise refused(f"needs exactly one of `path` and `state_path`; {found}")
        return self

    @property
    def _path(self) -> str:
        return self.path or self.state_path or ""

    def look(self, file: Path, world: World) -> Finding:
        """Compare the keys."""
        del world
        state = fields_of(read_text(file))
        if state is None:
            return Finding(False, f"`{self._path}` holds no YAML or JSON mapping.")
        wanted = dict(self.expected_fields or {})
        if "expected_status" in self.model_fields_set:
            wanted["status"] = self.expected_status
        actual, wrong = {}, []
        for key, value in wanted.items():
            found = lookup(state, key)
            actual[key] = _json(found.value) if found else None
            if found is None:
                wrong.append(f"`{key}` is missing, expected {value!r}")
            elif not same(value, found.value):
                wrong.append(f"`{key}` is {found.value!r}, expected {value!r}")
        if wrong:
            return Finding(False, f"`{self._path}`: {'; '.join(wrong)}.", actual)
        return Finding(True, f"`{self._path}` is as expected.", actual)


def _json(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)
