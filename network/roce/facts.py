"""The actual settings of switches, written down or exported by an operator, compared with those of the hosts: ROC-002, ROC-003.

Example:

switches:
  leaf-1:
    trust: dscp
    pfc: [3]
    dscp_to_priority: {26: 3, 48: 6}
    ecn: [3]
    strict: [6]
    mtu: 9216
    ports:
      "17": {mtu: 1500}
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from cluster.document import Document, Where, read
from cluster.model import Model
from cluster.problems import Problem, SpecError, in_order
from cluster.roce import Priority, Roce, mtu_over
from cluster.validate import validate

_OPTIONAL = Field(default=None, strict=False)


class Trust(StrEnum):
    """The source of a packet's priority."""

    DSCP = "dscp"
    PCP = "pcp"
    BOTH = "both"
    NONE = "none"


class Port(Model):
    """A port that differs from the rest of its switch. Omitted settings are those of the switch."""

    mtu: int | None = None
    """Bytes."""
    trust: Trust | None = _OPTIONAL
    """The source of an arriving packet's priority."""
    pfc: tuple[Priority, ...] | None = _OPTIONAL
    """Lossless priorities."""
    global_pause: bool | None = None
    """Whether the port sends or honours pause frames for all priorities."""


class Switch(Port):
    """A switch of the fabric. Omitted settings aren't compared."""

    site: str | None = None
    """The switch's site, if several sites have a fabric."""
    dscp_to_priority: dict[str, Priority] | None = None
    """Mark -> priority."""
    ecn: tuple[Priority, ...] | None = _OPTIONAL
    """Priorities, or traffic classes, whose packets are marked before the queue is full."""
    strict: tuple[Priority, ...] | None = _OPTIONAL
    """Priorities that are served before all others."""
    lossless_most: int | None = None
    """The number of lossless priorities that its buffers can support."""
    ports: dict[str, Port] = Field(default={})
    """Name -> port, for ports that differ."""


class Switches(Model):
    """A file of switch facts."""

    switches: dict[str, Switch]


def load(path: Path) -> tuple[Switches, Document]:
    """Return the facts in a file. Raises SpecError with all problems in it."""
    document = read(path, str(path), Switches.model_fields)
    if document.data is None:
        raise SpecError(document.problems)
    _as_text(document.data)
    result = validate(Switches, document)
    if result.problems or document.problems or result.value is None:
        raise SpecError([*document.problems, *result.problems])
    return result.value, document


def _as_text(data: Any) -> None:
    """Turn marks and names of ports into text: people write numbers, and the model needs text as keys."""
    switches = data.get("switches") if isinstance(data, dict) else None
    for switch in switches.values() if isinstance(switches, dict) else ():
        for key in ("dscp_to_priority", "ports") if isinstance(switch, dict) else ():
            if isinstance(switch.get(key), dict):
                switch[key] = {str(name): value for name, value in switch[key].items()}


def compare(roce: Roce, facts: Switches, document: Document, site: str | None = None) -> list[Problem]:
    """Return every difference between the hosts' settings and the switches of a site, or all switches with `site` None."""
    problems: list[Problem] = []
    for name, switch in facts.switches.items():
        if site is None or switch.site in (None, site):
            problems += _compare(roce, name, switch, document)
    return in_order(problems)


def _compare(roce: Roce, name: str, switch: Switch, document: Document) -> Iterator[Problem]:
    where: Where = ("switches", name)
    yield from _port(roce, f"switch {name}", name, switch, where, document)
    for port, own in switch.ports.items():
        yield from _port(
            roce, f"switch {name} port {port}", f"{name} port {port}", own, (*where, "ports", port), document
        )
    for mark, priority, what in (
        (roce.dscp, roce.priority, "RDMA"),
        (roce.cnp_dscp, roce.cnp_priority, "congestion notifications"),
    ):
        if switch.dscp_to_priority is None:
            break
        actual = switch.dscp_to_priority.get(str(mark))
        if actual != priority:
            message = f"DSCP {mark} ({what}) is priority {priority} on hosts and {_shown(actual)} on {name}; they must be equal"
            hint = f"map DSCP {mark} to priority {priority} on {name}"
            yield document.problem("ROC-003", (*where, "dscp_to_priority"), message, hint)
    if switch.ecn is not None and roce.priority not in switch.ecn:
        message = f"ECN is on for priority {_shown(switch.ecn)} on {name}, not for RDMA's {roce.priority}; nothing slows senders"
        yield document.problem("ROC-003", (*where, "ecn"), message, f"mark packets in queue {roce.priority} of {name}")
    if switch.strict is not None and roce.cnp_priority not in switch.strict:
        message = f"congestion notifications have priority {roce.cnp_priority}, which isn't strict on {name}"
        yield document.problem("ROC-003", (*where, "strict"), message, f"make queue {roce.cnp_priority} strict")
    if switch.lossless_most is not None and len(switch.pfc or ()) > switch.lossless_most:
        more = (
            "more than one lossless priority"
            if switch.lossless_most == 1
            else f"{len(switch.pfc or ())} lossless priorities"
        )
        message = f"{name} has no buffers for PFC on {more}"
        yield document.problem("ROC-003", (*where, "pfc"), message, f"leave PFC on for {_shown(roce.pfc)} alone")


def _port(roce: Roce, long: str, short: str, port: Port, where: Where, document: Document) -> Iterator[Problem]:
    """Yield the problems of a switch's common settings, or of a port that differs."""
    if port.mtu is not None and port.mtu < roce.least_link_mtu:
        message = (
            f"roce.mtu {roce.mtu} needs link MTU {roce.least_link_mtu} or more on every hop; {long} has {port.mtu} "
            f"(RDMA would drop to {mtu_over(port.mtu)})"
        )
        yield document.problem("ROC-002", (*where, "mtu"), message, f"set MTU {roce.link_mtu} there")
    elif port.mtu is not None and port.mtu < roce.link_mtu:
        message = f"hosts may send {roce.link_mtu} bytes (roce.link_mtu), but {long} takes {port.mtu} and drops larger packets"
        yield document.problem("ROC-002", (*where, "mtu"), message, f"set MTU {roce.link_mtu} there")
    if port.trust not in (None, Trust.DSCP, Trust.BOTH):
        message = f"trust is dscp on hosts and {port.trust} on {short}; it would ignore RDMA's mark"
        yield document.problem("ROC-003", (*where, "trust"), message, "trust DSCP (L3) there")
    if port.pfc is not None and set(port.pfc) != set(roce.pfc):
        message = f"PFC priority is {_shown(roce.pfc)} on hosts and {_shown(port.pfc)} on {short}; they must be equal"
        yield document.problem("ROC-003", (*where, "pfc"), message, f"set PFC for priority {_shown(roce.pfc)} there")
    if port.global_pause:
        message = f"global pause is off on hosts and on at {short}; it stops all priorities and rules out PFC"
        yield document.problem("ROC-003", (*where, "global_pause"), message, "turn flow control (802.3x) off there")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) if value else "none"
    return "none" if value is None else str(value)
