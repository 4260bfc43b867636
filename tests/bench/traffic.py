"""``python -m tests.bench.traffic``: how fast pods send to each other in the lab, beside their hosts on the same cable.

Three ways are taken in turns: between two hosts of one rack, between pods on them (routed, without encapsulation), and
between pods in two racks (VXLAN), the last beside their hosts too. iperf3 runs on the hosts; for pods, in the network
namespace of a pod. All of it shares this machine's cores, so what is measured is what the ways cost, not what a card
does.
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
# ip-netns(8) lists those that containerd made for pods.
_NAMESPACE_OF = (
    'for n in $(ip netns list | cut -d" " -f1); do ip -n $n -4 -o addr | grep -qF " {}/" && echo $n; done; true'
)
# The hosts' packet filter lets in what the cluster needs; the lab is taken down afterwards.
_LET_IN = ("nft", "insert", "rule", "inet", "menagerie", "input", "tcp", "dport", str(_PORT), "accept")


@dataclass(frozen=True)
class End:
    """Where iperf3 runs: on a host, or in a pod's network namespace there. address: of that place."""

    host: str
    address: str
    namespace: str = ""

    def argv(self, *words: str) -> tuple[str, ...]:
        return (*(("ip", "netns", "exec", self.namespace) if self.namespace else ()), *words)


@dataclass
class Ways:
    """Bits a second of each round."""

    hosts_in_rack: list[float] = field(default_factory=list)
    pods_in_rack: list[float] = field(default_factory=list)
    hosts_across: list[float] = field(default_factory=list)
    pods_across: list[float] = field(default_factory=list)


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Bring the lab up, measure, and take it away. There must be none of it."""
    cluster = load_cluster(find_cluster("lab", ROOT))
    with Group() as group:
        try:
            group.run([MENAGERIE, "up", cluster.name, "--yes"])
            return summary(_measured(cluster, say, rounds))
        finally:
            take_away(cluster, group)


def summary(ways: Ways) -> list[Figure]:
    """The figures. Aims are the most that is wanted, so shares are turned round."""
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
            ways.hosts_in_rack.append(_sent(machines[near], machines[far]))
            ways.pods_in_rack.append(_sent(pods[near], pods[far]))
            ways.hosts_across.append(_sent(machines[near], machines[distant]))
            ways.pods_across.append(_sent(pods[near], pods[distant]))
            share = ways.pods_in_rack[-1] / ways.hosts_in_rack[-1]
            say(f"round {number}: pods of a rack at {share:.2f} of their hosts' speed")
    return ways


@contextmanager
def _ends(cluster: Cluster, names: tuple[str, ...]) -> Iterator[tuple[dict[str, End], dict[str, End]]]:
    """Hosts and pods by the host's name."""
    access = access_to(cluster)
    addresses = {host.name: str(host.address) for _, host in cluster.host_list()}
    with workload(access.api(), frozenset(names), lambda _: None) as running:
        pods = running.pods()
        for name in names:
            _did(name, _LET_IN)
        yield (
            {name: End(name, addresses[name]) for name in names},
            {name: End(name, pods[name].address, _namespace(name, pods[name].address)) for name in names},
        )


def _namespace(host: str, address: str) -> str:
    return _did(host, ("sh", "-c", _NAMESPACE_OF.format(address))).strip()


def _sent(source: End, target: End) -> float:
    """Bits a second that arrive, over one TCP connection."""
    _did(target.host, target.argv("iperf3", "--server", "--one-off", "--daemon", "--port", str(_PORT)))
    time.sleep(0.3)
    words = ("iperf3", "--client", target.address, "--port", str(_PORT), "--time", str(SECONDS), "--json")
    told = json.loads(_did(source.host, source.argv(*words)))
    return float(told["end"]["sum_received"]["bits_per_second"])


def _did(host: str, argv: tuple[str, ...]) -> str:
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stdout.strip()} {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    here = machine.read()
    figures = measure(alone.say)
    print(f"{here}\n{table(figures)}")
    for figure in figures:
        if figure.note:
            print(f"{figure.name}: {figure.note}")


if __name__ == "__main__":
    main()
