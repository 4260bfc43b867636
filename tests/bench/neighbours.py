"""``python -m tests.bench.neighbours``: the effect of a too small neighbour table on connections, on the real kernel.

It connects to many hosts of one layer-2 network at once, with the kernel's default thresholds and then with the role's, over
ARP and over NDP. The hosts are addresses in a network namespace behind a veth pair. The whole kernel shares the table, so for
about a minute this machine has the measured thresholds. The old ones are always restored; if this run is killed, by the next.
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
"""Number of machines in the largest network that OpenAI ran with flannel."""
DEFAULTS = Thresholds(128, 512, 1024)
"""Linux's defaults, from net/ipv4/arp.c and net/ipv6/ndisc.c."""
ROLE = Thresholds(FLOOR * 8 // 10, FLOOR * 9 // 10, FLOOR)
"""What `network.neighbours.thresholds` gives for such a network; a test compares the two."""
PATIENCE_S = 20.0
SLOW_S = 0.5  # Linux repeats a SYN after 1 s
_NAMESPACE, _NEAR, _FAR = "bench-neighbours", "mgn-near", "mgn-far"
_PORT = 9
# RFC 2544 and RFC 5180: for benchmarks, used on no real network.
_RANGES = {"ipv4": ip_network("198.18.0.0/16"), "ipv6": ip_network("2001:2:0:1::/64")}
# Exits when its standard input closes, so that it never outlives the bench.
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
    """Nothing could be measured here; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """Connections to all hosts at once. seconds: of each host that was reached, in that order.

    overflows: neighbours that the kernel refused (table_fulls). lines: lines about this in its log, which are rate-limited.
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
        """Return the seconds of the slowest host that was reached."""
        return max(self.seconds, default=PATIENCE_S)


def measure(say: Callable[[str], None], peers: int = PEERS) -> list[Figure]:
    """Connect to `peers` hosts with the kernel's thresholds and with the role's, for each family."""
    refuse()
    outcomes: dict[tuple[str, str], Outcome] = {}
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
                outcomes[family, name] = outcome = call(family, peers)
                say(f"{family}, {name}: {describe(outcome)}")
    return summary(outcomes, peers)


def describe(outcome: Outcome) -> str:
    return (
        f"{len(outcome.seconds)} reached, {outcome.slow} of them after {SLOW_S:g} s or more, the last after "
        f"{outcome.worst_s():.2f} s; {outcome.failed} not within {PATIENCE_S:g} s; {outcome.overflows} overflows"
    )


def summary(outcomes: dict[tuple[str, str], Outcome], peers: int) -> list[Figure]:
    """Return the figures side by side. Aims apply to the role's: nothing is late, fails or overflows."""
    figures = []
    for (family, name), outcome in outcomes.items():
        is_role = name.startswith("role")
        what = f"{peers} hosts called at once, {family}, {name}"
        figures += [
            Figure(f"{what}: late or failed", "", (float(outcome.slow + outcome.failed),), 0.0 if is_role else None),
            Figure(f"{what}: until the last was reached", "s", (outcome.worst_s(),), SLOW_S if is_role else None),
            Figure(f"{what}: overflows", "", (float(outcome.overflows),), 0.0 if is_role else None, _note(outcome)),
        ]
    return figures


def _note(outcome: Outcome) -> str:
    logged = f"{outcome.lines} lines of the kernel's log say so" if outcome.lines else "the kernel's log says nothing"
    return f"table_fulls; {logged}; {outcome.entries} entries in the table afterwards"


def refuse() -> None:
    """Raise NeighboursError if the table can't be changed here."""
    if not sys.platform.startswith("linux") or os.geteuid():
        raise NeighboursError("only root on Linux can change neighbour tables; run it with sudo")
    if not tables.threshold("ipv4", 3).exists():
        raise NeighboursError("only the first network namespace shows the tables; run it outside containers")
    if live := [lab for lab in clean.labs() if state.is_live(lab)]:
        raise NeighboursError(
            f"the lab {live[0]} runs on this machine and uses the same tables; run `make lab-down` first"
        )


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end this process like SIGINT, so that everything is restored."""

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
    needed = peers + 100
    if before[0] < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(before[1], needed)))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def hosts(peers: int) -> Iterator[None]:
    """Provide a veth pair to a namespace that has all addresses and answers on a TCP port. Remove everything afterwards."""
    _remove()
    try:
        run("ip", "netns", "add", _NAMESPACE)
        run("ip", "link", "add", _NEAR, "type", "veth", "peer", "name", _FAR, "netns", _NAMESPACE)
        four, six = _RANGES["ipv4"], _RANGES["ipv6"]
        ours, theirs = four.subnets()
        batch([f"addr add {four[1]}/{four.prefixlen} dev {_NEAR}", f"link set {_NEAR} up"])
        batch([f"addr add {six[1]}/{six.prefixlen} dev {_NEAR} nodad"])
        # Linux answers ARP for every address of a local route, but NDP only for configured addresses.
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
    """Return the hosts' addresses, in the upper half of the range."""
    first = _RANGES[family].num_addresses // 2
    return (str(_RANGES[family][first + index]) for index in range(1, peers + 1))


def call(family: str, peers: int) -> Outcome:
    """Connect to every host at once, with an empty table."""
    for version in ("-4", "-6"):
        run("ip", version, "neigh", "flush", "dev", _NEAR)
    before = tables.overflows(family)
    with tables.log() as lines:
        seconds, failed = connect(family, list(addresses(family, peers)))
        logged = lines()
    return Outcome(seconds, failed, tables.overflows(family) - before, logged, tables.entries(family))


def connect(family: str, targets: Sequence[str]) -> tuple[tuple[float, ...], int]:
    """Return (seconds of each successful connection, number of failures). A reset ends each, so that no port stays in use."""
    kind = socket.AF_INET if family == "ipv4" else socket.AF_INET6
    poll, waiting, seconds = select.epoll(), {}, []
    start = time.monotonic()
    for target in targets:
        connection = socket.socket(kind, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if connection.connect_ex((target, _PORT)) not in (0, errno.EINPROGRESS):
            connection.close()
            continue
        waiting[connection.fileno()] = connection, time.monotonic()
        poll.register(connection, select.EPOLLOUT)
    while waiting and (left := start + PATIENCE_S - time.monotonic()) > 0:
        for number, _ in poll.poll(left):
            connection, began = waiting.pop(number)
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                seconds.append(time.monotonic() - began)
            connection.close()
    for connection, _ in waiting.values():
        connection.close()
    poll.close()
    return tuple(seconds), len(targets) - len(seconds)


def main() -> None:
    """Measure, and print the figures."""
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
