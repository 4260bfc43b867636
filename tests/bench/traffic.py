"""``python -m tests.bench.traffic``: throughput between pods in the lab, compared with their hosts on the same cable.

Three paths are measured in turns: between two hosts of one rack, between pods on them (routed, without encapsulation), and
between pods in two racks (VXLAN), the last also compared with their hosts. iperf3 runs on the hosts; for pods, in a pod's
network namespace. All of it shares this machine's cores, so the figures show the cost of the paths, not the speed of a card.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster.load import find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.stack import access_to
from operations.verify.everyday import three_hosts
from operations.verify.workload import workload
from sandbox.lab import hosts
from sandbox.lab.errors import LabError
from tests.bench import alone, machine
from tests.bench.figures import Figure, ratios, table
from tests.bench.group import Group
from tests.bench.toolkit import MENAGERIE, take_away

ROUNDS, SECONDS = 5, 3
SHARE_AIM = 0.95
_PORT = 5201
# ip-netns(8) lists the namespaces that containerd created for pods.
_NAMESPACE_OF = (
    'for n in $(ip netns list | cut -d" " -f1); do ip -n $n -4 -o addr | grep -qF " {}/" && echo $n; done; true'
)
# The hosts' packet filter admits only what the cluster needs. The lab is destroyed afterwards.
_LET_IN = ("nft", "insert", "rule", "inet", "menagerie", "input", "tcp", "dport", str(_PORT), "accept")


@dataclass(frozen=True)
class End:
    """Where iperf3 runs: on a host, or in a pod's network namespace on it. address: of the host or pod."""

    host: str
    address: str
    namespace: str = ""

    def argv(self, *words: str) -> tuple[str, ...]:
        return (*(("ip", "netns", "exec", self.namespace) if self.namespace else ()), *words)


@dataclass
class Ways:
    """Bits per second of each round."""

    hosts_in_rack: list[float] = field(default_factory=list)
    pods_in_rack: list[float] = field(default_factory=list)
    hosts_across: list[float] = field(default_factory=list)
    pods_across: list[float] = field(default_factory=list)


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Bring the lab up, measure, and destroy it. It must not exist at the start."""
    cluster = load_cluster(find_cluster("lab", ROOT))
    with Group() as group:
        try:
            group.run([MENAGERIE, "up", cluster.name, "--yes"])
            return summary(_measured(cluster, say, rounds))
        finally:
            take_away(cluster, group)


def summary(ways: Ways) -> list[Figure]:
    """Return the figures. Aims are upper limits, so shares are inverted."""
    gbit = {
        "host to host, one rack": ways.hosts_in_rack,
        "pod to pod, one rack": ways.pods_in_rack,
        "host to host, two racks": ways.hosts_across,
        "pod to pod, two racks (VXLAN)": ways.pods_across,
    }
    note = f"at most {1 / SHARE_AIM:.3f}: pods send at {SHARE_AIM:.2f} of their hosts' speed or more"
    return [
        *(Figure(name, "Gbit/s", tuple(value / 1e9 for value in values)) for name, values in gbit.items()),
        Figure(
            "one rack, hosts ÷ pods", "", ratios(ways.hosts_in_rack, ways.pods_in_rack), round(1 / SHARE_AIM, 3), note
        ),
        Figure("two racks, hosts ÷ pods (VXLAN)", "", ratios(ways.hosts_across, ways.pods_across)),
    ]


def _measured(cluster: Cluster, say: Callable[[str], None], rounds: int) -> Ways:
    ways, names = Ways(), three_hosts(cluster)
    with _ends(cluster, names) as (machines, pods):
        near, far, distant = names
        for number in range(1, rounds + 1):
            ways.hosts_in_rack.append(_throughput(machines[near], machines[far]))
            ways.pods_in_rack.append(_throughput(pods[near], pods[far]))
            ways.hosts_across.append(_throughput(machines[near], machines[distant]))
            ways.pods_across.append(_throughput(pods[near], pods[distant]))
            share = ways.pods_in_rack[-1] / ways.hosts_in_rack[-1]
            say(f"round {number}: pods of a rack at {share:.2f} of their hosts' speed")
    return ways


@contextmanager
def _ends(cluster: Cluster, names: tuple[str, ...]) -> Iterator[tuple[dict[str, End], dict[str, End]]]:
    """Provide the ends on hosts and in pods, by the host's name."""
    access = access_to(cluster)
    addresses = {host.name: str(host.address) for _, host in cluster.host_list()}
    with workload(access.api(), frozenset(names), lambda _: None) as running:
        pods = running.pods()
        for name in names:
            _run(name, _LET_IN)
        yield (
            {name: End(name, addresses[name]) for name in names},
            {name: End(name, pods[name].address, _namespace(name, pods[name].address)) for name in names},
        )


def _namespace(host: str, address: str) -> str:
    return _run(host, ("sh", "-c", _NAMESPACE_OF.format(address))).strip()


def _throughput(source: End, target: End) -> float:
    """Return the received bits per second of one TCP connection."""
    _run(target.host, target.argv("iperf3", "--server", "--one-off", "--daemon", "--port", str(_PORT)))
    time.sleep(0.3)
    client = ("iperf3", "--client", target.address, "--port", str(_PORT), "--time", str(SECONDS), "--json")
    report = json.loads(_run(source.host, source.argv(*client)))
    return float(report["end"]["sum_received"]["bits_per_second"])


def _run(host: str, argv: tuple[str, ...]) -> str:
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stdout.strip()} {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    host = machine.read()
    figures = measure(alone.say)
    print(f"{host}\n{table(figures)}")
    for figure in figures:
        if figure.note:
            print(f"{figure.name}: {figure.note}")


if __name__ == "__main__":
    main()
