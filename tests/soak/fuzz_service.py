"""Sends `clawtrace serve` what its OpenAPI allows, what it does not, and garbage over gRPC.

    python tests/soak/fuzz_service.py [--seconds 120] [--seed 1] [--out outputs/fuzz-service]

Over HTTP it is schemathesis, in an environment with its pinned packages of PyPI, for half of the time; then random and changed messages
go to each method of gRPC, of control and of OTLP. A finding is an answer that blames the service (5xx but for 503; INTERNAL or UNKNOWN over gRPC)
or contradicts the published schema, a traceback, a service that is not healthy afterwards, and one that does not stop. The exit code is
1 where there is one.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from clawtrace._pb import pool

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sidecar")]

from environments import environment  # noqa: E402
from running import Running  # noqa: E402

PACKAGES = ("schemathesis==4.32.5",)
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "missing_required_header", "ignored_auth", "allow_header_conformance",
)  # fmt: skip
"""`positive_data_acceptance` is left out: SQL and assertions are text whose rules no schema says."""
ENDLESS = "/clawtrace/v1/events"
BLAMED = ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "UNAVAILABLE")


def over_http(running: Running, seconds: int, seed: int, folder: Path) -> bool:
    """Whether schemathesis finds nothing; what it found is in its log."""
    program = environment("schemathesis", PACKAGES) / "venv" / "bin" / "schemathesis"
    command = [
        str(program), "run", f"{running.http}/clawtrace/v1/openapi.json", "--header", f"Authorization: Bearer {running.said['token']}",
        "--checks", ",".join(CHECKS), "--exclude-path", ENDLESS, "--max-time", str(seconds), "--seed", str(seed),
        "--request-timeout", "30", "--continue-on-failure", "--no-color",
    ]  # fmt: skip
    with (folder / "schemathesis.log").open("w") as log:
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False)
    print((folder / "schemathesis.log").read_text().rpartition("= SUMMARY =")[2].lstrip("=\n"), flush=True)
    return done.returncode == 0


def methods() -> dict[str, tuple[type[Message], bool]]:
    """Each method of gRPC with its request and whether several answers come."""
    found: dict[str, tuple[type[Message], bool]] = {}
    for service in ("clawtrace.v1.ControlService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"):
        for method in pool().FindServiceByName(service).methods:
            if method.name != "Watch":  # never ends
                found[f"/{service}/{method.name}"] = GetMessageClass(method.input_type), method.server_streaming
    for kind, module in (("Trace", trace_service_pb2), ("Logs", logs_service_pb2), ("Metrics", metrics_service_pb2)):
        path = f"/opentelemetry.proto.collector.{kind.lower()}.v1.{kind}Service/Export"
        found[path] = getattr(module, f"Export{kind}ServiceRequest"), False
    return found


def filled(kind: type[Message], chance: random.Random, depth: int = 0) -> Message:
    """A message of which each field is set to anything of its type, or left out."""
    made = kind()
    for field in kind.DESCRIPTOR.fields:
        if chance.random() < 0.4 or depth > 4:
            continue
        values = [value(field, chance, depth) for _ in range(chance.randrange(3) if field.is_repeated else 1)]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.is_repeated:
            getattr(made, field.name).extend(values)
        elif field.message_type is not None:
            for one in values:
                getattr(made, field.name).CopyFrom(one)
        else:
            setattr(made, field.name, values[0])
    return made


def value(field: FieldDescriptor, chance: random.Random, depth: int) -> object:
    """Anything that a field can hold: mostly what is at an edge."""
    if field.message_type is not None:
        return filled(GetMessageClass(field.message_type), chance, depth + 1)
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return chance.randbytes(chance.choice((0, 3, 8, 16)))
        case FieldDescriptor.CPPTYPE_STRING:
            return chance.choice(
                (
                    "",
                    "r1",
                    "*",
                    "../../x",
                    "SELECT 1",
                    "SELECT * FROM spans",
                    "\0",
                    "é" * 3000,
                    "{",
                    "assert: [",
                    "assert:\n- ran: x",
                )
            )
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return chance.choice((0.0, -1.0, float("nan"), float("inf"), 1e308))
        case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_INT64:
            return chance.choice((0, 1, -1, 2**31 - 1, -(2**31)))
        case _:
            return chance.choice((0, 1, 2**32 - 1))


def over_grpc(running: Running, seconds: int, seed: int) -> Counter[str]:
    """Send random and changed messages to each method until the time is over; return how often each status came."""
    chance, statuses = random.Random(seed), Counter[str]()
    metadata = [("authorization", f"Bearer {running.said['token']}")]
    end = time.monotonic() + seconds
    with grpc.insecure_channel(urlsplit(running.said["grpc"]).netloc) as channel:
        while time.monotonic() < end:
            for path, (kind, several) in methods().items():
                sent = filled(kind, chance).SerializeToString()
                if chance.random() < 0.5:
                    place = chance.randrange(len(sent) + 1)
                    sent = chance.choice(
                        (chance.randbytes(place), sent[:place], sent[:place] + chance.randbytes(9) + sent[place:])
                    )
                fields = chance.choice(
                    (metadata, metadata, [], [("authorization", "Bearer x"), ("x-bin", chance.randbytes(50))])
                )
                reflection = "Reflection" in path
                call = (
                    channel.stream_stream if reflection else channel.unary_stream if several else channel.unary_unary
                )(path)
                try:
                    answer = call(iter([sent]) if reflection else sent, metadata=fields, timeout=10)
                    status = "OK" if not several else f"OK, {min(len(list(answer)), 1)} or more"
                except grpc.RpcError as error:
                    status = error.code().name
                    if status == "DEADLINE_EXCEEDED" and path.endswith("WaitComplete"):
                        status = "OK"  # it waits for the end of a run
                    if status in BLAMED:
                        print(f"{path} {sent!r}: {status} {error.details()}", flush=True)
                statuses[status] += 1
    return statuses


def main() -> int:
    """Try one service over both protocols; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("outputs/fuzz-service"))
    words = parser.parse_args()
    folder = words.out.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    running = Running(folder, "--store", "spans.duckdb")
    clean = over_http(running, words.seconds // 2, words.seed, folder)
    statuses = over_grpc(running, words.seconds // 2, words.seed)
    print("gRPC:", ", ".join(f"{count} {status}" for status, count in statuses.most_common()))
    healthy = running.client.list_runs() is not None
    code, said = running.end()
    print(f"stopped with {code}" + (f"\n{said}" if "Traceback" in said or code else ""))
    blamed = sum(statuses[status] for status in BLAMED)
    return int(not clean or blamed > 0 or not healthy or code != 0 or "Traceback" in said)


if __name__ == "__main__":
    sys.exit(main())
