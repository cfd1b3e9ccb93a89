"""The instructions of the process that keeps a gateway, as JSON in the run's folder: everything but keys."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "ANSWER_FILE",
    "CONFIG_REFUSED",
    "NOT_READY",
    "TURNS_FILE",
    "Container",
    "GatewayOrder",
    "read_gateway_order",
    "remove",
    "write_gateway_order",
]

ANSWER_FILE = "answer.txt"
"""In the home: the answer to the last turn."""

TURNS_FILE = "turns.json"
"""In the home: when each turn was started, in nanoseconds since the epoch."""

CONFIG_REFUSED = 78
"""Exit code where the program refuses its configuration: EX_CONFIG of sysexits.h."""
_REMOVE_SECONDS = 60
NOT_READY = 69
"""Exit code where the gateway did not come up: EX_UNAVAILABLE."""


@dataclass(frozen=True, slots=True)
class Container:
    """The container that a gateway runs in."""

    program: str
    """What runs containers, such as `docker`."""
    image: str
    name: str
    """Unique; by it the container is removed."""
    variables: tuple[str, ...] = ()
    """Names or globs of the variables that it gets from the process that starts it."""


@dataclass(frozen=True, slots=True)
class GatewayOrder:
    """One gateway and its turns."""

    cli: list[str]
    """Words that start the command line interface; in the image where there is one."""
    configuration: dict[str, Any]
    """`openclaw.json` without the port."""
    home: str
    """Absolute folder for everything that the gateway writes; it is there for this run alone."""
    workspace: str
    """Absolute."""
    agent: str
    """Id of the agent that is spoken to."""
    session: str
    """Id of the session that all turns are of."""
    turns: list[str]
    """Texts of the turns."""
    timeout_seconds: float
    """Time for one turn; the run's limit is kept by the process above."""
    plugin_stage: str
    """Absolute folder where what plugins need is installed once."""
    container: Container | None = None


def remove(container: Container, env: Mapping[str, str]) -> None:
    """Remove a container, whatever became of the process that started it; one that is gone is none."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [container.program, "rm", "--force", container.name],
            env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_REMOVE_SECONDS, check=False,
        )  # fmt: skip


def write_gateway_order(order: GatewayOrder, path: Path) -> None:
    """Write an order."""
    path.write_text(json.dumps(asdict(order), ensure_ascii=False), encoding="utf-8")


def read_gateway_order(path: Path) -> GatewayOrder:
    """Read an order."""
    data = json.loads(path.read_text(encoding="utf-8"))
    container = data["container"]
    return GatewayOrder(
        **data
        | {
            "container": None
            if container is None
            else Container(**container | {"variables": tuple(container["variables"])})
        }
    )
