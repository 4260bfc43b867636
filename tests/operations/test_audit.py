"""Gathering of evidence from an API and workers with prepared responses."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from clients.remote.executor import Done
from cluster.audit.decide import decided, results
from cluster.audit.evidence import Attempt, Kind, Report
from cluster.audit.model import Status
from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from operations import audit, trials
from tests.operations.conftest import FakeAccess, FakeServer, outputs
from tests.operations.real_cluster import Ended, World

REPORTS = "/api/v1/namespaces/menagerie-reports/configmaps"
REGION = {"pools": {"region": {"machine": "lab-small", "min": 1, "max": 1}}}


def document(kind: Kind, host: str, age_s: float = 0.0, **more: Any) -> str:
    empty = dict.fromkeys(("processes", "providers", "certificates", "listening", "addresses", "unreadable"), ())
    fields = {"format": 1, "kind": kind, "host": host, "taken": time.time() - age_s, **empty, **more}
    return json.dumps(fields | {"files": {}, "texts": {}, "versions": {}})


def configmap(host: str, text: str) -> dict[str, Any]:
    return {"metadata": {"name": f"host-report-{host}"}, "data": {"report.json": text}}


@dataclass
class Workers:
    """An executor. says: host -> the collector's output; other hosts are unreachable. tried: (host, tries)."""

    says: Mapping[str, str]
    tried: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)

    def start(self, host: str, words: Sequence[str]) -> Ended:
        if host not in self.says:
            return Ended(Done(255, f"ssh: connect to host {host}: No route to host"))
        if words[-1] == Kind.WORKER:
            return Ended(Done(0, f"a banner of the host\n{self.says[host]}\n"))
        asked = json.loads(words[-1])
        self.tried.append((host, asked))
        answers = ["open", *("401" if each["path"] else "silent" for each in asked[1:])]
        return Ended(Done(0, json.dumps(answers)))


@pytest.fixture(autouse=True)
def nothing_is_tried_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable attempts that are tested with real programs elsewhere."""
    for name in ("strangers_at_the_api", "strangers_at_etcds"):
        monkeypatch.setattr(trials, name, lambda _: iter(()))
    monkeypatch.setattr(
        trials, "strangers_at_services", lambda _, ports: (Attempt("M.27", str(port), True, "") for port in ports)
    )
    monkeypatch.setattr(
        trials, "secrets_at_rest", lambda _, keys: iter([Attempt("M.5", key, True, "") for key in keys])
    )


@pytest.fixture
def api(server: FakeServer) -> FakeServer:
    """An API with reports of two API servers, three nodes, and nothing else."""
    hosts = [configmap(name, document(Kind.API, name, addresses=("10.77.0.10", own))) for name, own in API_HOSTS]
    server.answers = {
        REPORTS: {"items": [*hosts, {"metadata": {"name": "kube-root-ca.crt"}, "data": {}}]},
        "/api/v1/nodes": {"items": [{"metadata": {"name": f"worker-{n}"}} for n in (1, 2, 3)]},
        "/api/v1/secrets": {
            "items": [
                {"metadata": {"name": "s", "namespace": "kube-system", "creationTimestamp": "2026-01-01T00:00:00Z"}}
            ]
        },
        "/api/v1/services": {
            "items": [{"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80, "nodePort": 30123}, {"port": 81}]}}]
        },
        **{f"/api/v1/nodes/worker-{n}/proxy/configz": {"kubeletconfig": {"readOnlyPort": 0}} for n in (1, 2)},
    }
    return server


API_HOSTS = (("api-1", "10.77.0.11"), ("api-2", "10.77.0.12"))
ALL = {f"worker-{n}": document(Kind.WORKER, "localhost") for n in (1, 2, 3)}


def gathered(cluster: Cluster, server: FakeServer, workers: Workers, **more: Any) -> Any:
    return audit.gather(cluster, FakeAccess(outputs(), server.url), workers, **more)  # type: ignore[arg-type]


def test_evidence_has_what_responds_and_the_reason_for_what_does_not(lab: Cluster, api: FakeServer) -> None:
    workers = Workers({name: ALL[name] for name in ("worker-1", "worker-3")})
    evidence = gathered(lab, api, workers)
    assert sorted((each.kind, each.host) for each in evidence.reports) == [
        ("api", "api-1"),
        ("api", "api-2"),
        ("worker", "worker-1"),
        ("worker", "worker-3"),
    ]
    unseen = {each.host: each.why for each in evidence.unseen}
    assert unseen.pop("worker-2") == "ssh: connect to host worker-2: No route to host"
    assert set(unseen) == {f"etcd-{role}-{n}" for role in ("main", "events") for n in (1, 2, 3)}
    assert evidence.kubelets["worker-1"] == {"readOnlyPort": 0}
    assert "404" in evidence.kubelets["worker-3"]
    assert "404" in evidence.objects["pods"]
    assert evidence.ports[Kind.API] == {6443, 8132}
    assert Attempt("M.5", "kube-system/s", True, "") in evidence.attempts
    assert Attempt("M.27", "30123", True, "") in evidence.attempts


def test_the_first_responding_worker_at_a_site_tries_what_must_be_closed(lab: Cluster, api: FakeServer) -> None:
    workers = Workers({name: ALL[name] for name in ("worker-2", "worker-3")})
    evidence = gathered(lab, api, workers)
    ((source, asked),) = workers.tried
    assert source == "worker-2"
    assert asked[0] == {"address": "10.77.0.10", "port": 6443, "path": ""}
    assert {each["address"] for each in asked if each["port"] == 8092} == {"10.77.0.11", "10.77.0.12"}
    verdicts = {result.control.id: result.status for result in results(evidence)}
    assert {verdicts[name] for name in ("M.8", "M.9", "M.10")} == {Status.PASS}


def test_without_a_responding_worker_nothing_counts_as_closed(lab: Cluster, api: FakeServer) -> None:
    by_id = {result.control.id: result for result in results(gathered(lab, api, Workers({})))}
    assert {by_id[name].status for name in ("M.8", "M.9", "M.10")} == {Status.NOT_SEEN}
    assert "no worker at a site responds" in by_id["M.8"].observed


def test_an_old_report_counts_as_missing_unless_there_are_enough_recent_ones(lab: Cluster, api: FakeServer) -> None:
    old = configmap("api-0", document(Kind.API, "api-0", age_s=2 * audit.STALE_S))
    items = api.answers[REPORTS]["items"]
    api.answers[REPORTS] = {"items": [old, *items]}
    assert [each.host for each in gathered(lab, api, Workers({})).unseen if each.kind is Kind.API] == []
    api.answers[REPORTS] = {"items": [old, items[0]]}
    (missed,) = (each for each in gathered(lab, api, Workers({})).unseen if each.kind is Kind.API)
    assert (missed.host, missed.why) == ("api-0", "its last report is 90 minutes old")
    api.answers[REPORTS] = {"items": [items[0]]}
    (missed,) = (each for each in gathered(lab, api, Workers({})).unseen if each.kind is Kind.API)
    assert "has not reported" in missed.why
    api.answers[REPORTS] = {"items": [items[0], configmap("api-2", "{}")]}
    (missed,) = (each for each in gathered(lab, api, Workers({})).unseen if each.kind is Kind.API)
    assert (missed.host, missed.why) == ("host-report-api-2", "its report can't be read")


def test_if_the_api_is_silent_the_workers_reports_remain(
    lab: Cluster, api: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "API_TIMEOUT_S", 0.3)
    api.silent.set()
    evidence = gathered(lab, api, Workers(ALL))
    assert [each.kind for each in evidence.reports] == [Kind.WORKER] * 3
    assert {each.why for each in evidence.unseen if each.kind is Kind.API} == {
        "the API does not respond: ReadTimeoutError"
    }
    assert all(isinstance(answer, str) for answer in (*evidence.kubelets.values(), *evidence.objects.values()))


def test_each_etcd_host_is_asked_once(lab: Cluster, api: FakeServer) -> None:
    asked = []

    def ask(name: str) -> Report:
        asked.append(name)
        if name == "etcd-main-2":
            raise ConnectionRefusedError("Connection refused")
        return Report.model_validate_json(document(Kind.ETCD, name))

    evidence = gathered(lab, api, Workers({}), of_etcd_host=ask)
    assert sorted(asked) == [f"etcd-{role}-{n}" for role in ("events", "main") for n in (1, 2, 3)]
    assert len(evidence.of(Kind.ETCD)) == 5
    assert [each.why for each in evidence.unseen if each.host == "etcd-main-2"] == ["no report: Connection refused"]


@pytest.mark.xdist_group("real_cluster")
def test_workers_in_the_region_are_unseen_by_design_but_their_kubelets_are_seen(build: Any, real: World) -> None:
    """With a real API server, whose nodes have no kubelets."""
    real.add("lab-region-1")
    cluster = build(REGION)
    (network,) = worker_ranges(cluster.spec)
    real.merge(
        "/api/v1/nodes/lab-region-1/status",
        {"status": {"addresses": [{"type": "InternalIP", "address": str(network[2])}]}},
    )
    reached = FakeAccess(outputs())
    reached.api = real.api  # type: ignore[method-assign]
    evidence = audit.gather(cluster, reached, Workers(ALL))  # type: ignore[arg-type]
    (unseen,) = (each for each in evidence.unseen if each.kind is Kind.WORKER)
    assert (unseen.host, unseen.why, unseen.expected) == ("lab-region-1", audit.IN_REGION, True)
    assert "no configuration" in evidence.kubelets["lab-region-1"]
    lists = {name: answer for name, answer in evidence.objects.items() if isinstance(answer, str)}
    # The API for gangs is not served here.
    assert set(lists) == {"pod groups"}
    assert any(each["metadata"]["name"] == "cluster-admin" for each in evidence.objects["cluster roles"])
    by_id = {id_: decided(control, evidence) for id_, control in BY_ID.items()}
    assert by_id["5.1.1"].status is Status.PASS, by_id["5.1.1"].observed
    assert by_id["5.1.3"].status is Status.PASS, by_id["5.1.3"].observed


BY_ID = {result.control.id: result.control for result in results(audit.Evidence())}
