"""Nodes without machines, simulated by kwok, and pods that are bound to them at creation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from tests.bench import load
from tests.bench.calls import Api, Login
from tests.bench.load import NAMESPACE, Call
from tests.bench.loopback import Loopback, LoopbackError, started
from tests.bench.loopback_files import NODES
from tools import build

STAGES = Path(__file__).with_name("stages.yaml")
LEASE_S = 120
"""As with kubelets, a lease has time for four renewals: one every 30 s, where a kubelet's 40 s mean one every 10 s. It can't
be much longer: the controller manager, with unchanged settings, considers a node lost after 50 s."""
CLIENTS, CONNECTIONS = 2, 8
PATIENCE_S = 900.0


def name(number: int) -> str:
    """Return the name of a node."""
    return f"gpu-{number:05}"


@contextmanager
def kwok(plane: Loopback) -> Iterator[None]:
    """Simulate a kubelet for every node in the API, all as one user in the group of nodes, over one connection."""
    program = build.ensure(["kwok"])["kwok"]
    command = [
        str(program), "--manage-all-nodes", f"--config={STAGES}", f"--kubeconfig={plane.kubeconfig(NODES.name)}",
        f"--node-lease-duration-seconds={LEASE_S}", "--cidr=10.64.0.0/10", "--node-ip=", "--node-port=0",
    ]  # fmt: skip
    with started(command, plane.folder / "kwok.log") as process:
        time.sleep(1.0)
        if process.poll() is not None:
            raise LoopbackError(f"kwok exited:\n{(plane.folder / 'kwok.log').read_text()[-2000:]}")
        yield


def node(number: int) -> Call:
    body = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name(number),
            "labels": {
                "kubernetes.io/hostname": name(number),
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "openai.org/gpu": "h100",
            },
        },
    }
    return "POST", "/api/v1/nodes", body, "application/json"


def pod(number: int, each: int) -> Call:
    """Return the call that creates the `each`th pod of a node. The scheduler is bypassed."""
    container = {
        "name": "trainer",
        "image": "registry.invalid/trainer:1",
        "resources": {"limits": {"cpu": "8", "memory": "64Gi"}},
        "env": [{"name": "RANK", "value": str(each)}],
    }
    body = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": f"{name(number)}-{each}", "labels": {"job": f"job-{number // 16}"}},
        "spec": {"nodeName": name(number), "containers": [container]},
    }
    return "POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body, "application/json"


def make(pool: Executor, login: Login, calls: Sequence[Call]) -> None:
    """Make all calls, by several clients. LoopbackError if one is refused."""
    shares = [pool.submit(load.as_fast, login, calls[client::CLIENTS], CONNECTIONS) for client in range(CLIENTS)]
    answers = sum((share.result() for share in shares), Counter[str]())
    if wrong := {status: count for status, count in answers.items() if status != "201"}:
        raise LoopbackError(f"{sum(wrong.values())} of {len(calls)} objects could not be created: {next(iter(wrong))}")


def unsettled_nodes(api: Api) -> int:
    """Return the number of nodes that aren't Ready, are tainted or have no pod range yet."""
    items = api.get("/api/v1/nodes?resourceVersion=0")["items"]
    return sum(not _is_settled(item) for item in items)


def _is_settled(item: dict[str, dict[str, object]]) -> bool:
    conditions: list[dict[str, str]] = item["status"].get("conditions", [])  # type: ignore[assignment]
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "podCIDR" in item["spec"] and not item["spec"].get("taints")


def pending_pods(api: Api) -> int:
    """Return 1 while any pod is Pending, else 0."""
    return len(api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?fieldSelector=status.phase=Pending&limit=1")["items"])


def until_none(api: Api, left: Callable[[Api], int], pause_s: float) -> None:
    """Wait until `left` returns 0. LoopbackError after PATIENCE_S.

    A list of thousands of nodes takes the API server a second or two, so polling uses at most a tenth of the time.
    """
    began = start_of_poll = time.monotonic()
    while count := left(api):
        now = time.monotonic()
        if now - began > PATIENCE_S:
            raise LoopbackError(f"{left.__name__} after {PATIENCE_S:.0f} s: {count}")
        time.sleep(max(pause_s, 9 * (now - start_of_poll)))
        start_of_poll = time.monotonic()
