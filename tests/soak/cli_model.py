"""What the model does in one run of a coding agent: it calls the agent's own tools at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cli_clients import MARKS, Client, task_of
from random_model import UNKNOWN_TOOLS, Mind

from clawtrace._scripted_model.script import ModelRequest, ScriptedStep, ScriptedToolCall, Usage

_COMMANDS = (
    ("echo hello", 0),
    ("exit 3", 3),
    ("cat missing.txt", 1),
    ("seq 1 3000", 0),
    ("ls && false", 1),
    ("echo out; echo err >&2", 0),
    ("printf ''", 0),
    ("sleep 0.2; echo 'Exit code 3'", 0),
    ("true | sh -c 'exit 7'", 7),
    ('cd . && echo "naïve $HOME" > made.txt', 0),
)


class CliMind(Mind):
    """Calls the tools of a client."""

    breaks_connections = False

    def __init__(self, chance: random.Random, client: Client, folder: Path, kill: Callable[[], None]) -> None:
        super().__init__(chance)
        # An agent mixes calls of one answer that share an id: what it then runs, no log of the model's says.
        self.ids = "again" if self.ids == "same" else self.ids
        self.client, self.folder, self.kill = client, folder, kill
        self.other_model = client.versions[1]
        self.model = self.model and client.versions[0]
        self.killed_at = chance.choice((None,) * 15 + (2, 4))
        """Number of the request during which the agent is killed."""
        self.asked = 0
        self.codes: dict[str, int | None] = {}
        """Exit codes of the commands that the model asked for, by their marks."""
        self.subtasks = 0

    def answer(self, asked: ModelRequest) -> ScriptedStep:
        """Return the next answer, or end the agent."""
        self.asked += 1
        if self.asked == self.killed_at:
            self.kill()
            return ScriptedStep(disconnect=True)
        return super().answer(asked)

    def _usage(self, asked: ModelRequest, text: str | None, more: int = 0) -> Usage | None:
        self.counts = self.counts or asked.api != "chat"  # the other protocols count in every answer
        return super()._usage(asked, text, more)

    def _where(self, asked: ModelRequest) -> Any:
        return task_of(asked.body) or (asked.system, asked.user)

    def _calls(self, asked: ModelRequest) -> Iterator[ScriptedToolCall]:
        chance = self.chance
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            if self.last is not None and chance.random() < 0.15 and self.last.name in asked.tools:
                yield self.last
                continue
            self.last = self._call(asked)
            yield self.last

    def _call(self, asked: ModelRequest) -> ScriptedToolCall:
        chance, client = self.chance, self.client
        kinds = ["shell"] * 5 + ["read"] * 2 + ["write"] * (2 if client.write else 0)
        task = task_of(asked.body)
        if client.helper and client.helper[0] in asked.tools and task and not task[0] and self.subtasks < 2:
            kinds += ["helper"]
        name, given = getattr(self, f"_{chance.choice(kinds)}")()
        if chance.random() < self.broken / 3:
            return ScriptedToolCall(name=chance.choice(UNKNOWN_TOOLS), arguments=given)
        if chance.random() < self.broken:
            return ScriptedToolCall(name=name, arguments=self._broken(given))
        return ScriptedToolCall(name=name, arguments=given)

    def _broken(self, given: dict[str, Any]) -> dict[str, Any] | str:
        chance = self.chance
        needed = next(iter(given))
        kind = chance.choice(("cut", "missing", "type"))
        if kind == "cut" and self.client.cuts_arguments:
            return json.dumps(given)[: -chance.randint(1, 5)]
        if kind == "type":
            return {**given, needed: 7}
        return {key: value for key, value in given.items() if key != needed}

    def _shell(self) -> tuple[str, dict[str, Any]]:
        shell, chance = self.client.shell, self.chance
        mark = f"mark-{len(self.codes) + 1:03d}"
        command, code = chance.choice(_COMMANDS)
        more: dict[str, Any] = dict(shell.more)
        self.codes[mark] = code
        if shell.limit and chance.random() < 0.1:
            command, self.codes[mark] = "sleep 30", None
            more |= shell.limit
        return shell.tool, {shell.key: f"echo {mark} >> {MARKS}; {command}", **more}

    def _path(self, name: str) -> str:
        return name if self.client.relative_paths else str(self.folder / name)

    def _read(self) -> tuple[str, dict[str, Any]]:
        tool, key = self.client.read
        return tool, {key: self._path(self.chance.choice(("missing.txt", "notes.txt")))}

    def _write(self) -> tuple[str, dict[str, Any]]:
        assert self.client.write
        tool, path, content = self.client.write
        name = f"new-{self.chance.randint(1000, 9999)}.txt"
        return tool, {
            path: self._path(name),
            content: self.chance.choice(("hello", "a\nb\n", "naïve {}", "x" * 800)),
        }

    def _helper(self) -> tuple[str, dict[str, Any]]:
        assert self.client.helper
        tool, more, prompt = self.client.helper
        self.subtasks += 1
        return tool, {prompt: f"SUBTASK {self.subtasks}: look.", **more}
