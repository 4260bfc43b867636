"""Nodes that no machine stands behind, by kwok, and pods that are bound to them when they are made."""

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
"""Four renewals in it, as with kubelets: one in 30 s, where a kubelet's 40 s make one in 10 s. The controller manager, whose
settings are left alone, takes a node for lost after 50 s, so much longer would not do."""
CLIENTS, CONNECTIONS = 2, 8
PATIENCE_S = 900.0


def name(number: int) -> str:
    """Of a node."""
    return f"gpu-{number:05}"


@contextmanager
def kwok(plane: Loopback) -> Iterator[None]:
    """Every node and pod of the API acts as if a kubelet were there, all in the group of nodes and by one connection."""
    program = build.ensure(["kwok"])["kwok"]
    command = [
        str(program), "--manage-all-nodes", f"--config={STAGES}", f"--kubeconfig={plane.kubeconfig(NODES.name)}",
        f"--node-lease-duration-seconds={LEASE_S}", "--cidr=10.64.0.0/10", "--node-ip=", "--node-port=0",
    ]  # fmt: skip
    with started(command, plane.folder / "kwok.log") as process:
        time.sleep(1.0)
        if process.poll() is not None:
            raise LoopbackError(f"kwok ended:\n{(plane.folder / 'kwok.log').read_text()[-2000:]}")
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
    """The `each`th pod of a node. The scheduler is not asked."""
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
    """All of them, by several clients. LoopbackError where one is refused."""
    shares = [pool.submit(load.as_fast, login, calls[client::CLIENTS], CONNECTIONS) for client in range(CLIENTS)]
    answers = sum((share.result() for share in shares), Counter[str]())
    if wrong := {said: count for said, count in answers.items() if said != "201"}:
        raise LoopbackError(f"{sum(wrong.values())} of {len(calls)} objects could not be made: {next(iter(wrong))}")


def unsettled_nodes(api: Api) -> int:
    """Nodes that aren't Ready, are tainted or have no range of pods yet."""
    items = api.get("/api/v1/nodes?resourceVersion=0")["items"]
    return sum(not _is_settled(item) for item in items)


def _is_settled(item: dict[str, dict[str, object]]) -> bool:
    conditions: list[dict[str, str]] = item["status"].get("conditions", [])  # type: ignore[assignment]
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "podCIDR" in item["spec"] and not item["spec"].get("taints")


def pending_pods(api: Api) -> int:
    """1 while pods are Pending, else 0."""
    return len(api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?fieldSelector=status.phase=Pending&limit=1")["items"])


def until_none(api: Api, left: Callable[[Api], int], pause_s: float) -> None:
    """Wait until nothing is left. LoopbackError after too long.

    A list of thousands of nodes costs the API server a second or two: looking takes a tenth of the time at most.
    """
    began = asked = time.monotonic()
    while count := left(api):
        looked = time.monotonic()
        if looked - began > PATIENCE_S:
            raise LoopbackError(f"{left.__name__} after {PATIENCE_S:.0f} s: {count}")
        time.sleep(max(pause_s, 9 * (looked - asked)))
        asked = time.monotonic()
