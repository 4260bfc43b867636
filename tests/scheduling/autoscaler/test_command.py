"""`menagerie autoscaler` and `capacity` from their command line to a real API server."""

from __future__ import annotations

import io
import json
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.running import run
from clients.lease import Lease
from cluster.autoscaler import LEASE
from cluster.load import check_paths
from cluster.spec import Cluster
from controllers.autoscaler.settings import settings_of
from tests.cli.terminal import between_rounds
from tests.operations.conftest import outputs
from tests.operations.real_cluster import World
from tests.scheduling.autoscaler.machines import POOL, Machines
from tests.scheduling.autoscaler.test_real_api import QUICK, bound, job, unplaced
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("autoscaler")

ROOT = Path(__file__).resolve().parents[3]
SPEC = {
    "pools": {POOL: {"machine": "lab-small", "min": 1, "max": 4, "labels": {"openai.org/location": "lab-local"}}},
    "repair": {"max_removed": "4", "max_unhealthy": "3"},
}


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Access:
    """An operator's access to the cluster of this test."""

    def __init__(self, real: World) -> None:
        self.outputs, self.api = outputs(), real.api


@pytest.fixture
def cluster(build: Callable[..., Cluster]) -> Cluster:
    return build({**SPEC, "autoscaler": QUICK})


@pytest.fixture
def machines(real: World, cluster: Cluster) -> Machines:
    machines_ = Machines(real, cluster)
    machines_.grow(POOL, 1)
    machines_.boot()
    return machines_


@pytest.fixture
def menagerie(
    real: World,
    cluster: Cluster,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Ran]:
    monkeypatch.setattr("operations.stack.access_to", lambda *_: Access(real))
    monkeypatch.setattr("operations.repair.means.control_plane", lambda *_: "")
    monkeypatch.setattr("controllers.autoscaler.choose.groups_of", lambda *_: machines)
    monkeypatch.setattr("cli.interrupts.end_children", lambda: None)

    def call(*words: str, spec: Cluster | None = None) -> Ran:
        for loader in ("autoscaler.built", "autoscaler.checked", "capacity.checked"):
            monkeypatch.setattr(f"cli.verbs.{loader}", lambda _: spec or cluster)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        code = run(list(words))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def test_plans_and_explanations_are_complete_and_change_nothing(
    real: World, machines: Machines, menagerie: Callable[..., Ran]
) -> None:
    job(real, "train", 2)
    job(real, "large", 1, cpu="9")
    until(lambda: unplaced(real) == 2)
    ran = menagerie("autoscaler", "plan", "lab")
    assert ran.code == 0, ran.err
    assert "it requests 9 CPUs, but the largest host has 8 CPUs (pool region)" in ran.out
    assert "grow region to 2 machines" in ran.out
    assert machines.size == 1
    waiting = next(pod for pod, node in bound(real).items() if not node and pod.startswith("train"))
    ran = menagerie("autoscaler", "plan", "lab", f"default/{waiting}", "--json")
    reply = json.loads(ran.out)
    assert (reply["fate"], reply["reason"][:33]) == ("new", "on a new host of pool region: 1.0")
    assert "Insufficient cpu" in reply["the scheduler says"]
    ran = menagerie("autoscaler", "plan", "lab", "lab-region-i-1")
    assert "which belongs to a Job, whose work would be lost" in ran.out
    assert menagerie("autoscaler", "plan", "lab", "nobody").code == 2


def test_a_pass_asks_first_and_a_second_run_is_refused_while_one_acts(
    real: World, machines: Machines, menagerie: Callable[..., Ran]
) -> None:
    job(real, "train", 2)
    until(lambda: unplaced(real) == 1)
    ran = menagerie("autoscaler", "run", "lab", "--once")
    assert (ran.code, "./menagerie autoscaler run lab --yes" in ran.err) == (2, True)
    with Lease(real.api(), LEASE, "another").holding():
        ran = menagerie("autoscaler", "run", "lab", "--once", "--yes")
        assert (ran.code, "another acts on this cluster" in ran.err) == (3, True)
    assert machines.size == 1
    ran = menagerie("autoscaler", "run", "lab", "--once", "--json")
    reply = json.loads(ran.out)
    assert (ran.code, machines.size) == (0, 2), ran.err
    assert [(each["act"], each["done"]) for each in reply["decisions"]] == [("grow", True)]
    machines.silent = "401 from the cloud"
    ran = menagerie("autoscaler", "run", "lab", "--once", "--yes")
    assert (ran.code, "no decision: the groups of machines (401 from the cloud) did not answer" in ran.err) == (
        1,
        True,
    )


def test_a_service_serves_its_metrics(
    real: World, machines: Machines, menagerie: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    address = threading.Event()
    monkeypatch.setattr(
        "cli.actions.autoscaler.log.info", lambda text, *of: (texts.append((text % of).split()[-1]), address.set())
    )

    def pause(_: float) -> None:
        if not address.is_set():
            return
        with urllib.request.urlopen(texts[0]) as answer:
            texts.append(answer.read().decode())
        raise KeyboardInterrupt

    between_rounds(monkeypatch, pause)
    ran = menagerie("autoscaler", "run", "lab", "--yes", "--metrics", "127.0.0.1:0")
    assert ran.code == 130
    assert 'menagerie_autoscaler_machines{pool="region",state="running"} 1' in texts[1]
    assert menagerie("autoscaler", "run", "lab", "--yes", "--metrics", "nowhere").code == 2


def test_capacity_shows_what_is_free_and_where_a_job_would_start(
    real: World, machines: Machines, menagerie: Callable[..., Ran]
) -> None:
    ran = menagerie("capacity", "lab", "--json", "--pods", "2", "--cpus", "6")
    reply = json.loads(ran.out)
    assert ran.code == 0
    rows = {row["pool"]: row for row in reply["pools"]}
    assert (rows[POOL]["hosts"], rows[POOL]["more"], rows["workers"]["hosts"]) == (1, 3, 3)
    assert {offer["pool"]: offer["hosts"] for offer in reply["job"]} == {POOL: 1, "workers": 0}
    assert reply["soonest"]["pool"] == "workers"
    ran = menagerie("capacity", "lab", "--gpus", "16", "--gpu-kind", "h100")
    assert (ran.code, "16 h100 GPUs: nowhere now" in ran.out) == (1, True)
    assert menagerie("capacity", "lab", "--gpus", "9").code == 2
    assert menagerie("capacity", "lab", "--gpu-kind", "h100").code == 2


def test_a_spec_without_an_autoscaler_is_refused(menagerie: Callable[..., Ran], build: Callable[..., Cluster]) -> None:
    ran = menagerie("autoscaler", "plan", "lab", "--json", spec=build(SPEC))
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (2, "no-autoscaler")


def test_a_trace_is_simulated_from_the_command_line(menagerie: Callable[..., Ran], tmp_path: Path) -> None:
    loaded, _ = check_paths([ROOT / "tests" / "specs" / "valid-autoscaler.yaml"])
    aws = loaded[0].cluster
    assert settings_of(aws).pools == ("cpu",)
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"at": "0s", "name": "a", "count": 3, "runs": "30m", "requests": {"cpu": "4"}}\n')
    reply = json.loads(menagerie("autoscaler", "simulate", "numbat", str(trace), "--json", spec=aws).out)
    assert (reply["with"]["ended"], reply["with"]["unstarted"]) == (3, 0)
    assert reply["with"]["cost"] <= reply["without_scale_in"]["cost"]
    ran = menagerie("autoscaler", "simulate", "numbat", str(trace), spec=aws)
    assert "without scale-in:" in ran.out
    assert "is unknown" not in ran.out
    assert reply["notes"] == []
    assert aws.spec.autoscaler
    elsewhere = {
        "control_plane": aws.spec.control_plane.model_copy(update={"region": "us-west-2"}),
        "autoscaler": aws.spec.autoscaler.model_copy(update={"prices": {}}),
    }
    unpriced = aws.model_copy(update={"spec": aws.spec.model_copy(update=elsewhere)})
    ran = menagerie("autoscaler", "simulate", "numbat", str(trace), spec=unpriced)
    assert "the price of pool cpu is unknown, and assumed to be 1.00 $/h" in " ".join(ran.out.split())
    assert "autoscaler.prices: {cpu: <$/h>}" in " ".join(ran.out.split())
    trace.write_text("nonsense\n")
    assert menagerie("autoscaler", "simulate", "numbat", str(trace), spec=aws).code == 2
