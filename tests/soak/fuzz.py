"""Feeds what others write to everything that reads it, guided by the code that each input reaches.

    python tests/soak/fuzz.py [--seconds 60] [--out outputs/fuzz] [TARGET...]

Needs atheris (`make fuzz` installs it into `.venv/fuzz`). The seeds are the recordings, logs and configuration files of this
repository. Anything that a reader raises besides its own errors is a finding, and so is an input that takes ten seconds or two
gigabytes; it is kept in the folder `--out`, and `python tests/soak/fuzz.py TARGET --again FILE` repeats it. The exit code is 1 where there is one.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOST_BYTES = 20_000
"""Of a seed: the first ones of a larger file are taken."""

Reader = Callable[[bytes], None]


def files(*globs: str) -> Iterator[bytes]:
    """Yield the beginnings of files of this repository, and of JSON lines each of the first ones too."""
    for glob in globs:
        for file in sorted(ROOT.glob(glob))[:400]:
            if file.is_file():
                content = file.read_bytes()[:MOST_BYTES]
                yield content
                if file.suffix == ".jsonl":
                    yield from content.splitlines()[:2]


def decoder(*, as_json: bool) -> Reader:
    """Read requests of OTLP; what is accepted must be what the store takes."""
    from clawtrace.receiver.attribution.attribute import ClaimReader
    from clawtrace.receiver.decode.decode import RequestDecoder
    from clawtrace.receiver.redaction.redact import Redactor
    from clawtrace.receiver.request import BadPayloadError, Request
    from clawtrace.store.raw.journal import problem

    reader = RequestDecoder(Redactor(environ={}), ClaimReader())

    def read(data: bytes) -> None:
        for signal in ("traces", "logs", "metrics"):
            with suppress(BadPayloadError):
                decoded = reader.decode(Request(signal, "http", data, as_json, 1))
                if signal != "metrics":
                    batch = reader.columns(signal, decoded, ())
                    rows = len(batch.trace_id)
                    batch.run_no, batch.arrival_ns, batch.request_no = [1] * rows, [1] * rows, [1] * rows
                    batch.protocol, batch.run_rule = ["http"] * rows, ["none"] * rows
                    assert not problem(batch), problem(batch)

    return read


def recording() -> Reader:
    """Read recordings, and what other tools export."""
    from clawtrace.errors import ClawtraceError
    from clawtrace.receiver.recordings.recording import Grouping, load_recordings
    from clawtrace.store.duckdb import DuckStore

    store = DuckStore()

    def read(data: bytes) -> None:
        with suppress(ClawtraceError):
            load_recordings([Path("-")], Grouping(), store, stdin=io.BytesIO(data))

    return read


def of_file(name: str, load: Callable[[Path], object]) -> Reader:
    """Read a file with a reader that takes its path."""
    from clawtrace.errors import ClawtraceError

    path = Path(tempfile.mkdtemp()) / name

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(ClawtraceError):
            load(path)

    return read


def log() -> Reader:
    from clawtrace.logs.reading import read_log

    return of_file("agent.jsonl", read_log)


def cassette() -> Reader:
    from clawtrace.cassettes.file import load

    return of_file("tape.yaml", load)


def assertions() -> Reader:
    from clawtrace.config.loading.assertions_file import load_assertions_text
    from clawtrace.errors import ClawtraceError

    def read(data: bytes) -> None:
        with suppress(ClawtraceError):
            load_assertions_text(data.decode("utf-8", "replace"), "checks.yaml")

    return read


def shell() -> Reader:
    from clawtrace.facts.commands.shell_text import split

    return lambda data: void(split(data.decode("utf-8", "replace")))


def texts() -> Reader:
    """Read the payloads of messages in every form, and what Python's `repr` wrote."""
    from clawtrace.dialects.messages import FORMATS, parse_messages
    from clawtrace.dialects.python_repr import as_json

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        as_json(text)
        for form in FORMATS:
            for direction in ("input", "output"):
                parse_messages(form, text, direction)

    return read


def seeds_of_protobuf() -> Iterator[bytes]:
    """Yield the requests of recordings as protobuf."""
    from google.protobuf.json_format import Parse, ParseError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for content in files(PAYLOADS[0]):
        with suppress(ParseError, UnicodeDecodeError):
            request = Parse(content, ExportTraceServiceRequest(), ignore_unknown_fields=True)
            for group in request.resource_spans:
                for span in (span for scope in group.scope_spans for span in scope.spans):
                    span.trace_id, span.span_id = span.trace_id[:16], span.span_id[:8]  # base64 was hexadecimal
                    span.parent_span_id = span.parent_span_id[:8]
            yield request.SerializeToString()


def void(_: object) -> None:
    """Forget a value."""


def facts() -> Reader:
    """Compute every fact of a recording."""
    from clawtrace.errors import InputError
    from clawtrace.model.relations import RELATIONS
    from clawtrace.receiver.recordings.recording import Grouping
    from clawtrace.session.session import Session

    def read(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder, Session.open() as session:
            file = Path(folder) / "r.otlp.jsonl"
            file.write_bytes(data)
            with suppress(InputError):
                session.load_recordings([file], Grouping())
            for name in RELATIONS:
                session.query(f"SELECT * FROM {name}")

    return read


EXTREMES = (
    None,
    "",
    "\0",
    "\ud800",
    0,
    -1,
    2**63,
    -(2**63),
    1e308,
    "NaN",
    True,
    [],
    {},
    "[",
    '{"a": ',
    "x" * 5_000,
    [[[]]],
)


def exchanged(documents: list[Any], chance: random.Random) -> list[Any]:
    """Return requests of OTLP JSON in which values, keys, ids and times were exchanged with others of theirs, or with extremes."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(documents)
    for _ in range(chance.choice([1, 3, 10, 40])):
        (node, key), (other, name) = chance.choice(places), chance.choice(places)
        with suppress(LookupError):  # it was taken out
            match chance.randrange(4):
                case 0:
                    node[key] = chance.choice(EXTREMES)
                case 1 if isinstance(node, dict):
                    del node[key]
                case 2 if isinstance(node, list):
                    node.append(copy.deepcopy(node[key]))
                case _:
                    same = [(a, b) for a, b in places if b == key and isinstance(a, dict)]
                    source, of = chance.choice(same) if same and chance.random() < 0.8 else (other, name)
                    node[key] = copy.deepcopy(source[of])
    return documents


def exchange_facts(seconds: int, out: Path) -> None:
    """Compute the facts of exchanged recordings until the time is over."""
    read, chance, done = facts(), random.Random(), 0
    recordings = sorted(ROOT.glob(PAYLOADS[0]))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lines = chance.choice(recordings).read_text("utf-8").strip().split("\n")
        if len(lines) > 50:
            continue
        data = "\n".join(map(json.dumps, exchanged([json.loads(line) for line in lines], chance))).encode()
        try:
            read(data)
        except BaseException:
            (out / f"facts-{zlib.crc32(data):08x}").write_bytes(data)
            raise
        done += 1
    print(f"stat::number_of_executed_units: {done}", file=sys.stderr)


PAYLOADS = ("tests/recordings/*/*/*.otlp.jsonl", "tests/imports/data/**/*")
TARGETS: dict[str, tuple[Callable[[], Reader], tuple[str, ...]]] = {
    "protobuf": (partial(decoder, as_json=False), ()),
    "json": (partial(decoder, as_json=True), ("tests/recordings/*/*/*.otlp.jsonl",)),
    "recording": (recording, PAYLOADS),
    "log": (log, ("tests/logs/**/*.jsonl", "tests/logs/**/*.log", "tests/logs/**/*.txt")),
    "cassette": (cassette, ("tests/cassettes/**/*.yaml", "configs/cases/**/*.yaml", "docs/examples/**/*.yaml")),
    "assertions": (assertions, ("configs/**/*.yaml", "docs/examples/**/*.yaml", "tests/**/*.yaml")),
    "shell": (shell, ("tests/facts/**/*.sh", "ci/**/*", "tests/facts/**/*.yaml")),
    "texts": (texts, PAYLOADS),
    "facts": (facts, ()),
}


def child(target: str, seconds: int, out: Path, again: Path | None) -> None:
    """Feed one reader until the time is over."""
    if again is not None:
        TARGETS[target][0]()(again.read_bytes())
        return
    if target == "facts":
        exchange_facts(seconds, out)
        return
    import atheris

    with atheris.instrument_imports(include=["clawtrace"]):
        read = TARGETS[target][0]()
    corpus = Path(tempfile.mkdtemp(prefix="clawtrace-fuzz-"))
    for number, seed in enumerate(
        dict.fromkeys(seeds_of_protobuf() if target == "protobuf" else files(*TARGETS[target][1]))
    ):
        (corpus / str(number)).write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", f"-max_len={MOST_BYTES}"]
    atheris.Setup(
        [sys.argv[0], *limits, f"-artifact_prefix={out}/{target}-", "-print_final_stats=1", str(corpus)], read
    )
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("outputs/fuzz"))
    parser.add_argument("--again", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.child or given.again:
        child(given.targets[0], given.seconds, given.out, given.again)
        return 0
    found = 0
    for target in given.targets or TARGETS:
        command = [
            sys.executable,
            __file__,
            target,
            "--seconds",
            str(given.seconds),
            "--out",
            str(given.out),
            "--child",
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        runs = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        print(
            f"{target:12} {runs[0] if runs else '?':>9} inputs, {'a finding' if done.returncode else 'no finding'}",
            flush=True,
        )
        if done.returncode:
            found = 1
            print("\n".join(done.stderr.splitlines()[-40:]))
    return found


if __name__ == "__main__":
    sys.exit(main())
