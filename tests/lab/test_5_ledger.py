"""The ledger in the lab: its controller writes into the lab's bucket, two teams run jobs, leaders and metrics are killed, and `bill` adds up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from cluster.load import load_cluster
from components.control_plane.host.metrics_keys import NAMESPACE as METRICS
from controllers.bookkeeping.bucket import ledger_of
from controllers.bookkeeping.store import LedgerStore
from controllers.kinds import METERING, METERING_LEASE
from controllers.manifests import KIND_LABEL, NAMESPACE
from controllers.metering.day import Day
from operations.stack import access_to
from operations.verify.workload import CONTAINER_SECURITY, IMAGE
from sandbox.lab import plan
from tests.bench import on_lab
from tests.lab.support import Run, menagerie
from tests.lab.test_5_controllers import LEASES, REPOSITORY, clear, exists, until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

PEOPLE = "people: {ana: {}, bo: {}}\nteams: {robotics: {members: [ana]}, vision: {members: [bo]}}\n"
CPUS = {"robotics": 200, "vision": 100}
"""Of each team's job, in thousandths."""
RUNS_S = 90


@pytest.fixture(scope="module")
def spec(lab: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The lab's own spec with two teams and a ledger that counts the running day every minute; restores the lab afterwards."""
    keys = {"tenancy": {"directory": {"file": "people.yaml"}}, "metering": {"running_every": "1m"}}
    path = on_lab.changed(tmp_path_factory.mktemp("ledger"), lambda spec: spec.update(keys))
    path.with_name("people.yaml").write_text(PEOPLE)
    yield path
    clear(path)


@pytest.fixture(scope="module")
def api(spec: Path) -> client.ApiClient:
    return access_to(load_cluster(spec)).api()


@pytest.fixture(scope="module")
def store(spec: Path) -> LedgerStore:
    ledger = ledger_of(access_to(load_cluster(spec)))
    assert ledger
    return ledger


@pytest.fixture(scope="module")
def running(spec: Path, api: client.ApiClient) -> None:
    """The controllers run, and the teams have their namespaces."""
    reference = f"{plan.REGISTRY}/{REPOSITORY}:lab"
    pushed = menagerie("controllers", "image", "--push", reference, "--json")
    assert pushed.code == 0, pushed.err
    image = f"docker.io/{REPOSITORY}@{pushed.json['digest']}"
    applied = menagerie("controllers", "apply", str(spec), "--image", image, "--yes", timeout_s=900)
    assert applied.code == 0, applied.err
    until(lambda: "" if all(exists(api, f"team-{team}") for team in CPUS) else "no namespaces yet")
    until(lambda: "" if holder(api) else "nobody leads yet")


@pytest.fixture(scope="module")
def worked(running: None, api: client.ApiClient) -> dict[str, float]:
    """Run a job of each team, and kill the leader meanwhile. Return team -> CPU hours of its pod, from the pod's own times."""
    for team, cpu in CPUS.items():
        client.BatchV1Api(api).create_namespaced_job(f"team-{team}", job(cpu))
    until(lambda: "" if all(phases(api, team) == ["Running"] for team in CPUS) else "jobs do not run yet")
    leader = holder(api)
    core = client.CoreV1Api(api)
    core.delete_namespaced_pod(leader.rsplit("_", 1)[0], NAMESPACE, grace_period_seconds=0)
    until(lambda: "" if holder(api) not in ("", leader) else "nobody else leads yet")
    until(lambda: "" if all(phases(api, team) == ["Succeeded"] for team in CPUS) else "jobs have not ended")
    return {team: hours(api, team) for team in CPUS}


def holder(api: client.ApiClient) -> str:
    lease = client.CoordinationV1Api(api).read_namespaced_lease(METERING_LEASE, LEASES)
    return str(lease.spec.holder_identity or "")


def job(cpu: int) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": IMAGE,
        "command": ["sleep", str(RUNS_S)],
        "resources": {"requests": {"cpu": f"{cpu}m", "memory": "16Mi"}},
        "securityContext": CONTAINER_SECURITY,
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"name": "billed"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}


def pods(api: client.ApiClient, team: str) -> list[client.V1Pod]:
    listed: list[client.V1Pod] = (
        client.CoreV1Api(api).list_namespaced_pod(f"team-{team}", label_selector="job-name=billed").items
    )
    return listed


def phases(api: client.ApiClient, team: str) -> list[str]:
    return [str(pod.status.phase) for pod in pods(api, team)]


def hours(api: client.ApiClient, team: str) -> float:
    """Return the CPU hours of a team's pod, from its binding to the end of its container."""
    (pod,) = pods(api, team)
    bound = next(each.last_transition_time for each in pod.status.conditions if each.type == "PodScheduled")
    ended = pod.status.container_statuses[0].state.terminated.finished_at
    return float((ended - bound).total_seconds() * CPUS[team] / 1000 / 3600)


def newest(store: LedgerStore) -> Day:
    day = store.newest_running()
    assert day
    return day


def test_a_teams_use_is_what_its_pod_requested_for_as_long_as_it_lived(
    spec: Path, store: LedgerStore, worked: dict[str, float]
) -> None:
    after = newest(store).until
    until(lambda: "" if newest(store).until > after else "the running day was not counted again")
    billed = menagerie("bill", str(spec), "--today", "--json")
    assert billed.code == 0, (billed.err, billed.json["troubles"])
    used: dict[str, float] = {}
    for line in billed.json["lines"]:
        if line["use"] == "used" and line["namespace"] == f"team-{line['team']}":
            used[line["team"]] = used.get(line["team"], 0.0) + line["cpu_hours"]
    assert used == pytest.approx(worked, abs=1e-6)
    assert len(billed.json["running"]) == 1


def test_a_leader_that_is_killed_leaves_no_gap(store: LedgerStore, worked: dict[str, float]) -> None:
    day = newest(store)
    assert day.missing == ()
    assert set(day.document["not_counted"].values()) == {0}
    assert day.document["capacity"] == day.document["counted"]


def test_the_proof_that_the_day_closes_succeeds(spec: Path, worked: dict[str, float]) -> None:
    proved = menagerie("verify", str(spec), "--only", "closes", "--json")
    (result,) = proved.json["proofs"]
    assert (proved.code, result["outcome"]) == (0, "proved"), result["seen"]


def test_the_day_is_the_same_bytes_again_also_without_any_metrics(
    spec: Path, api: client.ApiClient, store: LedgerStore, worked: dict[str, float]
) -> None:
    core = client.CoreV1Api(api)
    before = newest(store)
    core.delete_collection_namespaced_pod(METRICS, label_selector="k8s-app=metrics-server", grace_period_seconds=0)
    assert store.again(before).to_bytes() == before.to_bytes()
    until(lambda: "" if newest(store).until > before.until else "the running day was not counted again")
    day = newest(store)
    assert day.complete, day.missing
    # A running day that is counted meanwhile would be another one, so a failure is tried once more.
    assert 0 in {menagerie("bill", str(spec), "--today", "--verify").code for _ in range(2)}


def test_what_was_used_stays_in_the_ledger_when_the_jobs_and_the_controller_are_gone(
    spec: Path, api: client.ApiClient, store: LedgerStore, worked: dict[str, float]
) -> None:
    for team in CPUS:
        client.BatchV1Api(api).delete_namespaced_job("billed", f"team-{team}", propagation_policy="Background")
    removed = menagerie("controllers", "remove", str(spec), "--only", METERING.name, "--yes")
    assert removed.code == 0, removed.err
    gone = f"{KIND_LABEL}={METERING.name}"
    core = client.CoreV1Api(api)
    until(lambda: "" if not core.list_namespaced_pod(NAMESPACE, label_selector=gone).items else "its pods are there")
    day = newest(store)
    assert store.again(day).to_bytes() == day.to_bytes()
    billed = menagerie("bill", str(spec), "--today", "--team", "vision", "--json")
    assert sum(line["cpu_hours"] for line in billed.json["lines"]) == pytest.approx(worked["vision"], abs=1e-6)
