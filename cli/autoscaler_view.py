"""What `autoscaler` prints."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.text import Text

from cli import exits
from cli.output import Details, console, errors, print_json, write_out
from cluster.spec import Cluster
from controllers.autoscaler.decision import Pass
from controllers.autoscaler.run import Done, Round
from controllers.autoscaler.seen import World
from controllers.autoscaler.simulate.cloud import START_S
from controllers.autoscaler.simulate.run import Outcome, Watch
from controllers.autoscaler.words import lasting
from controllers.planner import Fate, Verdict

_SHOWN = 20
_COLOURS = {Fate.ROOM: "green", Fate.NEW: "green", Fate.WAITING: "yellow", Fate.NEVER: "red"}


class View:
    """The passes of a run: a line for each act, and one for the state when it changed."""

    def __init__(self, cluster: Cluster, *, as_json: bool) -> None:
        self._name, self._as_json = cluster.name, as_json
        self._last = ""
        self._noticed: set[str] = set()

    def show(self, one: Round, events: tuple[int, int]) -> None:
        if self._as_json:
            write_out(json.dumps(document(self._name, one), sort_keys=True, default=str) + "\n")
            return
        for text in one.made.notices:
            self._line(text, "yellow", once=True)
        if one.made.refused:
            self._line(f"nothing is decided: {one.made.refused}", "red")
        acted = {each.decision for each in one.done}
        for decision in one.made.decisions:
            if decision not in acted:
                self._line(f"would {decision}", "cyan")
        for each in one.done:
            self._line(_done(each), "red" if each.failed else "green")
        if events[1]:
            self._line(f"{events[1]} pods are told later: {events[0]} Events in one pass are enough", "dim")
        if (state := _state(one)) != self._last:
            self._last = state
            console.print(f"{time.strftime('%H:%M:%S')} {self._name}: {state}", markup=False)

    def _line(self, text: str, style: str, *, once: bool = False) -> None:
        if once and text in self._noticed:
            return
        if once:
            self._noticed.add(text)
        errors.print(Text(f"{time.strftime('%H:%M:%S')} {text}", style=style))


def _done(one: Done) -> str:
    mark = "✗" if one.failed else "✓"
    return f"{mark} {one.decision}" + (f"; {one.said}" if one.said else "")


def _state(one: Round) -> str:
    fates = Counter(verdict.fate for verdict in one.made.verdicts.values())
    waits = ", ".join(f"{fates[fate]} {_word(fate)}" for fate in Fate if fates[fate])
    pools = ", ".join(
        f"{pool} {sum(machine.state == 'running' for machine in group.machines)}/{group.size}"
        for pool, group in sorted(one.world.groups.items())
    )
    idle = f"; {len(one.made.memory.idle)} hosts idle" if one.made.memory.idle else ""
    return (
        f"{len(one.world.waiting)} pods wait"
        + (f" ({waits})" if waits else "")
        + f"; machines: {pools or 'none'}{idle}"
    )


def _word(fate: Fate) -> str:
    return {
        Fate.ROOM: "fit on what is there or comes",
        Fate.NEW: "get a new host",
        Fate.WAITING: "wait on",
        Fate.NEVER: "can never start",
    }[fate]


def document(name: str, one: Round) -> dict[str, Any]:
    """A pass, for machines."""
    done = {id(each.decision): each for each in one.done}
    return {
        "cluster": name,
        "at": one.world.now_s,
        "refused": one.made.refused,
        "notices": list(one.made.notices),
        "pods": {
            pod: {"fate": str(verdict.fate), "reason": verdict.reason, "host": verdict.host}
            for pod, verdict in one.made.verdicts.items()
        },
        "decisions": [
            {
                **each.to_json(),
                "done": id(each) in done and not done[id(each)].failed,
                "failed": done[id(each)].said if id(each) in done and done[id(each)].failed else None,
            }
            for each in one.made.decisions
        ],
        "kept": dict(one.made.kept),
        "dollars_per_hour": one.made.plan.bill / 1e6 if one.made.plan else 0.0,
        "took_s": dict(zip(("look", "decide", "act"), one.took_s, strict=True)),
    }


def planned(cluster: Cluster, one: Round, *, as_json: bool) -> int:
    """All of a pass; the exit code."""
    code = exits.FAILED if one.made.refused else exits.DONE
    if as_json:
        print_json(document(cluster.name, one))
        return code
    for text in one.made.notices:
        errors.print(Text(text, style="yellow"))
    if one.made.refused:
        errors.print(Text(f"nothing is decided: {one.made.refused}", style="red"))
    by_reason: dict[tuple[Fate, str], list[str]] = {}
    for pod, verdict in sorted(one.made.verdicts.items()):
        by_reason.setdefault((verdict.fate, verdict.reason), []).append(pod)
    for (fate, reason), pods in list(by_reason.items())[:_SHOWN]:
        console.print(Text(f"{_some(pods)}: {reason}", style=_COLOURS[fate]))
    if len(by_reason) > _SHOWN:
        console.print(f"and {len(by_reason) - _SHOWN} more reasons; --json lists all", style="dim")
    for node, why in sorted(one.made.kept.items()):
        console.print(Text(f"{node} stays: {why}", style="dim"))
    for decision in one.made.decisions:
        console.print(Text(str(decision), style="cyan"))
    cost = f", {one.made.plan.bill / 1e6:.2f} $/h more" if one.made.plan and one.made.plan.hosts else ""
    console.print(f"{cluster.name}: {_state(one)}; {len(one.made.decisions)} decisions{cost}", markup=False)
    return code


def _some(pods: list[str]) -> str:
    return pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} like it"


def explained(cluster: Cluster, one: Round, what: str, *, as_json: bool) -> int:
    """Why a pod waits, or a host stays; the exit code."""
    name = what if "/" in what or what in one.world.by_node else f"default/{what}"
    lines = _of_pod(one, name) or _of_node(one, what)
    if lines is None:
        text = f"{what} is no pod that waits or runs, and no node of {cluster.name}; pods are NAMESPACE/NAME"
        if as_json:
            print_json({"error": {"code": "unknown-pod", "text": text, "exit_code": exits.BAD_INPUT}})
        else:
            errors.print(Text(text, style="red"))
        return exits.BAD_INPUT
    if as_json:
        print_json({"cluster": cluster.name, "what": name, **lines})
        return exits.DONE
    for key, value in lines.items():
        for text in value if isinstance(value, list) else [value]:
            if text:
                console.print(f"{key}: {text}", markup=False)
    return exits.DONE


def _of_pod(one: Round, name: str) -> dict[str, Any] | None:
    pod = next((each for each in one.world.waiting if each.name == name), None)
    if pod is None:
        return _running(one.world, name)
    verdict = one.made.verdicts.get(name, Verdict(Fate.WAITING, "is not planned"))
    order = next((each for each in one.made.memory.orders if name in each.pods), None)
    ordered = f"{lasting(one.world.now_s - order.at_s)} ago in pool {order.pool}" if order else ""
    decisions = [str(each) for each in one.made.decisions if each.act == "grow"]
    return {
        "pod": name,
        "fate": str(verdict.fate),
        "reason": verdict.reason,
        "waits for": lasting(one.world.now_s - pod.since_s),
        "gang": f"{pod.gang.name}, {pod.gang.size} pods" if pod.gang else "",
        "machine ordered": ordered,
        "wrong": list(pod.complaints),
        "the scheduler says": pod.said,
        "would": decisions if verdict.fate is Fate.NEW else [],
    }


def _running(world: World, name: str) -> dict[str, Any] | None:
    for node in world.nodes:
        for each in node.residents:
            if each.name == name:
                keeps = f"{node.name} stays, for it {each.keeps}" if each.keeps else ""
                return {"pod": name, "fate": "runs", "reason": f"is on {node.name} of pool {node.pool}", "keeps": keeps}
    return None


def _of_node(one: Round, name: str) -> dict[str, Any] | None:
    node = one.world.by_node.get(name)
    if node is None:
        return None
    steps = [str(each) for each in one.made.decisions if each.node == name]
    grows = node.pool in one.world.supplies and one.world.supplies[node.pool].grows
    why = one.made.kept.get(name, "" if steps else "nothing is decided of it" if grows else "its pool has a fixed size")
    return {"node": name, "pool": node.pool, "stays": why, "would": steps, "pods": [each.name for each in node.pods]}


@contextmanager
def progress(pods: int, *, quiet: bool) -> Iterator[Callable[[str], Watch]]:
    """Tells every few seconds where a simulation is."""
    details = Details("simulated: ")

    def watch(what: str) -> Watch:
        def seen(world: World, made: Pass) -> None:
            hours = (world.now_s - START_S) / 3600
            details.tell(f"{what}: {hours:,.1f} h, {len(world.nodes)} hosts, {len(world.waiting)} of {pods} pods wait")

        return seen

    if quiet:
        yield watch
        return
    with details.lines():
        yield watch


def _unstarted(pods: Mapping[str, str], one: str, several: str) -> None:
    """Pods by the reason that they share; nothing where there are none."""
    by_reason: dict[str, list[str]] = {}
    for pod, why in pods.items():
        by_reason.setdefault(why, []).append(pod)
    for why, names in list(by_reason.items())[:_SHOWN]:
        who = f"{names[0]} {one}" if len(names) == 1 else f"{len(names)} pods {several} ({names[0]} and others)"
        errors.print(Text(f"{who}: {why}", style="yellow"))
    if len(by_reason) > _SHOWN:
        errors.print(Text(f"and {len(by_reason) - _SHOWN} more reasons", style="yellow"))


def simulated(cluster: Cluster, found: Outcome, kept: Outcome, *, as_json: bool) -> None:
    """What a trace cost, and would have cost without scale-in."""
    if as_json:
        print_json({"cluster": cluster.name, "with": found.to_json(), "without_scale_in": kept.to_json()})
        return
    _unstarted(found.never, "never starts", "never start")
    _unstarted(found.waiting, "still waits", "still wait")
    console.print(f"{found.pods} pods in {found.hours:.1f} h: {found.ended} ended, {found.unstarted} never started")
    waits = f"median {lasting(found.wait_median_s)}, 95 % {lasting(found.wait_95_s)}, longest {lasting(found.wait_longest_s)}"
    console.print(f"waiting: {waits}; {found.interrupted} lost their host")
    console.print(
        f"machines: {found.ordered} ordered, {found.removed} given back, {found.peak_hosts} at most; "
        f"{found.host_hours:.1f} h of them for {found.cost:.2f} $"
    )
    saved = kept.cost - found.cost
    console.print(
        f"without scale-in: {kept.cost:.2f} $ in the same time, {saved:.2f} $ more; waiting: median "
        f"{lasting(kept.wait_median_s)}, 95 % {lasting(kept.wait_95_s)}"
    )
