"""What the agent is given, read from a case and the files it names: messages, turns, attachments (spec: config.md §1)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clawtrace.config.cases.case import InputSection, MessageConfig
from clawtrace.config.cases.dataset import DatasetRow
from clawtrace.config.files.document import Document, KeyPath, read_document, unreadable
from clawtrace.config.files.problems import Place, in_document, template_problems, validated
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.base import Message

__all__ = ["Attachment", "Conversation", "ConversationReader"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text file that the agent is given as a user message."""

    name: str
    """The file's name, without its folder."""
    text: str
    sha256: str
    size: int
    """In bytes."""

    def message(self) -> Message:
        """Return the message that carries the file."""
        body = self.text if self.text.endswith("\n") or not self.text else self.text + "\n"
        begin, end = f"--- BEGIN ATTACHMENT {self.name} ---", f"--- END ATTACHMENT {self.name} ---"
        return Message("user", f"Attached context file: {self.name}\n{begin}\n{body}{end}")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a case says to its agent; templates are not filled in yet."""

    messages: tuple[Message, ...]
    """With the texts of their files."""
    turns: tuple[Message, ...]
    """User messages that follow each other in one session."""
    attachments: tuple[Attachment, ...]


@dataclass(slots=True)
class ConversationReader:
    """Reads what a case says to its agent, and notes every problem."""

    folder: Path
    """Of the case file."""
    document: Document
    env: Mapping[str, str]
    problems: list[ConfigProblem]
    row: DatasetRow | None
    """Of the case's dataset; the case file holds its values already, the files that it names do not."""

    def read(self, asked: InputSection) -> Conversation:
        """Return the messages, turns and attachments of a case's `input`."""
        messages = self._messages(asked.messages, ("input", "messages"))
        turns = self._messages(asked.turns, ("input", "turns"), turns=True)
        return Conversation(messages, turns, self._attachments(asked.attachments))

    def _messages(
        self, written: Sequence[MessageConfig], where: KeyPath, *, turns: bool = False
    ) -> tuple[Message, ...]:
        found: list[Message] = []
        for index, message in enumerate(written):
            place: KeyPath = (*where, index)
            if message.source is None:
                self.problems += template_problems(
                    {"content": message.content}, in_document(self.document, place), self.env
                )
                added = [Message(message.role, message.content or "", message.name)]
            else:
                added = self._from_file(message, (*place, "source", "path"))
            if turns and any(one.role != "user" for one in added):
                role = next(one.role for one in added if one.role != "user")
                self.problems.append(
                    self.document.problem(place, f"a turn is a user message, found a message of role {role!r}")
                )
            found += added
        return tuple(found)

    def _from_file(self, message: MessageConfig, where: KeyPath) -> list[Message]:
        """Return the messages of a `source`: its text, or the message or list of messages that YAML or JSON holds."""
        assert message.source is not None
        file = self.folder / message.source.path
        if not file.is_file():
            self.problems.append(self._missing(where, message.source.path))
            return []
        form = message.source.format or {".yaml": "yaml", ".yml": "yaml", ".json": "json"}.get(file.suffix, "text")
        if form == "text":
            content = self._content(file)
            if content is None:
                return []
            text = self._of_row(content.decode().replace("\r\n", "\n"), in_document(self.document, where))
            self.problems += template_problems(text, in_document(self.document, where), self.env)
            return [Message(message.role, text, message.name)]
        try:
            source = read_document(file, mapping=False)
        except ConfigError as error:
            self.problems += error.problems
            return []
        single = not isinstance(source.data, list)
        items = [source.data] if single else source.data
        read = [
            self._from_item(item, source, in_document(source, () if single else (index,)))
            for index, item in enumerate(items)
        ]
        return [one for one in read if one is not None]

    def _from_item(self, item: object, source: Document, place: Place) -> Message | None:
        if isinstance(item, dict) and isinstance(item.get("content"), str):
            item = item | {"content": self._of_row(item["content"], place)}
        inner = validated(MessageConfig, item, place, self.problems)
        self.problems += template_problems(item, place, self.env)
        if inner is None:
            return None
        if inner.content is None:
            self.problems.append(source.problem(place(())[1], "a message in a file has `content`, not `source`"))
            return None
        return Message(inner.role, inner.content, inner.name)

    def _of_row(self, text: str, place: Place) -> str:
        """Return a text of a file with the row's values."""
        if self.row is None:
            return text
        document, path = place(())
        return self.row.text(text, lambda message, hint: self.problems.append(document.problem(path, message, hint)))

    def _attachments(self, written: Sequence[str]) -> tuple[Attachment, ...]:
        found = []
        for index, name in enumerate(written):
            where: KeyPath = ("input", "attachments", index)
            file = self.folder / name
            if not file.is_file():
                self.problems.append(self._missing(where, name))
                continue
            content = self._content(file)
            if content is not None:
                digest = hashlib.sha256(content).hexdigest()
                found.append(Attachment(file.name, content.decode(), digest, len(content)))
        return tuple(found)

    def _missing(self, where: KeyPath, name: str) -> ConfigProblem:
        return self.document.problem(where, f"the file {name!r} does not exist next to the case file")

    def _content(self, file: Path) -> bytes | None:
        """Return a file's bytes, which are UTF-8 text; None after adding why they are not."""
        try:
            content = file.read_bytes()
            content.decode()
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(unreadable(file, error))
            return None
        return content
