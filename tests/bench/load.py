"""Load on an API server by separate processes: as fast as it answers, or at a fixed rate however long answers take."""

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
"""Niceness of clients that produce load: in a cluster they run on other machines."""
_MESSAGE = "Back-off restarting failed container trainer in pod; " * 8


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Provide processes for clients, all started now, before there are threads, which a fork would not copy.

    They end with this process, however it ends.
    """
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, context, _ends_with_its_parent) as pool:
        list(pool.map(abs, range(count)))
        yield pool


def _ends_with_its_parent() -> None:
    # PR_SET_PDEATHSIG, prctl(2).
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@dataclass(frozen=True)
class Timed:
    """Results of calls. seconds: of each answered call, in the order due. failed: number of the others, by answer."""

    seconds: tuple[float, ...]
    failed: Counter[str]

    @property
    def refused(self) -> int:
        return sum(self.failed.values())

    def percentile(self, share: float) -> float:
        """Return a percentile by nearest rank. ValueError if nothing was answered."""
        if not self.seconds:
            raise ValueError(f"no call was answered: {dict(self.failed)}")
        return sorted(self.seconds)[math.ceil(share * len(self.seconds)) - 1]


def as_fast(login: Login, calls: Iterable[Call], connections: int, seconds: float = math.inf) -> Counter[str]:
    """Make calls one after the other on each connection, until the time is up or none is left. Return answers by status."""
    source, lock, until = iter(calls), threading.Lock(), time.monotonic() + seconds

    def next_call() -> Call | None:
        with lock:
            return next(source, None) if time.monotonic() < until else None

    def work() -> Counter[str]:
        answers: Counter[str] = Counter()
        with Api(login) as api:
            while call := next_call():
                answers[outcome(api, call)[0]] += 1
        return answers

    with ThreadPoolExecutor(connections) as pool:
        return sum((each.result() for each in [pool.submit(work) for _ in range(connections)]), Counter())


def at_rate(login: Login, calls: Sequence[Call], rate: float, connections: int) -> Timed:
    """Make `rate` calls a second. A call's clock starts when it is due, even if all connections are busy then."""
    start = time.monotonic()
    numbers = itertools.count()
    lock = threading.Lock()
    seconds: list[tuple[int, float]] = []
    failed: Counter[str] = Counter()

    def work() -> None:
        with Api(login) as api:
            while True:
                with lock:
                    number = next(numbers)
                if number >= len(calls):
                    return
                due_at = start + number / rate
                time.sleep(max(0.0, due_at - time.monotonic()))
                answer, is_ok = outcome(api, calls[number])
                with lock:
                    if is_ok:
                        seconds.append((number, time.monotonic() - due_at))
                    else:
                        failed[answer] += 1

    with ThreadPoolExecutor(connections) as pool:
        for each in [pool.submit(work) for _ in range(connections)]:
            each.result()
    return Timed(tuple(took for _, took in sorted(seconds)), failed)


def outcome(api: Api, call: Call) -> tuple[str, bool]:
    """Make a call. Return (status or error, whether it succeeded)."""
    method, path, body, kind = call
    try:
        status, reply = api.call(method, path, body, kind)
    except OSError as error:
        return type(error).__name__, False
    is_ok = status < http.client.BAD_REQUEST
    return (str(status) if is_ok else f"{status} {reply[:200].decode(errors='replace')}"), is_ok


def events(tag: str, filler: int = 0) -> Iterator[Call]:
    """Yield Events without end, each of another pod: admission limits the Events of one object. filler: extra bytes."""
    for number in itertools.count():
        name = f"{tag}-{number}"
        pod = {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": name}
        annotations = {"annotations": {"filler": "x" * filler}} if filler else {}
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE, **annotations},
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
    """Return writes that every cluster has: alternately, create a ConfigMap and renew a node's Lease."""
    now = datetime.now(UTC)
    return [
        _renewal(leases[n // 2 % len(leases)], now + timedelta(microseconds=n)) if n % 2 else config_map(f"{tag}-{n}")
        for n in range(count)
    ]


def lease(name: str) -> Call:
    """Return the call that creates the Lease of a node."""
    body = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    return "POST", path, body, "application/json"


def _renewal(name: str, at: datetime) -> Call:
    # Each renewal differs: the API server writes nothing if nothing changes.
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
    return "PATCH", path, {"spec": {"renewTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}, MERGE


def config_map(name: str) -> Call:
    """Return the call that creates a small ConfigMap."""
    body = {"metadata": {"name": name}, "data": {"config": "learning_rate: 0.1\n" * 20}}
    return "POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body, "application/json"


def bind(login: Login, users: Iterable[str]) -> None:
    """Let users do everything. OSError if the API refuses."""
    subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"} for user in users]
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": "bench"}, "subjects": subjects, "roleRef": role}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    with Api(login) as api:
        answer, is_ok = outcome(api, ("POST", path, body, "application/json"))
    if not is_ok:
        raise ConnectionError(f"POST {path}: {answer}")
