"""How annotations, pods, machines and memories are read."""

from __future__ import annotations

import base64
import importlib.util
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.autoscaler import Autoscaler
from cluster.load import check_paths
from cluster.places import of_pool
from cluster.shared import NewerDataError
from cluster.spec import Cloud, Cluster
from components.scheduling import gangs
from controllers.autoscaler import supply as supply_module
from controllers.autoscaler.amounts import capacity_of, requests_of
from controllers.autoscaler.capacity import Job, cheapest, offers, rows, soonest
from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.gang import NoGroupError, gang_of, gangs_of
from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.keys import ALL
from controllers.autoscaler.look import _fits
from controllers.autoscaler.memory import Memory, unpacked
from controllers.autoscaler.metrics import PREFIX, Metrics
from controllers.autoscaler.pod_requests import Choices, pod_request
from controllers.autoscaler.pods import is_waiting, resident, waiting
from controllers.autoscaler.run import Done, Round
from controllers.autoscaler.supply import supplies
from controllers.planner import Preference, Spot
from controllers.planner.resources import CPU, GPU, MEMORY, PODS
from tests.bench.prometheus import total
from tests.scheduling.autoscaler.support import (
    CHOICES,
    CPU_POOL,
    GPU_POOL,
    SPOT_POOL,
    node,
    one_pass,
    pod_document,
    pods,
    world,
)
from tests.scheduling.autoscaler.support import resident as on

ROOT = Path(__file__).resolve().parents[3]
CHOICE = Choices(
    {
        "scheduling.menagerie.dev/cloud": frozenset({"aws", "site"}),
        "scheduling.menagerie.dev/gpu-kind": frozenset({"h100", "a100"}),
    },
    {"laion": {"topology.kubernetes.io/zone": "us-east-1a"}},
    1.0,
)


def request_of(**notes: str) -> Any:
    return pod_request(
        {f"scheduling.menagerie.dev/{key.replace('_', '-')}": value for key, value in notes.items()}, CHOICE
    )


def test_annotations_are_read() -> None:
    request = request_of(
        cloud="aws", gpu_kind="H100, a100", near_data="laion", worth="2.5", spot="only", price_ceiling="12.50"
    )
    assert request.complaints == []
    assert request.preferences == (
        Preference("scheduling.menagerie.dev/cloud", ("aws",), 2_500_000),
        Preference("scheduling.menagerie.dev/gpu-kind", ("a100", "h100"), 2_500_000),
        Preference("topology.kubernetes.io/zone", ("us-east-1a",), 2_500_000),
    )
    assert (request.spot, request.ceiling, request.refused) == (Spot.ONLY, 12_500_000, "")


@pytest.mark.parametrize(
    ("notes", "complaint"),
    [
        ({"cloud": "azur"}, "cloud: no pool has 'azur'; available: aws, site"),
        ({"gpu_kind": "h10"}, "gpu-kind: no pool has 'h10'; did you mean h100"),
        ({"near_data": "lain"}, "near-data: autoscaler.data of the spec has no 'lain'; did you mean laion?"),
        ({"spot": "yes"}, "spot is 'yes'; write any, never or only. Until then, never is assumed"),
        ({"worth": "-1"}, "worth is '-1'; write dollars an hour"),
        ({"price_ceiling": "NaN"}, "price-ceiling is 'NaN'; write dollars an hour"),
        ({"price_ceiling": "1e9"}, "price-ceiling is '1e9'"),
        ({"prise_ceiling": "1"}, "prise-ceiling is not an annotation of the autoscaler; did you mean"),
    ],
)
def test_an_invalid_annotation_is_reported_and_orders_nothing_more(notes: Mapping[str, str], complaint: str) -> None:
    request = request_of(**notes)
    assert len(request.complaints) == 1
    assert complaint in request.complaints[0]
    assert request.preferences == ()
    assert request.spot is (Spot.NEVER if "spot" in notes else Spot.ANY)
    assert bool(request.refused) == ("price_ceiling" in notes)


def test_gangs_are_read() -> None:
    group = gangs.pod_group("1.36.4", "mpi", 4, within="openai.org/rack")
    group["metadata"]["namespace"] = "default"
    loose = {"metadata": {"namespace": "default", "name": "loose"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    known = gangs_of([group, loose])
    gang = gang_of(pod_document("a", schedulingGroup={"podGroupName": "mpi"}), known)
    assert gang and (gang.name, gang.size, gang.within) == ("default/mpi", 4, "openai.org/rack")
    assert gang_of(pod_document("a", schedulingGroup={"podGroupName": "loose"}), known) is None
    assert gang_of(pod_document("a"), known) is None


def test_no_machine_is_ordered_for_a_pod_without_its_podgroup() -> None:
    pod = pod_document("a", schedulingGroup={"podGroupName": "mpi"})
    with pytest.raises(NoGroupError, match="PodGroup mpi does not exist"):
        gang_of(pod, {})
    pod_waiting = waiting(pod, CHOICES)
    assert pod_waiting.refused
    assert pod_waiting.complaints


def test_requests_are_counted_as_the_scheduler_does() -> None:
    def container(cpu: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}, **more}

    spec = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("100m", restartPolicy="Always"), container("4")],
        "overhead": {"cpu": "250m"},
    }
    assert requests_of(spec) == {CPU: 4350, MEMORY: 3072}
    assert requests_of({**spec, "resources": {"requests": {"cpu": "8"}}})[CPU] == 8250
    assert requests_of({"containers": [{"resources": {"requests": {"cpu": "1u", "memory": "1"}}}]}) == {
        CPU: 1,
        MEMORY: 1,
    }
    assert capacity_of({"cpu": "3999999u", "memory": "1048577", "nvidia.com/gpu": "8"}) == {
        CPU: 3999,
        MEMORY: 1,
        GPU: 8,
    }


def test_pods_with_equal_specs_have_the_same_shape() -> None:
    one, other = (waiting(pod_document(name, cpus=2), CHOICES) for name in "ab")
    assert one.shape is other.shape
    assert waiting(pod_document("c", cpus=3), CHOICES).shape != one.shape


def test_selectors_affinity_and_tolerations_are_read() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "dns"}}}
    pod_waiting = waiting(
        pod_document(
            "a",
            labels={"app": "dns"},
            nodeSelector={"kind": "gpu"},
            tolerations=[
                {"key": "openai.com/team", "operator": "Exists"},
                {"operator": "Exists", "effect": "NoExecute"},
            ],
            affinity={
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, term]}},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]},
            },
        ),
        CHOICES,
    )
    assert [[str(need) for need in term] for term in pod_waiting.shape.needs] == [["kind=gpu", "zone In a,b"]] * 2
    assert [(each.key, each.value, each.effect) for each in pod_waiting.shape.tolerations] == [
        ("openai.com/team", None, None), (None, None, "NoExecute"),
    ]  # fmt: skip
    assert pod_waiting.shape.apart == "default/app=dns"


@pytest.mark.parametrize(
    ("document", "keeps"),
    [
        ({}, "belongs to a Job"),
        ({"owner": "ReplicaSet"}, ""),
        ({"owner": ""}, "has no controller"),
        ({"owner": "ReplicaSet", "volumes": [{"name": "tmp", "emptyDir": {}}]}, "keeps files on the host (tmp)"),
        ({"owner": "ReplicaSet", "annotations": {"scheduling.menagerie.dev/keep": "true"}}, "has the annotation"),
        ({"owner": "ReplicaSet", "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, "has the ann"),
        ({"owner": "ReplicaSet", "schedulingGroup": {"podGroupName": "g"}}, "belongs to a gang"),
    ],
)  # fmt: skip
def test_a_pod_that_keeps_its_host_has_a_reason(document: dict[str, Any], keeps: str) -> None:
    pod = resident(pod_document("a", **document))
    assert pod.keeps.startswith(keeps)
    assert bool(pod.keeps) == bool(keeps)
    assert resident(pod_document("a", owner="ReplicaSet"), no_disruption=True).keeps.startswith(
        "has a disruption budget"
    )
    assert resident(pod_document("a", owner="DaemonSet")).daemon


def test_only_pods_that_the_scheduler_refused_are_waiting() -> None:
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    gated = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert is_waiting({**pod_document("a"), "status": refused})
    assert not is_waiting({**pod_document("a"), "status": gated})
    assert not is_waiting({**pod_document("a"), "status": {**refused, "nominatedNodeName": "x"}})
    assert not is_waiting({**pod_document("a", nodeName="x"), "status": refused})
    assert not is_waiting({**pod_document("a", owner="DaemonSet"), "status": refused})


def test_selectors_of_budgets_match_as_in_kubernetes() -> None:
    assert _fits({}, {"a": "b"})
    assert _fits(
        {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}, {"a": "b"}
    )
    assert not _fits({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {"a": "b"})
    assert not _fits({"matchLabels": {"a": "c"}}, {"a": "b"})


def of_aws() -> Cluster:
    loaded, problems = check_paths([ROOT / "tests" / "specs" / "valid-autoscaler.yaml"])
    assert problems == []
    return loaded[0].cluster


def test_the_size_of_a_pool_without_nodes_is_from_the_catalogue_minus_reservations() -> None:
    cluster = of_aws()
    settings = cluster.spec.autoscaler or Autoscaler()
    daemons = [waiting(pod_document("d", cpus=1), CHOICES).shape]
    known, notices = supplies(cluster, settings, (), {}, daemons)
    assert notices == []
    room = known["cpu"].pool.room
    # m7i.8xlarge: 32 vCPUs, 128 GiB; 250 pods per node.
    assert room[CPU] == 32_000 - 150 - 200 - 1000
    assert 0.9 * 128 * 1024 < room[MEMORY] < 128 * 1024
    assert room[PODS] == 249
    assert (known["gpu"].gpu, known["gpu"].pool.room[GPU], known["cpu"].pool.price) == (True, 8, 1_200_000)
    labels = dict(known["gpu"].pool.labels)
    assert labels["topology.kubernetes.io/zone"] == "us-east-1a"
    assert labels["scheduling.menagerie.dev/gpu-kind"] == "h100"
    joined = of_pool(Cloud.AWS, "gpu", cluster.spec.pools["gpu"])
    assert joined["menagerie.dev/gpu-kind"] == "NVIDIA-H100-80GB-HBM3"
    assert joined.items() <= labels.items(), "a pod that asks for a label of its nodes would never get one"
    assert "topology.kubernetes.io/zone" not in dict(known["cpu"].pool.labels)


def test_the_size_of_a_host_is_from_existing_nodes_minus_daemons() -> None:
    cluster = of_aws()
    one = node("a", CPU_POOL, on("d", 2, daemon=True), on("x", 3))
    starting = node("b", CPU_POOL, on("d", 8, daemon=True), starting=True)
    known, _ = supplies(cluster, Autoscaler(), (one, starting), {})
    assert known["cpu"].pool.room[CPU] == 6000


def test_the_reservations_equal_those_of_the_hosts() -> None:
    path = ROOT / "roles" / "module_utils" / "menagerie_host" / "machine.py"
    text = path.read_text().replace("from . import Refused", "class Refused(Exception): ...")
    spec = importlib.util.spec_from_loader("machine", loader=None)
    assert spec
    own = importlib.util.module_from_spec(spec)
    exec(compile(text, str(path), "exec"), own.__dict__)  # noqa: S102 - our own program for hosts, not a module here
    for cpus in (1, 2, 3, 4, 5, 8, 31, 32, 96, 192):
        assert supply_module._kubelets_cpu(cpus) == own.kubelets_cpu(cpus)
    defaults = yaml.safe_load((ROOT / "roles" / "kubelet" / "defaults" / "main.yml").read_text())
    kept = (defaults["kubelet_system_cpu"], defaults["kubelet_system_memory_mib"])
    assert kept == (supply_module.SYSTEM_CPU, supply_module.SYSTEM_MIB)


def test_a_lab_has_no_catalogue_and_the_notice_says_what_to_do(build: Callable[..., Cluster]) -> None:
    cluster = build({"pools": {"region": {"machine": "lab-small", "min": 0, "max": 2}}, "autoscaler": {}})
    known, notices = supplies(cluster, Autoscaler(), (), {})
    assert "region" not in known
    assert "the pool is left out until it has a Ready node (set min: 1)" in notices[0]


def test_an_unreadable_memory_and_one_of_a_newer_version_are_refused() -> None:
    with pytest.raises(ValueError, match="the autoscaler's memory can't be read"):
        unpacked("nonsense")
    with pytest.raises(NewerDataError, match="the autoscaler's memory has version 99"):
        unpacked(base64.b64encode(zlib.compress(b'{"version": 99}')).decode())


def test_capacity_counts_free_coming_and_possible_hosts() -> None:
    nodes = [node("g1", GPU_POOL), node("g2", GPU_POOL, on("x", 1))]
    machines = (Machine("i-g1", "g1", "running"), Machine("i-g2", "g2", "running"), Machine("i-3", "", "booting"))
    state = world(nodes, supplies=(GPU_POOL,), groups={"gpu": Group("gpu", 3, 0, 8, machines)})
    (row,) = rows("jaguar", state, Memory())
    assert (row.hosts, row.free_hosts, row.gpus, row.free_gpus, row.coming_gpus, row.more_gpus) == (2, 1, 16, 16, 8, 40)


def test_the_soonest_and_the_cheapest_offer_for_a_job_are_found() -> None:
    state = world([node("g1", GPU_POOL)], supplies=(GPU_POOL, SPOT_POOL))
    one = offers("jaguar", state, Memory(), Autoscaler(), Job(1, 8))
    assert [(each.pool, each.starts_s, each.dollars) for each in one] == [("gpu", 0, 0.0), ("spot", 540, 10.0)]
    two = offers("jaguar", state, Memory(), Autoscaler(), Job(2, 8))
    assert [(each.pool, each.starts_s, each.dollars) for each in two] == [("gpu", 540, 30.0), ("spot", 540, 20.0)]
    best, least = soonest(two), cheapest(two)
    assert best and least and (best.pool, least.pool) == ("spot", "spot")
    never = offers("jaguar", state, Memory(), Autoscaler(), Job(20, 8))
    assert [each.starts_s for each in never] == [None, None]
    assert "can never start" in never[0].reason
    assert offers("jaguar", state, Memory(), Autoscaler(), Job(1, 9)) == []


def test_metrics_are_in_prometheus_format_and_in_the_docs() -> None:
    state = world([node("a")], pods("web", 2, cpus=8))
    metrics = Metrics(lambda: 5.0)
    metrics.failed()
    metrics.count(Round(state, one_pass(state), (Done(Decision(Act.GROW, "cpu", "pods wait", size=1)),)))
    page = metrics.page()
    assert page.kind == "text/plain; version=0.0.4; charset=utf-8"
    assert total(page.text, f"{PREFIX}passes_total", end="done") == 1
    assert total(page.text, f"{PREFIX}passes_total", end="failed") == 1
    assert total(page.text, f"{PREFIX}acts_total", act="grow", pool="cpu", failed="false") == 1
    assert total(page.text, f"{PREFIX}machines", pool="cpu", state="running") == 1
    assert total(page.text, f"{PREFIX}pods", fate="new") == 1
    assert total(page.text, f"{PREFIX}last_pass_timestamp_seconds") == 5
    documented = set(re.findall(rf"`({PREFIX}\w+)`", (ROOT / "docs" / "how-to" / "autoscaler.md").read_text()))
    assert {sample.name for family in metrics.registry.collect() for sample in family.samples} == documented


def test_gauges_of_a_pool_disappear_with_it() -> None:
    metrics = Metrics(lambda: 5.0)
    for state in (world([node("a")]), world(supplies=())):
        metrics.count(Round(state, one_pass(state)))
    assert 'pool="cpu"' not in metrics.page().text


def test_every_annotation_is_documented_for_researchers() -> None:
    page = (ROOT / "docs" / "how-to" / "machines-for-jobs.md").read_text()
    assert [key for key in ALL if f"`{key}`" not in page] == []
