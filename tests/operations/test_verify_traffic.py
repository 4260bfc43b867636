"""The proof that bytes are counted, with a host and pods that only answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from clients.remote.executor import Done
from cluster.spec import Cluster
from operations.verify import traffic
from operations.verify.proof import Context, FailedProofError
from operations.verify.traffic import HEADERS, SENT
from operations.verify.workload import Pod
from tests.operations.conftest import FakeAccess, outputs

PACKETS = 400


class Workload:
    """Two pods. got: what the second one fetched. resent: segments so far, at each look."""

    namespace = "menagerie-verify-x"

    def __init__(self, cluster: Cluster) -> None:
        names = [host.name for _, host in cluster.host_list()]
        self._pods = {name: Pod(f"probe-{name}", name, f"10.200.{n}.2") for n, name in enumerate(names)}
        self.got, self.resent, self.commands = str(SENT), [7, 7], []

    def pods(self) -> dict[str, Pod]:
        return self._pods

    def run(self, pod: Pod, *argv: str) -> str:
        self.commands.append((pod.node, argv[-1]))
        if argv[0] == "grep":
            return f"Tcp: RtoMin RetransSegs\nTcp: 200 {self.resent.pop(0)}\n"
        return f"{self.got}\n" if "wget" in argv[-1] else ""


class Host:
    """Answers of `menagerie-traffic show --json`, in order."""

    def __init__(self, *answers: Done) -> None:
        self.answers = list(answers)

    def start(self, host: str, words: Sequence[str]) -> Any:
        assert (host, list(words)) == ("worker-1", [traffic.PROGRAM, "show", "--json"])
        self.answer = self.answers.pop(0)
        return self

    def wait(self, timeout_s: float) -> Done:
        assert timeout_s > 0
        return self.answer


def said(bytes_: int, packets: int) -> Done:
    row = {"namespace": Workload.namespace, "direction": "out", "class": "pod", "bytes": bytes_, "packets": packets}
    others = [{**row, "namespace": None}, {**row, "class": "site"}, {**row, "direction": "in"}]
    return Done(0, json.dumps({"counters": [*others, row], "resets": 0}) + "\n")


@pytest.fixture
def prove(lab: Cluster, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs the proof: the counters before, those after, then what differs of the pods."""
    monkeypatch.setattr(traffic, "_SETTLES_S", 0)

    def run(*answers: Done, **pods: Any) -> str:
        @contextmanager
        def ssh(*_: object) -> Iterator[Host]:
            yield Host(*answers)

        monkeypatch.setattr(traffic, "ssh_to", ssh)
        workload: Any = Workload(lab)
        vars(workload).update(pods)
        access: Any = FakeAccess(outputs())
        return traffic.bytes_are_counted(Context(lab, access, access.api(), lambda: workload, None, lambda _: None))

    return run


def after(error: int = 0) -> Done:
    return said(5_000 + SENT + HEADERS * PACKETS + error, 10 + PACKETS)


def test_counters_that_grew_by_what_was_sent_prove_it(prove) -> None:
    text = prove(said(5_000, 10), after(200))
    assert text == "worker-1 counted 20,000,200 bytes in 400 packets of a pod that sent 20,000,000 to worker-2: +0.001%"


@pytest.mark.parametrize("error", [-SENT // 900, SENT // 900])
def test_a_difference_above_the_tolerance_fails_the_proof(prove, error: int) -> None:
    with pytest.raises(FailedProofError, match=r"worker-1 counted .*: [+-]0\.111%"):
        prove(said(5_000, 10), after(error))


def test_what_was_sent_twice_may_be_counted_twice_but_nothing_may_be_missing(prove) -> None:
    assert "9 segments were sent twice" in prove(said(5_000, 10), after(SENT // 900), resent=[7, 16])
    with pytest.raises(FailedProofError):
        prove(said(5_000, 10), after(-SENT // 900), resent=[7, 16])


def test_a_pod_that_got_less_fails_the_proof(prove) -> None:
    with pytest.raises(FailedProofError, match="the pod on worker-2 got '17' of 20000000 bytes"):
        prove(said(0, 0), got="17")


@pytest.mark.parametrize(
    "answer", [Done(127, "bash: menagerie-traffic: command not found"), Done(0, "{}"), Done(0, "")]
)
def test_a_host_without_counters_is_named(prove, answer: Done) -> None:
    with pytest.raises(FailedProofError, match="worker-1 has no counters"):
        prove(answer)


def test_a_cluster_without_a_machine_at_a_site_lacks_what_it_needs(lab: Cluster) -> None:
    nowhere = Cluster(spec=lab.spec, hosts={})
    context: Any = SimpleNamespace(nodes={"a": "", "b": ""}, cluster=nowhere)
    assert "needs a machine at a site" in traffic.lacks_a_host(context)
    context.cluster = lab
    assert traffic.lacks_a_host(context) == ""
    context.nodes = {"a": ""}
    assert "needs two nodes" in traffic.lacks_a_host(context)
