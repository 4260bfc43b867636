"""``python -m tests.bench.soak --hours H``: break the lab at random, again and again, and see that it always recovers.

Each round does every kind of fault once, in an order of its own: the faults of `menagerie verify`, which are
checked while they last; those of `tests.bench.faults`, in random pairs, under clients that keep a history; and `menagerie up`
killed at a random moment, of a bring-up from nothing and of a repair, after which an `up` must converge. The same seed
asks for the same faults at the same moments.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from cluster.load import find_cluster, load_cluster
from cluster.project import ROOT
from operations.stack import access_to
from operations.verify.run import FAULTS
from sandbox.lab import hosts
from sandbox.lab.errors import LabError
from tests.bench import alone
from tests.bench import faults as table
from tests.bench.group import environment
from tests.bench.toolkit import MENAGERIE, host_names, killed_up

CLUSTER = "lab"
COMMAND_S = 900.0
# An `up` that repairs one host, and one from nothing, are over by then on a slow machine: a kill that
# comes too late is an `up` that was not killed, which must be well too.
REPAIR_S, NOTHING_S = 20.0, 90.0
REPAIR, NOTHING = "up killed while it repairs a host", "up killed while it builds from nothing"
PAIR = "two faults at once"


@dataclass(frozen=True)
class Fault:
    """One thing to do to the lab. proof: of `menagerie verify`. host: to cut the power of. after_s: when `up` dies.

    pair: two of `tests.bench.faults` at once. seed: of whom they strike.
    """

    name: str
    proof: str = ""
    host: str = ""
    after_s: float = 0.0
    pair: tuple[table.Fault, ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        if self.pair:
            return f"{self.name}: {' and '.join(map(str, self.pair))}, seed {self.seed}"
        host = f", {self.host} dead" if self.host else ""
        return f"{self.name}{host}{f', after {self.after_s:.1f} s' if self.after_s else ''}"


@dataclass(frozen=True)
class Outcome:
    """How a fault went. `error` is "" when the lab recovered as it should."""

    fault: Fault
    seconds: float
    error: str = ""

    def __str__(self) -> str:
        return f"{self.fault}: {self.error or f'well after {self.seconds:.0f} s'}"


def faults(seed: int, machines: tuple[str, ...]) -> Iterator[Fault]:
    """The faults without end: every kind once in a round, in random order."""
    choice = random.Random(seed)
    while True:
        kinds = [*(Fault(proof.claim, proof=proof.name) for proof in FAULTS)]
        kinds.append(Fault(REPAIR, host=choice.choice(machines), after_s=choice.uniform(0.5, REPAIR_S)))
        kinds.append(Fault(NOTHING, after_s=choice.uniform(0.5, NOTHING_S)))
        shuffled = choice.sample(table.PAIRABLE, len(table.PAIRABLE) // 2 * 2)
        for pair in zip(shuffled[::2], shuffled[1::2], strict=True):
            kinds.append(Fault(PAIR, pair=pair, seed=choice.randrange(10**6)))
        choice.shuffle(kinds)
        yield from kinds


def record(outcomes: list[Outcome]) -> str:
    """The track record: how often each kind was done, how often it went well, how long it took."""
    names = list(dict.fromkeys(outcome.fault.name for outcome in outcomes))
    lines = ["  done  well  seconds, least to most"]
    for name in names:
        own = [outcome for outcome in outcomes if outcome.fault.name == name]
        took = sorted(outcome.seconds for outcome in own)
        well = sum(not outcome.error for outcome in own)
        lines.append(f"{len(own):>6}{well:>6}  {took[0]:>6.1f} to {took[-1]:<6.1f}  {name}")
    return "\n".join(lines)


def main(
    hours: Annotated[float, typer.Option(min=0.0, help="How long; the fault that runs then is finished.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Repeat the faults of an earlier soak; else one is drawn.")] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after a failure; else the lab is left as it failed.")
    ] = False,
) -> None:
    """Break the lab at random and see that it always recovers. It is brought up first, and left up."""
    seed = random.randrange(10**6) if seed is None else seed
    machines = host_names(load_cluster(find_cluster(CLUSTER, ROOT)))
    alone.say(f"seed {seed}, {hours:g} hours")
    if error := converged():
        sys.exit(f"error: the lab can't be brought up to begin with: {error}")
    began, outcomes = time.monotonic(), list[Outcome]()
    try:
        for fault in faults(seed, machines):
            if time.monotonic() - began >= hours * 3600 or (outcomes and outcomes[-1].error and not keep_going):
                break
            outcomes.append(_attempt(fault))
            alone.say(f"{time.monotonic() - began:8.0f} s  {outcomes[-1]}")
    except KeyboardInterrupt:
        alone.say("interrupted: the fault that was under way does not count")
    failed = sum(bool(outcome.error) for outcome in outcomes)
    left = bool(failed) and not keep_going
    at_the_end = "left as it failed" if left else invariants()
    print(f"seed {seed}: {len(outcomes)} faults in {(time.monotonic() - began) / 3600:.2f} hours, {failed} went wrong")
    print(record(outcomes) if outcomes else "no time for any")
    print(f"at the end: {at_the_end or 'all is well, and a further up changes nothing'}")
    sys.exit(1 if failed or at_the_end or not outcomes else 0)


def _attempt(fault: Fault) -> Outcome:
    started = time.monotonic()
    if fault.proof:
        error = _proved(fault.proof)
    elif fault.pair:
        error = _under_load(fault)
    else:
        error = _killed_up(fault)
    return Outcome(fault, time.monotonic() - started, error)


def _proved(proof: str) -> str:
    code, out, said = _menagerie("verify", CLUSTER, "--only", proof, "--json")
    return unproved(proof, out) if code == 0 else f"exit code {code}: {(out + said)[-2000:]}"


def unproved(proof: str, document: str) -> str:
    """What of a run of `verify --json` that went well does not count: a fault that was skipped was none. "" where all does."""
    results = {each["name"]: each for each in json.loads(document)["proofs"]}
    if proof not in results:
        return f"verify did not try {proof}"
    wrong = [
        f"{name} {each['outcome']}: {each['seen']}" for name, each in results.items() if each["outcome"] != "proved"
    ]
    return "; ".join(wrong)


def _under_load(fault: Fault) -> str:
    cluster = load_cluster(find_cluster(CLUSTER, ROOT))
    try:
        outcome = table.attempt(fault.pair, cluster, access_to(cluster), random.Random(fault.seed))
    except (LabError, LookupError, TimeoutError) as error:
        return str(error)
    return "; ".join(outcome.wrong)


def _killed_up(fault: Fault) -> str:
    if fault.host:
        hosts.kill(fault.host)
    else:
        code, _, said = _menagerie("destroy", CLUSTER, "--yes")
        if code:
            return f"destroy ended with {code}: {said[-2000:]}"
    killed_up(CLUSTER, fault.after_s)
    return converged()


def converged() -> str:
    """Run `up`; what is wrong afterwards, "" when nothing is."""
    code, out, said = _menagerie("up", CLUSTER, "--json")
    if code:
        return f"up ended with {code}: {said[-2000:]}"
    return wrong(json.loads(out))


def wrong(built: Mapping[str, object]) -> str:
    """What the document of `up --json` says is not well, "" when all is."""
    status = built["status"]
    assert isinstance(status, dict)
    return "; ".join(f"{item['name']}: {item['detail']}" for item in status["items"] if not item["ok"])


def invariants() -> str:
    """What must hold at the end: the status is ok, and a further `up` changes nothing."""
    if error := converged():
        return error
    code, _, said = _menagerie("status", CLUSTER)
    if code:
        return f"status ended with {code}: {said[-2000:]}"
    code, out, said = _menagerie("up", CLUSTER, "--json")
    if code:
        return f"the last up ended with {code}: {said[-2000:]}"
    changed = json.loads(out)["changed"]
    return f"an up of a lab that is well changed {changed} things" if changed else ""


def _menagerie(*arguments: str) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            [MENAGERIE, *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_S,
            env=environment(os.environ),
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"it did not end within {COMMAND_S:.0f} s"
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    typer.run(main)
