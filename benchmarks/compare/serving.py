"""A peer's server while it is measured: start, CPU time and memory of its process tree, what it has stored, end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ingest import NUMBER, RUN
from kills import stored
from peers import Peer, command, environ

READY_SECONDS = 300.0
TICKS = os.sysconf("SC_CLK_TCK")
CLIENTS = 50
"""Most names of runs that a load uses."""


class NotRunError(Exception):
    """Why a peer could not be measured."""


def free_port() -> int:
    """Return a port that nothing uses now."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Served:
    """One process tree of a peer's server."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        assert peer.server is not None
        self.peer, self.folder, self.server = peer, folder, peer.server
        places = {"folder": folder, "http": free_port(), "other": free_port(), "third": free_port()}
        self.address = f"127.0.0.1:{places['http']}"
        for name, text in self.server.files.items():
            (folder / name).write_text(text.replace("{http}", str(places["http"])), encoding="utf-8")
        more = {name: value.format(**places) for name, value in self.server.environ.items()}
        began = time.perf_counter()
        with (folder / "log").open("w") as log:
            words = command(peer, self.server.command, **places)
            self.process = subprocess.Popen(
                words, cwd=folder, env=environ(folder, more), stdout=log, stderr=log, start_new_session=True
            )
        while not self._answers(self.server.ready.format(**places)):
            if self.process.poll() is not None or time.perf_counter() - began > READY_SECONDS:
                self.kill()
                said = (folder / "log").read_text(encoding="utf-8", errors="replace")
                raise NotRunError(f"its server did not start: {said[-500:].strip() or 'it said nothing'}")
            time.sleep(0.1)
        self.started = time.perf_counter() - began

    @staticmethod
    def _answers(address: str) -> bool:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def attributes(self) -> dict[str, str]:
        """Return attributes of each span: each request is one conversation, and whatever the peer drops spans without."""
        own = json.loads(self.rows(self.server.attributes)[0][0]) if self.server.attributes else {}
        return {"gen_ai.conversation.id": f"conversation-{NUMBER.hex()}", **own}

    def rows(self, sql: str) -> list[Any]:
        """Ask its SQLite file."""
        with closing(
            sqlite3.connect(f"file:{self.folder / self.server.database}?mode=ro", uri=True, timeout=60)
        ) as file:
            return file.execute(sql).fetchall()

    def count(self) -> int:
        """Return how many spans are in its database now; 0 where it has none."""
        if not self.server.database:
            return 0
        if self.server.database.endswith(".db"):
            return int(self.rows("SELECT count(*) FROM spans")[0][0])
        asked = json.dumps({"run_ids": [f"{RUN[:-2]}{place:02}" for place in range(CLIENTS)]}).encode()
        token = json.loads((self.folder / "ready.json").read_text(encoding="utf-8"))["token"]
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"http://{self.address}/clawtrace/v1/received", asked, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return sum(json.load(answer)["received"].values())

    def kept(self) -> dict[int, int]:
        """Return how many spans of each request its database has, after its end."""
        if not self.server.database.endswith(".db"):
            return stored(self.folder / self.server.database, facts=False)
        ids = (str(span_id) for (span_id,) in self.rows("SELECT span_id FROM spans"))
        return dict(Counter(int(span_id[:8], 16) for span_id in ids))

    def usage(self) -> tuple[float, float]:
        """Return the CPU seconds and the memory in MB (proportional set size) of all its processes."""
        cpu = memory = 0.0
        for process in self._tree():
            try:
                times = (process / "stat").read_text().rpartition(")")[2].split()[11:15]
                shares = (process / "smaps_rollup").read_text().splitlines()
            except OSError:  # it has just ended; its parent has its time
                continue
            cpu += sum(map(int, times)) / TICKS
            memory += next(int(line.split()[1]) for line in shares if line.startswith("Pss:")) / 1e3
        return cpu, memory

    def _tree(self) -> Iterator[Path]:
        # The session is the server's own: all its processes are in it.
        for process in Path("/proc").glob("[0-9]*"):
            try:
                session = int((process / "stat").read_text().rpartition(")")[2].split()[3])
            except OSError:
                continue
            if session == self.process.pid:
                yield process

    def kill(self) -> None:
        """End all its processes at once."""
        for process in [*self._tree()]:
            try:
                os.kill(int(process.name), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
