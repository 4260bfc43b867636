"""``python -m tests.bench.soak --hours H``: break the lab at random, again and again, and check that it always recovers.

Each round injects every kind of fault once, in random order: the faults of `menagerie verify`, which are checked while they
last; those of `tests.bench.faults`, in random pairs, under clients that record a history; and `menagerie up` killed at a
random moment, during a bring-up from scratch and during a repair, after which an `up` must converge. The same seed gives the
same faults at the same moments.
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
# On a slow machine, an `up` that repairs one host and one from scratch are done by then. If a kill comes too late, `up` was
# not killed, and the lab must be healthy too.
REPAIR_S, NOTHING_S = 20.0, 90.0
REPAIR, NOTHING = "up killed while it repairs a host", "up killed while it builds from scratch"
PAIR = "two faults at once"


@dataclass(frozen=True)
class Fault:
    """One fault to inject. proof: of `menagerie verify`. host: whose power is cut. after_s: when `up` is killed.

    pair: two of `tests.bench.faults` at once. seed: determines their targets.
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
    """Result of a fault. `error` is "" if the lab recovered."""

    fault: Fault
    seconds: float
    error: str = ""

    def __str__(self) -> str:
        return f"{self.fault}: {self.error or f'healthy after {self.seconds:.0f} s'}"


def faults(seed: int, machines: tuple[str, ...]) -> Iterator[Fault]:
    """Yield faults without end: every kind once per round, in random order."""
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
    """Return the track record: how often each kind was injected, how often the lab recovered, and how long it took."""
    names = list(dict.fromkeys(outcome.fault.name for outcome in outcomes))
    lines = ["  done    ok  seconds, least to most"]
    for name in names:
        of_kind = [outcome for outcome in outcomes if outcome.fault.name == name]
        seconds = sorted(outcome.seconds for outcome in of_kind)
        recovered = sum(not outcome.error for outcome in of_kind)
        lines.append(f"{len(of_kind):>6}{recovered:>6}  {seconds[0]:>6.1f} to {seconds[-1]:<6.1f}  {name}")
    return "\n".join(lines)


def main(
    hours: Annotated[float, typer.Option(min=0.0, help="Duration; the fault that runs at its end is finished.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Repeat the faults of an earlier soak; random if omitted.")] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a failure; otherwise the lab is left as it failed.")
    ] = False,
) -> None:
    """Break the lab at random and check that it always recovers. It is brought up first, and left up."""
    seed = random.randrange(10**6) if seed is None else seed
    machines = host_names(load_cluster(find_cluster(CLUSTER, ROOT)))
    alone.say(f"seed {seed}, {hours:g} hours")
    if error := converged():
        sys.exit(f"error: the lab can't be brought up at the start: {error}")
    began, outcomes = time.monotonic(), list[Outcome]()
    try:
        for fault in faults(seed, machines):
            if time.monotonic() - began >= hours * 3600 or (outcomes and outcomes[-1].error and not keep_going):
                break
            outcomes.append(_attempt(fault))
            alone.say(f"{time.monotonic() - began:8.0f} s  {outcomes[-1]}")
    except KeyboardInterrupt:
        alone.say("interrupted: the running fault does not count")
    failed = sum(bool(outcome.error) for outcome in outcomes)
    left = bool(failed) and not keep_going
    at_the_end = "left as it failed" if left else invariants()
    print(f"seed {seed}: {len(outcomes)} faults in {(time.monotonic() - began) / 3600:.2f} hours, {failed} failed")
    print(record(outcomes) if outcomes else "no time for any fault")
    print(f"at the end: {at_the_end or 'all is healthy, and another up changes nothing'}")
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
    code, out, errors = _menagerie("verify", CLUSTER, "--only", proof, "--json")
    return unproved(proof, out) if code == 0 else f"exit code {code}: {(out + errors)[-2000:]}"


def unproved(proof: str, document: str) -> str:
    """Return why a successful `verify --json` proves nothing: a skipped fault is no fault. "" if it counts."""
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
        code, _, errors = _menagerie("destroy", CLUSTER, "--yes")
        if code:
            return f"destroy exited with {code}: {errors[-2000:]}"
    killed_up(CLUSTER, fault.after_s)
    return converged()


def converged() -> str:
    """Run `up`. Return what is wrong afterwards, "" if nothing is."""
    code, out, errors = _menagerie("up", CLUSTER, "--json")
    if code:
        return f"up exited with {code}: {errors[-2000:]}"
    return wrong(json.loads(out))


def wrong(built: Mapping[str, object]) -> str:
    """Return what is unhealthy according to the document of `up --json`, "" if nothing is."""
    status = built["status"]
    assert isinstance(status, dict)
    return "; ".join(f"{item['name']}: {item['detail']}" for item in status["items"] if not item["ok"])


def invariants() -> str:
    """Check what must hold at the end: the status is ok, and another `up` changes nothing. Return what is wrong, or ""."""
    if error := converged():
        return error
    code, _, errors = _menagerie("status", CLUSTER)
    if code:
        return f"status exited with {code}: {errors[-2000:]}"
    code, out, errors = _menagerie("up", CLUSTER, "--json")
    if code:
        return f"the last up exited with {code}: {errors[-2000:]}"
    changed = json.loads(out)["changed"]
    return f"an up of a healthy lab changed {changed} things" if changed else ""


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
        return 124, "", f"it did not finish within {COMMAND_S:.0f} s"
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    typer.run(main)
