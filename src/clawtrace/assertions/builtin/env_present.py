"""`env_present`: environment variables are set."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.probe import Finding, Probe
from clawtrace.assertions.probing.files import Text
from clawtrace.assertions.world import World

__all__ = ["EnvPresent"]


class EnvPresent(Probe):
    """Every variable of `vars` is set and not empty.

    A run without its key fails after it was started, and looks like the agent's mistake. It is the environment of
    the clawtrace process; values are never shown.

    Example:
        - type: env_present
          vars: [RESEND_API_KEY, ATTIO_API_KEY]
    """

    main_field = "vars"
    precondition = True
    outside = True

    vars: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Names of variables."""

    def probe(self, world: World) -> Finding:
        """Look at each variable."""
        lacking = [name for name in self.vars if not world.env.get(name, "").strip()]
        if not lacking:
            return Finding(True, f"{', '.join(f'`{name}`' for name in self.vars)}: set.", {"missing": []})
        said = ", ".join(f"`{name}` {'is empty' if name in world.env else 'is not set'}" for name in lacking)
        return Finding(False, f"{said}.", {"missing": lacking})

    def expectation(self) -> Any:
        """Return the names."""
        return list(self.vars)
