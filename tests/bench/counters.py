"""``python -m tests.bench.counters``: what role traffic's counters cost, on the real kernel and without a cluster.

A node in a network namespace forwards between its pod and a pod of another node, with the table of 110 pods and without it, in
turns. One TCP connection sends for a part of a second: with large packets, as the kernel handles them, and with packets of one
segment, of which it handles forty times as many. The program then follows 110 pods that do nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cluster.project import ROOT
from tests.bench import alone
from tests.bench.figures import Figure, ratios
from tests.traffic import space as spaces
from tests.traffic.space import CLASSES, HOST, OWN_POD, PEERS, Space

PODS = 110
ROUNDS = 60
SECONDS = 0.3
"""Short turns: other work on the machine changes from second to second."""
COST_AIM = 1.01
IDLE_S = 20.0
_PORT = 7200
_PROGRAM = ROOT / "roles" / "traffic" / "files"
_SEND = """
import socket, sys, time
end = socket.create_connection((sys.argv[1], int(sys.argv[2])))
data, until = bytes(1 << 18), time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    end.sendall(data)
"""
_TAKE = """
import socket, sys, time
listening = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
room = bytearray(1 << 20)
while True:
    end, _ = listening.accept()
    began, got = time.monotonic(), 0
    while (size := end.recv_into(room)):
        got += size
    print(got / (time.monotonic() - began), flush=True)
"""
# Each line of standard input is one act; the answer is its seconds.
_TABLE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from menagerie_traffic.plan import planned
from menagerie_traffic.table import Table
given = {"interfaces": ["cni0"], "ceph_ports": ["3300", "6789", "6800-7568"]}
table = Table(planned({**given, "classes": json.loads(sys.argv[2])}))
pods = {f"10.200.1.{number + 2}": f"team-{number % 12}" for number in range(int(sys.argv[3]))}
acts = {
    "on": lambda: table.rebuild(pods),
    "off": table.remove,
    "confirm": lambda: table.change(list(pods), pods),
    "move": lambda: table.change(["10.200.1.9"], {"10.200.1.9": "team-x"}),
    "read": table.counters,
}
print("up", flush=True)
for line in sys.stdin:
    began = time.monotonic()
    acts[line.strip()]()
    print(time.monotonic() - began, flush=True)
"""


class CountersError(Exception):
    """Nothing could be measured here; the text says why."""


class Worker:
    """A program on the node or with others, which answers lines with numbers."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._line() != "up":
            raise CountersError(f"{command[:4]} did not start")

    def ask(self, line: str) -> float:
        assert self._process.stdin
        print(line, file=self._process.stdin, flush=True)
        return self.hear()

    def hear(self) -> float:
        return float(self._line())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


def measure(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Measure throughput with and without the table, its transactions, and the program's CPU."""
    if os.geteuid():
        raise CountersError("only root may make network namespaces; run it with sudo")
    figures: list[Figure] = []
    with _node() as (node, table):
        for name, segments in (("large packets", 65535), ("packets of one segment", 1)):
            _segments(node, segments)
            without, with_ = _in_turns(node, table, rounds)
            say(f"{name}: {sorted(without)[rounds // 2] / 1e9 * 8:.2f} Gbit/s without counters")
            figures += [
                Figure(f"pod to pod, {name}, without counters", "Gbit/s", tuple(8 * each / 1e9 for each in without)),
                Figure(f"pod to pod, {name}, without ÷ with counters", "", ratios(without, with_), COST_AIM),
            ]
        table.ask("on")
        for act, meaning in (("move", "an address moves"), ("confirm", "all are confirmed"), ("read", "all are read")):
            table.ask("on")
            values = tuple(table.ask(act) * 1000 for _ in range(rounds if act != "move" else 1))
            figures.append(Figure(f"{PODS} pods: {meaning}", "ms", values))
        table.ask("off")
        figures.append(Figure(f"{PODS} idle pods: CPU of the program", "%", (_idle(node) * 100,)))
    return figures


@contextmanager
def _node() -> Iterator[tuple[Space, Worker]]:
    node = Space()
    try:
        node.pod(OWN_POD)
        table = Worker(
            node.command(sys.executable, "-c", _TABLE, str(_PROGRAM), json.dumps(CLASSES), str(PODS), at=HOST)
        )
        try:
            yield node, table
        finally:
            table.close()
    finally:
        node.close()


def _segments(node: Space, most: int) -> None:
    """Set the most segments that the pod's card may take as one packet."""
    spaces.run(*node.command("ip", "link", "set", "eth0", "gso_max_segs", str(most), at=OWN_POD))


def _in_turns(node: Space, table: Worker, rounds: int) -> tuple[list[float], list[float]]:
    """Return bytes per second without and with the table. Each round measures both, the second one first every other time."""
    speeds: dict[str, list[float]] = {"off": [], "on": []}
    taking = Worker(node.command(sys.executable, "-c", _TAKE, PEERS["pod"], str(_PORT), at=PEERS["pod"]))
    send = node.command(sys.executable, "-c", _SEND, PEERS["pod"], str(_PORT), str(SECONDS), at=OWN_POD)
    try:
        for number in range(rounds + 1):
            for state in ("off", "on") if number % 2 else ("on", "off"):
                table.ask(state)
                subprocess.run(send, check=True)
                speed = taking.hear()
                # The first round fills caches.
                speeds[state] += [speed] if number else []
    finally:
        taking.close()
    return speeds["off"], speeds["on"]


def _idle(node: Space) -> float:
    """Return the share of a CPU that the program takes while it follows pods that do nothing."""
    sys.path.insert(0, str(_PROGRAM))
    names, api = import_module("tests.traffic.node"), import_module("menagerie_traffic.api")
    with tempfile.TemporaryDirectory() as folder:
        files = names.Node(Path(folder))
        pods = [api.Pod(f"u-{number}", f"team-{number % 12}", f"p-{number}", False) for number in range(PODS)]
        for number, pod in enumerate(pods):
            files.start(pod, f"10.200.1.{number + 2}")
        settings = Path(folder) / "settings.json"
        settings.write_text(json.dumps({**files.settings(CLASSES), "every_s": 10}))
        settings.with_name("pods.json").write_text(json.dumps(pods))
        with spaces.agent(node, settings) as process:
            time.sleep(3)
            before = _cpu_s(process.pid)
            time.sleep(IDLE_S)
            return (_cpu_s(process.pid) - before) / IDLE_S


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(
    rounds: Annotated[int, typer.Option(min=3, help="Pairs of measurements.")] = ROUNDS, as_json: alone.JsonOpt = False
) -> None:
    """Measure the cost of counting. Nothing else should run."""
    alone.run(lambda say: measure(say, rounds), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, CountersError)
