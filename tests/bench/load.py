"""Load on an API server by processes of its own: as much as goes, or so much a second whatever the answers take."""

from __future__ import annotations

import ctypes
import http.client
import itertools
import math
import multiprocessing
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.calls import MERGE, Api, Login

Call = tuple[str, str, Any, str]
"""Method, path, body, content type."""
NAMESPACE = "default"
NICENESS = 10
"""Of clients that load: in a cluster they are on other machines."""
_MESSAGE = "Back-off restarting failed container trainer in pod; " * 8


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes for clients, all started at once: before there are threads, which a fork would not copy. They end with this one,
    however it ends."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, context, _ends_with_its_parent) as pool:
        list(pool.map(abs, range(count)))
        yield pool


def _ends_with_its_parent() -> None:
    # PR_SET_PDEATHSIG, prctl(2).
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@dataclass(frozen=True)
class Timed:
    """seconds: of each call that was answered, in the order in which they were due. failed: of the others, by what was said."""

    seconds: tuple[float, ...]
    failed: Counter[str]

    @property
    def refused(self) -> int:
        return sum(self.failed.values())

    def percentile(self, share: float) -> float:
        """Nearest rank. ValueError when nothing was answered."""
        if not self.seconds:
            raise ValueError(f"no call was answered: {dict(self.failed)}")
        return sorted(self.seconds)[math.ceil(share * len(self.seconds)) - 1]


def as_fast(login: Login, calls: Iterable[Call], connections: int, seconds: float = math.inf) -> Counter[str]:
    """Make calls one after the other on each connection, for so long or until there are none. Answers by status."""
    source, lock, until = iter(calls), threading.Lock(), time.monotonic() + seconds

    def following() -> Call | None:
        with lock:
            return next(source, None) if time.monotonic() < until else None

    def one() -> Counter[str]:
        answers: Counter[str] = Counter()
        with Api(login) as api:
            while call := following():
                answers[outcome(api, call)[0]] += 1
        return answers

    with ThreadPoolExecutor(connections) as pool:
        return sum((each.result() for each in [pool.submit(one) for _ in range(connections)]), Counter())


def at_rate(login: Login, calls: Sequence[Call], rate: float, connections: int) -> Timed:
    """Make each call when it is due, `rate` a second. A call's clock runs from then on, also while all connections wait."""
    start = time.monotonic()
    due = itertools.count()
    lock = threading.Lock()
    seconds: list[tuple[int, float]] = []
    failed: Counter[str] = Counter()

    def one() -> None:
        with Api(login) as api:
            while True:
                with lock:
                    number = next(due)
                if number >= len(calls):
                    return
                at = start + number / rate
                time.sleep(max(0.0, at - time.monotonic()))
                said, well = outcome(api, calls[number])
                with lock:
                    if well:
                        seconds.append((number, time.monotonic() - at))
                    else:
                        failed[said] += 1

    with ThreadPoolExecutor(connections) as pool:
        for each in [pool.submit(one) for _ in range(connections)]:
            each.result()
    return Timed(tuple(took for _, took in sorted(seconds)), failed)


def outcome(api: Api, call: Call) -> tuple[str, bool]:
    """(status, or what was wrong with the connection; whether it was well)."""
    method, path, body, kind = call
    try:
        status, said = api.call(method, path, body, kind)
    except OSError as error:
        return type(error).__name__, False
    well = status < http.client.BAD_REQUEST
    return (str(status) if well else f"{status} {said[:200].decode(errors='replace')}"), well


def events(tag: str, filler: int = 0) -> Iterator[Call]:
    """Events without end, each of another pod: admission lets one object have few. filler: bytes that each is longer."""
    for number in itertools.count():
        name = f"{tag}-{number}"
        pod = {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": name}
        note = {"annotations": {"filler": "x" * filler}} if filler else {}
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE, **note},
            "involvedObject": pod,
            "reason": "BackOff",
            "message": _MESSAGE,
            "type": "Warning",
            "count": 1,
            "source": {"component": "kubelet", "host": name},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        yield "POST", f"/api/v1/namespaces/{NAMESPACE}/events", body, "application/json"


def ordinary(tag: str, count: int, leases: Sequence[str]) -> list[Call]:
    """Writes that a cluster always has: in turns a ConfigMap made and a node's Lease renewed."""
    now = datetime.now(UTC)
    return [
        _renewal(leases[n // 2 % len(leases)], now + timedelta(microseconds=n)) if n % 2 else config_map(f"{tag}-{n}")
        for n in range(count)
    ]


def lease(name: str) -> Call:
    """Makes the Lease of a node."""
    body = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    return "POST", path, body, "application/json"


def _renewal(name: str, at: datetime) -> Call:
    # Not twice the same: the API server writes nothing where nothing changes.
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
    return "PATCH", path, {"spec": {"renewTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}, MERGE


def config_map(name: str) -> Call:
    """Makes a small ConfigMap."""
    body = {"metadata": {"name": name}, "data": {"config": "learning_rate: 0.1\n" * 20}}
    return "POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body, "application/json"


def bind(login: Login, users: Iterable[str]) -> None:
    """Let users do everything. OSError where the API refuses."""
    subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"} for user in users]
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": "bench"}, "subjects": subjects, "roleRef": role}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    with Api(login) as api:
        said, well = outcome(api, ("POST", path, body, "application/json"))
    if not well:
        raise ConnectionError(f"POST {path}: {said}")
