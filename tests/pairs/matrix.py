"""Two and three instrumentations of one call at once: every fact is true or unknown, none is wrong, none is counted twice.

    python tests/pairs/matrix.py [--runs N] [--seed S] [--only RUN] [FRAMEWORK]…

The agent programs, the model and the truth are those of `tests/soak`; here the model calls no tool that does not exist, and none
with arguments that do not fit: what a framework makes of these is the matter of the soak.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "soak"))

from environments import CannotInstallError, Framework, frameworks, program_of  # noqa: E402
from random_model import RandomModel  # noqa: E402

from clawtrace._scripted_model.script import Play  # noqa: E402
from clawtrace.session.session import Session  # noqa: E402
from soak import Batch, Tally, exit_code, judge, play, table  # noqa: E402

OPENAI = ("openinference-openai", "openllmetry-openai", "genai-openai")
"""Instrumentations of the SDK of the model, below a framework."""

OF_OPENAI = (
    "openinference-instrumentation-openai==0.1.66",
    "opentelemetry-instrumentation-openai==0.62.4",
    "opentelemetry-instrumentation-genai-openai==1.3b0",
)

ALONE: dict[str, tuple[str, ...]] = {
    "agent-framework": ("native",),
    "google-adk": ("native",),
    "langgraph": ("openinference", "openllmetry", "genai", "langsmith"),
    "openai-agents": ("openinference", "openllmetry"),
    "pydantic-ai": ("native",),
    "smolagents": ("openinference",),
    "strands": ("native",),
}
"""Instrumentations of a framework, each of which is paired with each of `OPENAI`."""

MORE: dict[str, tuple[str, ...]] = {
    "anthropic-sdk": ("openinference,genai", "openllmetry,genai", "openinference,openllmetry,genai"),
    "langgraph": ("openinference,langsmith,openllmetry-openai", "openinference,openllmetry,genai-openai"),
    "openai-agents": (
        "genai,openinference-openai", "genai,openllmetry-openai", "openinference,openllmetry,genai-openai",
    ),
    "openai-sdk": ("openllmetry,genai", "openinference,openllmetry,genai"),
    "pydantic-ai": ("native,openinference,openllmetry-openai",),
    "smolagents": ("genai,openllmetry-openai",),
}  # fmt: skip
"""Further pairs, and sets of three."""


def pairings(names: Iterable[str]) -> Iterator[Framework]:
    """Yield the frameworks of `tests/soak`, each with its pairings as instrumentations."""
    known = frameworks()
    for name in names:
        below = OPENAI if name in ALONE else ()
        pairs = [f"{above},{sdk}" for above in ALONE.get(name, ()) for sdk in below] + list(MORE.get(name, ()))
        needs = tuple(dict.fromkeys((*known[name].dependencies, *(OF_OPENAI if below else ()))))
        sets = tuple(f"{name},{pair}" for pair in pairs)
        yield replace(known[name], name="pairs", script=HERE / "pairing.py", dependencies=needs, instrumentations=sets)


NAMES = sorted({*ALONE, *MORE})


class _SoundMinds(dict[str, Any]):
    """What the model does in each run: no call that is broken."""

    def setdefault(self, run: str, mind: Any = None) -> Any:
        mind.broken = 0
        return super().setdefault(run, mind)


class SoundModel(RandomModel):
    """A model at random whose calls are such as tools can answer."""

    def play(self) -> Play:
        """Return what chooses the answers."""
        play: Any = super().play()
        play.minds = _SoundMinds()
        return play


def matrix(
    names: Iterable[str], seed: str, runs: int, out: Path | None = None, only: str | None = None
) -> dict[str, Tally]:
    """Make the runs of frameworks in all their pairings, or `only` one; return what was found by pairing."""
    batches = []
    for framework in pairings(names):
        try:
            program = program_of(framework)
        except CannotInstallError as error:
            print(f"not run: {error}", file=sys.stderr)
            continue
        batches += [(Batch(framework, pairing, seed, range(runs)), program) for pairing in framework.instrumentations]
    if only is not None:
        client, _, number = only.rpartition(".")
        batches = [(replace(one, numbers=[int(number)]), program) for one, program in batches if one.client == client]
    if not batches:
        return {}
    with (
        tempfile.TemporaryDirectory() as name,
        Session.open(receive=True) as session,
        ThreadPoolExecutor(2) as together,
    ):
        model = SoundModel(seed)
        model.start()

        def one(batch: Batch, program: tuple[str, ...]) -> tuple[str, Tally]:
            return batch.client, judge(
                batch, play(batch, program, session, model, Path(name)), session, out, keep=only is not None
            )

        try:
            return dict(future.result() for future in [together.submit(one, *given) for given in batches])
        finally:
            together.shutdown(cancel_futures=True)  # without the model the runs that are left would all fail
            model.stop()


def main() -> int:
    """Run what the command line says; return what `exit_code` says of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="FRAMEWORK")
    parser.add_argument("--runs", type=int, default=20, help="runs of each pairing")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", help="make this one run again, and record it in any case")
    parser.add_argument("--out", type=Path, help="folder for recordings of what is wrong")
    options = parser.parse_args()
    tallies = matrix(options.names or NAMES, options.seed, options.runs, options.out, options.only)
    for tally in tallies.values():
        print(*tally.wrong, sep="\n", end="\n" if tally.wrong else "")
    print(*table(tallies), sep="\n")
    return exit_code(tallies)


if __name__ == "__main__":
    sys.exit(main())
