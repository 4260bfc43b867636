"""The proof that bytes are counted: a pod sends a known number of them, and its node's counters say so."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from clients.remote.executor import Executor
from clients.timeouts import HOST_COMMAND_S
from operations.ssh import ssh_to
from operations.verify.proof import Context, FailedProofError, Proof, demand
from operations.verify.workload import PORT, Pod

PROGRAM = "/usr/local/sbin/menagerie-traffic"
SENT = 20_000_000
"""Bytes. A response's head, and the kubelet's probes meanwhile, are far below the tolerance."""
TOLERANCE = 0.001
HEADERS = 52
"""Bytes of headers in a packet of TCP: 20 of IPv4, 32 of TCP with timestamps, which Linux sends by default."""
_LARGEST_SEGMENT = 9216
_SETTLES_S = 1.0


@dataclass(frozen=True)
class Counted:
    """What a pod sent, as its node has counted it."""

    bytes: int
    packets: int

    @property
    def payload(self) -> int:
        """Bytes without headers. Segments that the kernel handled as one packet had one header."""
        return self.bytes - HEADERS * self.packets


def bytes_are_counted(context: Context) -> str:
    """Let a pod on another node fetch `SENT` bytes, and compare the counters of the node that sends them."""
    source, target = _ends(context)
    fill = f"head -c {SENT} /dev/zero > /tmp/www/bytes"
    context.workload.run(source, "sh", "-c", fill)
    fetch = f"wget -q -O - http://{source.address}:{PORT}/bytes | wc -c"
    with ssh_to(context.cluster, context.access) as executor:
        before, resent_before = counted(executor, source.node, context.workload.namespace), _resent(context, source)
        got = context.workload.run(target, "timeout", "25", "sh", "-c", fetch).strip()
        demand(got == str(SENT), f"the pod on {target.node} got {got!r} of {SENT} bytes from {source.node}")
        time.sleep(_SETTLES_S)
        after, resent = (
            counted(executor, source.node, context.workload.namespace),
            _resent(context, source) - resent_before,
        )
    payload = after.payload - before.payload
    off = payload - SENT
    text = (
        f"{source.node} counted {payload:,} bytes in {after.packets - before.packets:,} packets of a pod that sent {SENT:,} to "
        f"{target.node}: {off / SENT:+.3%}"
    )
    # What was sent twice is counted twice.
    demand(-SENT * TOLERANCE <= off <= SENT * TOLERANCE + resent * _LARGEST_SEGMENT, text)
    return text + (f"; {resent} segments were sent twice" if resent else "")


def _ends(context: Context) -> tuple[Pod, Pod]:
    """Return a pod on a machine at a site, and one on another node."""
    pods = context.workload.pods()
    name = context.cluster.host_list()[0][1].name
    return pods[name], next(pod for node, pod in pods.items() if node != name)


def counted(executor: Executor, host: str, namespace: str) -> Counted:
    """Return what pods of a namespace have sent to pods from this host. Raises FailedProofError without an answer."""
    done = executor.start(host, [PROGRAM, "show", "--json"]).wait(HOST_COMMAND_S)
    line = next((line for line in done.text.splitlines() if line.startswith("{")), "")
    try:
        rows = json.loads(line)["counters"]
    except (ValueError, KeyError):
        raise FailedProofError(f"{host} has no counters: {done.reason}") from None
    own = [each for each in rows if (each["namespace"], each["direction"], each["class"]) == (namespace, "out", "pod")]
    return Counted(sum(each["bytes"] for each in own), sum(each["packets"] for each in own))


def _resent(context: Context, pod: Pod) -> int:
    """Return segments of TCP that the pod has sent again (RetransSegs of /proc/net/snmp)."""
    lines = context.workload.run(pod, "grep", "^Tcp:", "/proc/net/snmp").splitlines()
    names, values = (line.split() for line in lines[:2])
    return int(dict(zip(names, values, strict=True))["RetransSegs"])


def lacks_a_host(context: Context) -> str:
    """Return why there are no counters to read, "" if there are."""
    if not context.cluster.host_list():
        return "needs a machine at a site: its counters are read over ssh"
    if len(context.nodes) < 2:
        return "needs two nodes: one pod sends to another"
    return ""


PROOFS = (
    Proof(
        "counted",
        "bytes are counted by namespace, within 0.1 % of what a pod sent",
        bytes_are_counted,
        lacks=lacks_a_host,
    ),
)
