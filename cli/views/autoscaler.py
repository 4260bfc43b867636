"""The output of `autoscaler`."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.text import Text

from cli import exits
from cli.output import Details, console, errors, print_json, write_out
from cluster.spec import Cluster
from controllers.autoscaler.decision import Pass
from controllers.autoscaler.run import Done, Round
from controllers.autoscaler.simulate.cloud import START_S
from controllers.autoscaler.simulate.run import SimulationOutcome, Watch
from controllers.autoscaler.waits import by_reason, some
from controllers.autoscaler.words import lasting
from controllers.autoscaler.world import World
from controllers.planner import Fate, Verdict

log = logging.getLogger(__name__)
_SHOWN = 20
_COLOURS = {Fate.ROOM: "green", Fate.NEW: "green", Fate.WAITING: "yellow", Fate.NEVER: "red"}


class View:
    """Log the passes of a run: an event for each action, and one for the state when it changes. --json prints documents."""

    def __init__(self, cluster: Cluster, *, as_json: bool) -> None:
        self._name, self._as_json = cluster.name, as_json
        self._last = ""
        self._noticed: set[str] = set()

    def show(self, result: Round, events: tuple[int, int]) -> None:
        if self._as_json:
            write_out(json.dumps(document(self._name, result), sort_keys=True, default=str) + "\n")
            return
        for text in result.decided.notices:
            if text not in self._noticed:
                log.warning("%s", text)
        self._noticed |= set(result.decided.notices)
        if result.decided.refused:
            log.error("no decision: %s", result.decided.refused)
        acted = {action.decision for action in result.done}
        for decision in result.decided.decisions:
            if decision not in acted:
                log.info("would %s", decision)
        for action in result.done:
            log.log(logging.ERROR if action.failed else logging.INFO, "%s", _done(action))
        if events[1]:
            log.info("%d pods get their Event in a later pass: a pass writes at most %d", events[1], events[0])
        if (state := _state(result)) != self._last:
            self._last = state
            log.info("%s: %s", self._name, state)


def _done(action: Done) -> str:
    return f"{'failed: ' if action.failed else ''}{action.decision}" + (f"; {action.text}" if action.text else "")


def _state(result: Round) -> str:
    fates = Counter(verdict.fate for verdict in result.decided.verdicts.values())
    waits = ", ".join(f"{fates[fate]} {_word(fate)}" for fate in Fate if fates[fate])
    pools = ", ".join(
        f"{pool} {sum(machine.state == 'running' for machine in group.machines)}/{group.size}"
        for pool, group in sorted(result.world.groups.items())
    )
    idle = f"; {len(result.decided.memory.idle)} hosts idle" if result.decided.memory.idle else ""
    return (
        f"{len(result.world.waiting)} pods pending"
        + (f" ({waits})" if waits else "")
        + f"; machines: {pools or 'none'}{idle}"
    )


def _word(fate: Fate) -> str:
    return {
        Fate.ROOM: "fit on existing or ordered hosts",
        Fate.NEW: "get a new host",
        Fate.WAITING: "keep waiting",
        Fate.NEVER: "can never start",
    }[fate]


def document(name: str, result: Round) -> dict[str, Any]:
    """Return a pass as a JSON document."""
    actions = {id(action.decision): action for action in result.done}
    return {
        "cluster": name,
        "at": result.world.now_s,
        "refused": result.decided.refused,
        "notices": list(result.decided.notices),
        "pods": {
            pod: {"fate": str(verdict.fate), "reason": verdict.reason, "host": verdict.host}
            for pod, verdict in result.decided.verdicts.items()
        },
        "decisions": [
            {
                **decision.to_json(),
                "done": id(decision) in actions and not actions[id(decision)].failed,
                "failed": actions[id(decision)].text
                if id(decision) in actions and actions[id(decision)].failed
                else None,
            }
            for decision in result.decided.decisions
        ],
        "kept": dict(result.decided.kept),
        "dollars_per_hour": result.decided.plan.bill / 1e6 if result.decided.plan else 0.0,
        "took_s": dict(zip(("look", "decide", "act"), result.took_s, strict=True)),
    }


def planned(cluster: Cluster, result: Round, *, as_json: bool) -> int:
    """Print a whole pass and return the exit code."""
    code = exits.FAILED if result.decided.refused else exits.DONE
    if as_json:
        print_json(document(cluster.name, result))
        return code
    for text in result.decided.notices:
        errors.print(Text(text, style="yellow"))
    if result.decided.refused:
        errors.print(Text(f"no decision: {result.decided.refused}", style="red"))
    reasons = by_reason(result.decided.verdicts)
    for (fate, reason), pods in list(reasons.items())[:_SHOWN]:
        console.print(Text(f"{some(pods)}: {reason}", style=_COLOURS[fate]))
    if len(reasons) > _SHOWN:
        console.print(f"and {len(reasons) - _SHOWN} more reasons; --json lists all", style="dim")
    for node, why in sorted(result.decided.kept.items()):
        console.print(Text(f"{node} stays: {why}", style="dim"))
    for decision in result.decided.decisions:
        console.print(Text(str(decision), style="cyan"))
    cost = (
        f", {result.decided.plan.bill / 1e6:.2f} $/h more" if result.decided.plan and result.decided.plan.hosts else ""
    )
    console.print(f"{cluster.name}: {_state(result)}; {len(result.decided.decisions)} decisions{cost}", markup=False)
    return code


def explained(cluster: Cluster, result: Round, what: str, *, as_json: bool) -> int:
    """Print why a pod waits or a host stays, and return the exit code."""
    name = what if "/" in what or what in result.world.by_node else f"default/{what}"
    facts = _of_pod(result, name) or _of_node(result, what)
    if facts is None:
        text = f"{what} is neither a pending or running pod nor a node of {cluster.name}; name a pod as NAMESPACE/NAME"
        if as_json:
            print_json({"error": {"code": "unknown-pod", "text": text, "exit_code": exits.BAD_INPUT}})
        else:
            errors.print(Text(text, style="red"))
        return exits.BAD_INPUT
    if as_json:
        print_json({"cluster": cluster.name, "what": name, **facts})
        return exits.DONE
    for key, value in facts.items():
        for text in value if isinstance(value, list) else [value]:
            if text:
                console.print(f"{key}: {text}", markup=False)
    return exits.DONE


def _of_pod(result: Round, name: str) -> dict[str, Any] | None:
    pod = next((pod for pod in result.world.waiting if pod.name == name), None)
    if pod is None:
        return _running(result.world, name)
    verdict = result.decided.verdicts.get(name, Verdict(Fate.WAITING, "is not in the plan"))
    order = next((order for order in result.decided.memory.orders if name in order.pods), None)
    ordered = f"{lasting(result.world.now_s - order.at_s)} ago in pool {order.pool}" if order else ""
    decisions = [str(decision) for decision in result.decided.decisions if decision.act == "grow"]
    return {
        "pod": name,
        "fate": str(verdict.fate),
        "reason": verdict.reason,
        "waits for": lasting(result.world.now_s - pod.since_s),
        "gang": f"{pod.gang.name}, {pod.gang.size} pods" if pod.gang else "",
        "machine ordered": ordered,
        "wrong": list(pod.complaints),
        "the scheduler says": pod.scheduler_message,
        "would": decisions if verdict.fate is Fate.NEW else [],
    }


def _running(world: World, name: str) -> dict[str, Any] | None:
    for node in world.nodes:
        for pod in node.residents:
            if pod.name == name:
                keeps = f"{node.name} stays because the pod {pod.keeps}" if pod.keeps else ""
                return {"pod": name, "fate": "runs", "reason": f"is on {node.name} of pool {node.pool}", "keeps": keeps}
    return None


def _of_node(result: Round, name: str) -> dict[str, Any] | None:
    node = result.world.by_node.get(name)
    if node is None:
        return None
    steps = [str(decision) for decision in result.decided.decisions if decision.node == name]
    grows = node.pool in result.world.supplies and result.world.supplies[node.pool].grows
    why = result.decided.kept.get(
        name, "" if steps else "no decision about it" if grows else "its pool has a fixed size"
    )
    return {"node": name, "pool": node.pool, "stays": why, "would": steps, "pods": [pod.name for pod in node.pods]}


@contextmanager
def progress(pods: int, *, quiet: bool) -> Iterator[Callable[[str], Watch]]:
    """Report every few seconds how far a simulation is."""
    details = Details("simulated: ")

    def watch(what: str) -> Watch:
        def report(world: World, _: Pass) -> None:
            hours = (world.now_s - START_S) / 3600
            details.tell(
                f"{what}: {hours:,.1f} h, {len(world.nodes)} hosts, {len(world.waiting)} of {pods} pods pending"
            )

        return report

    if quiet:
        yield watch
        return
    with details.lines():
        yield watch


def _unstarted(pods: Mapping[str, str], singular: str, plural: str) -> None:
    """Print pods by the reason that they share."""
    by_reason: dict[str, list[str]] = {}
    for pod, why in pods.items():
        by_reason.setdefault(why, []).append(pod)
    for why, names in list(by_reason.items())[:_SHOWN]:
        who = f"{names[0]} {singular}" if len(names) == 1 else f"{len(names)} pods {plural} ({names[0]} and others)"
        errors.print(Text(f"{who}: {why}", style="yellow"))
    if len(by_reason) > _SHOWN:
        errors.print(Text(f"and {len(by_reason) - _SHOWN} more reasons", style="yellow"))


def simulated(
    cluster: Cluster, outcome: SimulationOutcome, unscaled: SimulationOutcome, notes: Sequence[str], *, as_json: bool
) -> None:
    """Print what a trace cost, and would have cost without scale-in. notes: about the prices in these sums."""
    if as_json:
        both = {"with": outcome.to_json(), "without_scale_in": unscaled.to_json()}
        print_json({"cluster": cluster.name, **both, "notes": list(notes)})
        return
    _unstarted(outcome.never, "never starts", "never start")
    _unstarted(outcome.waiting, "still waits", "still wait")
    console.print(
        f"{outcome.pods} pods in {outcome.hours:.1f} h: {outcome.ended} ended, {outcome.unstarted} never started"
    )
    waits = f"median {lasting(outcome.wait_median_s)}, 95 % {lasting(outcome.wait_95_s)}, longest {lasting(outcome.wait_longest_s)}"
    console.print(f"waiting: {waits}; {outcome.interrupted} lost their host")
    console.print(
        f"machines: {outcome.ordered} ordered, {outcome.removed} returned, {outcome.peak_hosts} at most; "
        f"{outcome.host_hours:.1f} machine hours for {outcome.cost:.2f} $"
    )
    saved = unscaled.cost - outcome.cost
    console.print(
        f"without scale-in: {unscaled.cost:.2f} $ in the same time, {saved:.2f} $ more; waiting: median "
        f"{lasting(unscaled.wait_median_s)}, 95 % {lasting(unscaled.wait_95_s)}"
    )
    for note in notes:
        console.print(note, style="yellow", markup=False)
