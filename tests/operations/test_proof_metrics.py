"""The proof of metrics: how a pod's use by the API is compared with what its own control group says."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.spec import Cluster
from operations.verify import metrics
from operations.verify.proof import Context, FailedProofError
from operations.verify.usage import SCRIPT, Sample, Usage, own_usage, samples
from tests.operations.conftest import FakeAccess, FakeServer, outputs

MIB = 2**20
AT = 1_764_230_400  # 2025-11-27T08:00:00Z


def thing(ends: int, cpu: str, memory: str = "50Mi", window: str = "15s") -> dict[str, Any]:
    """A PodMetrics; ends: seconds after `AT`."""
    stamp = f"2025-11-27T08:{ends // 60:02}:{ends % 60:02}Z"
    return {"timestamp": stamp, "window": window, "containers": [{"usage": {"cpu": cpu, "memory": memory}}]}


def steady(cores: float, memory: float = 50 * MIB, seconds: int = 200) -> str:
    """The log of a pod that uses as much all the time."""
    lines = (f"{AT + second} {int(second * cores * 1e6)} {int(memory)}" for second in range(seconds))
    return "\n".join(["started", *lines, "12"])


@pytest.mark.parametrize(("window", "seconds"), [("15s", 15), ("14.996s", 14.996), ("1m0.5s", 60.5), ("900ms", 0.9)])
def test_a_use_has_the_window_that_go_writes(window: str, seconds: float) -> None:
    usage = Usage.of(thing(60, "201337468n", "51204Ki", window))
    assert usage.window_s == pytest.approx(seconds)
    assert (usage.ends, usage.memory) == (AT + 60.5, 51204 * 1024)
    assert usage.cpu == pytest.approx(0.201337468)


def test_the_cgroups_use_is_that_of_the_same_window() -> None:
    taken = [Sample(0, 0, 1), Sample(10, 1, 2), Sample(20, 9, 3)]
    assert own_usage(taken, Usage(15, 10, 0, 0)) == (pytest.approx((5 - 0.5) / 10), 3)


@pytest.mark.parametrize("usage", [Usage(25, 10, 0, 0), Usage(5, 10, 0, 0)], ids=["later", "earlier"])
def test_a_window_without_samples_is_not_compared(usage: Usage) -> None:
    assert own_usage([Sample(0, 0, 1), Sample(10, 1, 2), Sample(20, 9, 3)], usage) is None


def test_lines_that_are_no_samples_are_left_out() -> None:
    assert samples("dd: 48+0\n1 2000000 3\n4 5\n") == [Sample(1.5, 2.0, 3.0)]


@pytest.mark.parametrize(
    "files",
    [
        {
            "cpu.stat": "usage_usec 1234567\nuser_usec 3\n",
            "memory.current": "5000\n",
            "memory.stat": "anon 3\ninactive_file 1000\nactive_file 7\n",
        },
        {
            "cpuacct/cpuacct.usage": "1234567890\n",
            "memory/memory.usage_in_bytes": "5000\n",
            "memory/memory.stat": "inactive_file 9\ntotal_inactive_file 1000\n",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_a_pod_reads_its_control_group_in_either_version(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    once = SCRIPT.partition("&\n")[2].replace("/sys/fs/cgroup", str(tmp_path)).replace("sleep 1", "exit")
    done = subprocess.run(["sh", "-c", once], capture_output=True, text=True, check=True, timeout=10)
    (sample,) = samples(done.stdout)
    assert (sample.cpu_s, sample.memory) == (1.234567, 4000)
    assert abs(sample.at - time.time()) < 60


class Pods:
    """The part of a workload that the comparison needs. uses: answers of the metrics API, one after another."""

    def __init__(self, server: FakeServer, log: str, uses: list[dict[str, Any]]) -> None:
        self.namespace, self.core, self._log, self._server, self._uses = "v", self, log, server, uses
        self._path = "/apis/metrics.k8s.io/v1beta1/namespaces/v/pods/busy-1"
        self.move()

    def move(self) -> None:
        self._server.answers[self._path] = self._uses.pop(0) if len(self._uses) > 1 else self._uses[0]

    def read_namespaced_pod_log(self, *_: object, **__: object) -> str:
        return self._log


def compared(server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch, log: str, *uses: dict[str, Any]) -> str:
    pods: Any = Pods(server, log, list(uses))

    def wait(missing: Any, timeout_s: float, report: Any, every_s: float) -> None:
        for _ in range(len(uses) + 1):
            if not missing():
                return
            pods.move()
        raise AssertionError("no window")

    monkeypatch.setattr(metrics, "wait_until", wait)
    access: Any = FakeAccess(outputs(), server.url)
    context = Context(lab, access, access.api(), lambda: pods, None, lambda _: None)
    return metrics._compared(context, metrics.Rest(context.api), "busy-1")


def test_equal_uses_are_proved(server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    text = compared(server, lab, monkeypatch, steady(0.2), thing(60, "201m"))
    assert text == "201m and 50.0 MiB in metrics, 200m and 50.0 MiB in its cgroup"


def test_a_window_that_differs_is_followed_by_two_more(
    server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = compared(server, lab, monkeypatch, steady(0.2), thing(60, "150m"), thing(75, "150m"), thing(90, "219m"))
    assert text.startswith("219m")


@pytest.mark.parametrize(("cpu", "memory"), [("223m", "50Mi"), ("177m", "50Mi"), ("200m", "56Mi"), ("200m", "44Mi")])
def test_three_windows_that_differ_by_more_than_a_tenth_fail(
    server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch, cpu: str, memory: str
) -> None:
    uses = [thing(ends, cpu, memory) for ends in (60, 75, 90)]
    with pytest.raises(FailedProofError, match=r"busy-1 differs by more than 10% in 3 windows: .*; .*; "):
        compared(server, lab, monkeypatch, steady(0.2), *uses)


def test_an_api_without_metrics_says_why(server: FakeServer) -> None:
    rest = metrics.Rest(client.ApiClient(client.Configuration(host=server.url)))
    assert metrics._silent(rest) == "no metrics of nodes (ApiStatusError)"
    server.answers["/apis/metrics.k8s.io/v1beta1/nodes"] = {"items": []}
    assert metrics._silent(rest) == "no node has metrics"
    server.answers["/apis/metrics.k8s.io/v1beta1/nodes"] = {"items": [{}]}
    assert metrics._silent(rest) == ""


class Killed:
    """A metrics-server whose killed pod is replaced by a Ready one after a number of looks."""

    def __init__(self, looks: int) -> None:
        self.deleted: list[str] = []
        self._looks = looks

    def pods(self, _: object) -> list[Any]:
        self._looks -= bool(self.deleted)
        names = ["a", "b"] if not self.deleted else ["b", *(["c"] if self._looks < 0 else [])]
        return [pod(name) for name in names]


def pod(name: str) -> Any:
    ready = SimpleNamespace(type="Ready", status="True")
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name, uid=f"uid-{name}"),
        status=SimpleNamespace(conditions=[ready], pod_ip="10.1.1.1"),
    )


@pytest.mark.parametrize(("takes_s", "proved"), [(20.0, True), (31.0, False)])
def test_a_killed_pod_must_be_replaced_within_half_a_minute(
    lab: Cluster, monkeypatch: pytest.MonkeyPatch, takes_s: float, *, proved: bool
) -> None:
    killed, clock = Killed(2), [0.0]

    class Core:
        def __init__(self, _: object) -> None: ...

        def delete_namespaced_pod(self, name: str, namespace: str, grace_period_seconds: int, **_: object) -> None:
            assert (namespace, grace_period_seconds) == ("kube-system", 0)
            killed.deleted.append(name)

    def wait(missing: Any, timeout_s: float, report: Any) -> None:
        while missing():
            clock[0] += takes_s / 2

    monkeypatch.setattr(metrics, "_pods", killed.pods)
    monkeypatch.setattr(metrics, "_silent", lambda _: "")
    monkeypatch.setattr(metrics, "wait_until", wait)
    monkeypatch.setattr(metrics.client, "CoreV1Api", Core)
    monkeypatch.setattr(metrics.time, "monotonic", lambda: clock[0])
    context: Any = SimpleNamespace(api=None, report=print)
    if proved:
        assert metrics._killed(context, None) == (0.0, takes_s)  # type: ignore[arg-type]
    else:
        with pytest.raises(FailedProofError, match="its pods Ready after 31 s, 30 s are allowed"):
            metrics._killed(context, None)  # type: ignore[arg-type]
    assert killed.deleted == ["a"]


def test_what_the_proof_makes_is_removed_although_it_fails(lab: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Api:
        def __init__(self, _: object = None) -> None: ...

        def __getattr__(self, name: str) -> Any:
            def call(*_: object, **__: object) -> Any:
                calls.append(name)
                if name == "delete_collection_namespaced_deployment":
                    raise ApiException(status=500)
                return SimpleNamespace(metadata=SimpleNamespace(name="busy-1"))

            return call

    for kind in ("AppsV1Api", "AutoscalingV2Api"):
        monkeypatch.setattr(metrics.client, kind, Api)
    workload: Any = SimpleNamespace(namespace="v", core=Api())
    context = Context(lab, None, None, lambda: workload, None, print)  # type: ignore[arg-type]
    context.__dict__["nodes"] = {"worker-1": "10.78.1.11", "lab-region-1": "10.77.0.130"}
    with pytest.raises(RuntimeError, match="stopped"), metrics._running(context) as pods:
        assert list(pods) == ["worker-1", "lab-region-1"]
        raise RuntimeError("stopped")
    assert {call for call in calls if call.startswith("delete")} == {
        "delete_collection_namespaced_horizontal_pod_autoscaler",
        "delete_collection_namespaced_deployment",
        "delete_collection_namespaced_pod",
    }
