"""``python -m tests.bench.neighbours``: what a neighbour table that is too small does to connections, on the real kernel.

Many hosts of one layer-2 network are called at once, with the kernel's own thresholds and then with the role's, over
ARP and over NDP. The hosts are addresses of a network namespace that a veth pair leads to. The table is the whole
kernel's, so for about a minute this machine has the thresholds that are measured; what they were is put back whatever
happens, by the next run where this one is killed.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from types import FrameType

from network.neighbours import FLOOR, Thresholds
from sandbox.lab import clean, state
from sandbox.lab.errors import LabError
from sandbox.lab.shell import batch, run, succeeds
from tests.bench import alone, machine
from tests.bench import neighbour_tables as tables
from tests.bench.figures import Figure, table

PEERS = 2500
"""Machines of the largest network that OpenAI ran with flannel."""
DEFAULTS = Thresholds(128, 512, 1024)
"""Linux's, net/ipv4/arp.c and net/ipv6/ndisc.c."""
ROLE = Thresholds(FLOOR * 8 // 10, FLOOR * 9 // 10, FLOOR)
"""What `network.neighbours.thresholds` gives such a network: a test holds the two together."""
PATIENCE_S = 20.0
SLOW_S = 0.5  # Linux repeats a SYN after 1 s
_NAMESPACE, _NEAR, _FAR = "bench-neighbours", "mgn-near", "mgn-far"
_PORT = 9
# RFC 2544 and RFC 5180: for benchmarks, on no network.
_RANGES = {"ipv4": ip_network("198.18.0.0/16"), "ipv6": ip_network("2001:2:0:1::/64")}
# Ends with its standard input, so that it never outlives the bench.
_ANSWERING = """
import select, socket, sys
ends = []
for family in (socket.AF_INET, socket.AF_INET6):
    end = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    end.bind(("", PORT))
    end.listen(4096)
    ends.append(end)
print("up", flush=True)
while True:
    ready = select.select([sys.stdin, *ends], [], [])[0]
    if sys.stdin in ready:
        break
    for end in ready:
        end.accept()[0].close()
""".replace("PORT", str(_PORT))


class NeighboursError(Exception):
    """Why nothing could be measured here."""


@dataclass(frozen=True)
class Outcome:
    """One call of all hosts. seconds: of each that was reached, in the order in which they were.

    overflows: neighbours that the kernel refused (table_fulls). lines: of its log that say so; it writes few of them.
    """

    seconds: tuple[float, ...]
    failed: int
    overflows: int
    lines: int
    entries: int

    @property
    def slow(self) -> int:
        return sum(each > SLOW_S for each in self.seconds)

    def worst_s(self) -> float:
        """Of those that were reached."""
        return max(self.seconds, default=PATIENCE_S)


def measure(say: Callable[[str], None], peers: int = PEERS) -> list[Figure]:
    """Call `peers` hosts with the kernel's thresholds and with the role's, for each family."""
    refuse()
    found: dict[tuple[str, str], Outcome] = {}
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        stack.enter_context(state.locked())
        refuse()
        stack.enter_context(tables.thresholds_put_back())
        stack.enter_context(_many_files(peers))
        stack.enter_context(hosts(peers))
        for family in _RANGES:
            for name, chosen in (("kernel's thresholds", DEFAULTS), ("role's thresholds", ROLE)):
                tables.set_thresholds(chosen)
                found[family, name] = outcome = call(family, peers)
                say(f"{family}, {name}: {describe(outcome)}")
    return summary(found, peers)


def describe(outcome: Outcome) -> str:
    return (
        f"{len(outcome.seconds)} reached, {outcome.slow} of them after {SLOW_S:g} s or more, the last after "
        f"{outcome.worst_s():.2f} s; {outcome.failed} not within {PATIENCE_S:g} s; {outcome.overflows} overflows"
    )


def summary(found: dict[tuple[str, str], Outcome], peers: int) -> list[Figure]:
    """The figures side by side. Aims are the role's: nothing is late, fails or overflows."""
    figures = []
    for (family, name), outcome in found.items():
        own = name.startswith("role")
        what = f"{peers} hosts called at once, {family}, {name}"
        figures += [
            Figure(f"{what}: late or failed", "", (float(outcome.slow + outcome.failed),), 0.0 if own else None),
            Figure(f"{what}: until the last was reached", "s", (outcome.worst_s(),), SLOW_S if own else None),
            Figure(f"{what}: overflows", "", (float(outcome.overflows),), 0.0 if own else None, _told(outcome)),
        ]
    return figures


def _told(outcome: Outcome) -> str:
    said = f"{outcome.lines} lines of the kernel's log say so" if outcome.lines else "the kernel's log says nothing"
    return f"table_fulls; {said}; {outcome.entries} entries in the table afterwards"


def refuse() -> None:
    """NeighboursError where the table isn't ours to change."""
    if not sys.platform.startswith("linux") or os.geteuid():
        raise NeighboursError("neighbour tables can be changed by root alone, on Linux; run it with sudo")
    if not tables.threshold("ipv4", 3).exists():
        raise NeighboursError("the tables are seen in the first network namespace alone; run it outside of containers")
    if live := [lab for lab in clean.labs() if state.is_live(lab)]:
        raise NeighboursError(f"the lab {live[0]} runs on this machine, in the same tables; run `make lab-down` first")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as SIGINT does, so that everything is put back."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _many_files(peers: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = peers + 100
    if before[0] < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(before[1], wanted)))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def hosts(peers: int) -> Iterator[None]:
    """A veth pair to a namespace that has all the addresses and answers on a TCP port. Nothing of it is left."""
    _remove()
    try:
        run("ip", "netns", "add", _NAMESPACE)
        run("ip", "link", "add", _NEAR, "type", "veth", "peer", "name", _FAR, "netns", _NAMESPACE)
        four, six = _RANGES["ipv4"], _RANGES["ipv6"]
        ours, theirs = four.subnets()
        batch([f"addr add {four[1]}/{four.prefixlen} dev {_NEAR}", f"link set {_NEAR} up"])
        batch([f"addr add {six[1]}/{six.prefixlen} dev {_NEAR} nodad"])
        # Linux answers ARP for every address of a local route; for NDP each must be an address.
        batch([f"link set {_FAR} up", "link set lo up", f"route add local {theirs} dev lo"], netns=_NAMESPACE)
        batch([f"addr add {address}/128 dev {_FAR} nodad" for address in addresses("ipv6", peers)], netns=_NAMESPACE)
        batch([f"route add {ours} dev {_FAR}", f"route add {six} dev {_FAR}"], netns=_NAMESPACE)
        with _answering():
            yield
    finally:
        _remove()


def _remove() -> None:
    if Path(f"/run/netns/{_NAMESPACE}").exists():
        succeeds("ip", "netns", "del", _NAMESPACE)
    if Path(f"/sys/class/net/{_NEAR}").exists():
        succeeds("ip", "link", "del", _NEAR)


@contextmanager
def _answering() -> Iterator[None]:
    command = ["ip", "netns", "exec", _NAMESPACE, sys.executable, "-c", _ANSWERING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            if process.stdout.readline() != b"up\n":
                raise NeighboursError("nothing listens in the namespace of the hosts")
            yield
        finally:
            process.kill()


def addresses(family: str, peers: int) -> Iterator[str]:
    """The hosts', in the upper half of the range."""
    first = _RANGES[family].num_addresses // 2
    return (str(_RANGES[family][first + index]) for index in range(1, peers + 1))


def call(family: str, peers: int) -> Outcome:
    """Connect to every host at once, with a table that knows none of them."""
    for version in ("-4", "-6"):
        run("ip", version, "neigh", "flush", "dev", _NEAR)
    before = tables.overflows(family)
    with tables.log() as lines:
        seconds, failed = connect(family, list(addresses(family, peers)))
        told = lines()
    return Outcome(seconds, failed, tables.overflows(family) - before, told, tables.entries(family))


def connect(family: str, targets: Sequence[str]) -> tuple[tuple[float, ...], int]:
    """(seconds until each connection that came about, how many did not). A reset ends each, so no port stays taken."""
    kind = socket.AF_INET if family == "ipv4" else socket.AF_INET6
    poll, waiting, took = select.epoll(), {}, []
    start = time.monotonic()
    for target in targets:
        end = socket.socket(kind, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if end.connect_ex((target, _PORT)) not in (0, errno.EINPROGRESS):
            end.close()
            continue
        waiting[end.fileno()] = end, time.monotonic()
        poll.register(end, select.EPOLLOUT)
    while waiting and (left := start + PATIENCE_S - time.monotonic()) > 0:
        for number, _ in poll.poll(left):
            end, began = waiting.pop(number)
            if not end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                took.append(time.monotonic() - began)
            end.close()
    for end, _ in waiting.values():
        end.close()
    poll.close()
    return tuple(took), len(targets) - len(took)


def main() -> None:
    """Print the figures of this machine."""
    here = machine.read()
    figures = measure(alone.say)
    print(f"\n{here}; load {machine.load():.1f}\n\n{table(figures)}\n")
    for number, figure in enumerate((figure for figure in figures if figure.note), 1):
        print(f"{number}. {figure.name}: {figure.note}")


if __name__ == "__main__":
    try:
        main()
    except (NeighboursError, LabError) as error:
        sys.exit(f"error: {error}")
