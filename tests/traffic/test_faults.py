"""menagerie-traffic as a process on a real kernel: two namespaces at once, addresses used again, a kill, a flushed table."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from menagerie_traffic import layout, totals
from menagerie_traffic.api import Pod
from menagerie_traffic.table import Count

from tests.traffic.node import Node
from tests.traffic.space import CLASSES, OWN_POD, PEERS, SERVICE_POD, Space, agent
from tests.waiting import until

A, B = OWN_POD, SERVICE_POD
POD_A, POD_B = Pod("u-a", "team-a", "a", False), Pod("u-b", "team-b", "b", False)
PORT, SIZE = 7100, 1000
PACKET = SIZE + 28
EVERY_S = 0.002


@pytest.fixture(scope="module")
def space() -> Iterator[Space]:
    if os.geteuid() != 0 or not shutil.which("nft"):
        pytest.skip("only root may make networks, with nft")
    made = Space()
    try:
        for address in (A, B):
            made.pod(address)
        yield made
    finally:
        made.close()


class Running:
    """The program on the node. `start` after `kill` is what systemd does."""

    def __init__(self, space: Space, folder: Path, stack: ExitStack) -> None:
        self.space, self.node, self._stack = space, Node(folder), stack
        self.settings = folder / "settings.json"
        self.settings.write_text(json.dumps(self.node.settings(CLASSES)))
        self.known: list[Pod] = []
        self.knows()

    def knows(self, *pods: Pod) -> None:
        """Let the API list these pods."""
        path = self.settings.with_name("pods.json")
        path.with_suffix(".new").write_text(json.dumps(pods))
        path.with_suffix(".new").replace(path)

    def start(self) -> None:
        self.node.metrics.unlink(missing_ok=True)
        self.process: subprocess.Popen[str] = self._stack.enter_context(agent(self.space, self.settings))
        until(self.node.metrics.exists, "the program does not start", 20)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def runs(self, pod: Pod, address: str) -> None:
        """Start a pod that the API knows, and wait until its address is its own."""
        self.knows(pod, *self.known)
        self.known.append(pod)
        self.node.start(pod, address)
        until(lambda: self.mapped().get(address) == pod.namespace, "the pod was never attributed", 20, 0.02)

    def mapped(self) -> dict[str, str]:
        """Return address -> namespace, from what the program keeps."""
        return {address: each.namespace for address, each in totals.read(str(self.node.totals)).held.items()}

    def total(self, name: str) -> Count:
        """Return a total when it no longer grows."""
        before = None
        while (now := totals.read(str(self.node.totals)).totals.get(name, Count(0, 0))) != before:
            before = now
            time.sleep(1.5)
        return now


@pytest.fixture
def running(space: Space, tmp_path: Path) -> Iterator[Running]:
    with ExitStack() as stack:
        made = Running(space, tmp_path, stack)
        made.start()
        try:
            yield made
        finally:
            made.kill()
            space.nft(f"table ip {layout.TABLE}; delete table ip {layout.TABLE};")


@contextmanager
def sending(space: Space, source: str, target: str) -> Iterator[Callable[[], int]]:
    """Send a datagram every 2 ms for a block. Yields a function that returns how many were sent."""
    sent, over = 0, threading.Event()
    with space.udp(target, PORT), space.udp(source) as client:

        def send() -> None:
            nonlocal sent
            while not over.wait(EVERY_S):
                client.sendto(b"x" * SIZE, (target, PORT))
                sent += 1

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield lambda: sent
        finally:
            over.set()
            thread.join()


def of(times: int) -> Count:
    return Count(times * PACKET, times)


def test_two_namespaces_at_once_get_what_each_of_them_sent(running: Running, space: Space) -> None:
    running.runs(POD_A, A)
    running.runs(POD_B, B)
    amounts = {A: 30_000_000, B: 50_000_000}
    listener = space.inside(PEERS["internet"], lambda: socket.create_server((PEERS["internet"], PORT)))

    def send(address: str) -> None:
        with space.inside(address, lambda: socket.create_connection(listener.getsockname())) as client:
            client.sendall(bytes(amounts[address]))

    def take(end: socket.socket) -> None:
        with end:
            while end.recv(1 << 20):
                pass

    with listener:
        senders = [threading.Thread(target=send, args=(address,)) for address in amounts]
        for thread in senders:
            thread.start()
        takers = [threading.Thread(target=take, args=(listener.accept()[0],)) for _ in amounts]
        for thread in takers:
            thread.start()
        for thread in (*senders, *takers):
            thread.join()
    for address, namespace in ((A, "team-a"), (B, "team-b")):
        count = running.total(f"out/internet/{namespace}")
        assert abs(count.bytes - 52 * count.packets - amounts[address]) <= amounts[address] / 1000
        assert running.total(f"in/internet/{namespace}").packets > 0
    assert (
        "out/internet" not in totals.read(str(running.node.totals)).totals or not running.total("out/internet").packets
    )


def test_an_address_that_is_used_again_never_counts_for_its_former_pod(running: Running, space: Space) -> None:
    """The packets do not stop: they change owner when the pod ends, and when the API knows the next one."""
    running.runs(POD_A, A)
    with sending(space, A, PEERS["site"]) as sent:
        time.sleep(0.5)
        running.node.end(A)
        until(lambda: A not in running.mapped(), "the former pod keeps its address", 10, 0.01)
        ended = sent()
        new = Pod("u-new", "team-b", "new", False)
        running.node.start(new, A)
        time.sleep(0.5)
        assert A not in running.mapped()
        known = sent()
        running.knows(new)
        until(lambda: running.mapped().get(A) == "team-b", "the new pod never gets its address", 10, 0.01)
        time.sleep(0.5)
    former, nobody, latter = (
        running.total(name).packets for name in ("out/site/team-a", "out/site", "out/site/team-b")
    )
    assert former + nobody + latter == sent()
    assert former <= ended
    assert nobody >= known - ended
    assert latter > 0


def test_a_killed_program_loses_nothing_and_goes_on(running: Running, space: Space) -> None:
    running.runs(POD_A, A)
    with sending(space, A, PEERS["site"]) as sent:
        time.sleep(0.5)
        for _ in range(3):
            running.kill()
            time.sleep(0.3)
            running.start()
            time.sleep(0.3)
    assert running.total("out/site/team-a") == of(sent())
    assert running.total("out/site") == Count(0, 0)
    assert totals.read(str(running.node.totals)).resets == 0


def test_a_pod_that_ended_while_the_program_was_dead_leaves_its_address_to_nobody(
    running: Running, space: Space
) -> None:
    running.runs(POD_A, A)
    running.kill()
    running.node.end(A)
    running.node.start(Pod("u-new", "team-b", "new", False), A)
    running.start()
    with sending(space, A, PEERS["site"]) as sent:
        time.sleep(0.3)
    assert running.total("out/site") == of(sent())
    assert running.total("out/site/team-a") == Count(0, 0)


@pytest.mark.parametrize("how", ["flush ruleset", f"flush table ip {layout.TABLE}", f"delete table ip {layout.TABLE}"])
def test_a_flushed_table_comes_back_within_a_second_and_totals_never_go_backwards(
    running: Running, space: Space, how: str
) -> None:
    running.runs(POD_A, A)
    rules = space.rules("list", "table", "ip", "nat")
    name, readings = "out/pod/team-a", []
    with sending(space, A, PEERS["pod"]) as sent:
        for _ in range(3):
            time.sleep(1.2)
            space.rules(*how.split())
            readings.append(totals.read(str(running.node.totals)).totals.get(name, Count(0, 0)).bytes)
        time.sleep(1.5)
        started = sent()
        began = totals.read(str(running.node.totals)).totals["out/pod/team-a"].packets
        time.sleep(2.5)
    final = running.total("out/pod/team-a").packets
    if how == "flush ruleset":
        space.nft(rules)
    assert readings == sorted(readings)
    # At most a second of each flush is missing (1 s of looking, and the time that the machine takes).
    assert sent() - final <= 3 * 1.5 / EVERY_S
    assert final - began >= (sent() - started) * 0.99
    assert totals.read(str(running.node.totals)).resets == (0 if how.startswith("flush table") else 3)
