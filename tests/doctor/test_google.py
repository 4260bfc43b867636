"""The questions about a project of Google Cloud, over the documented HTTP of its APIs."""

from __future__ import annotations

import re

import pytest

from cluster.spec import Cluster
from operations.doctor.gcp.account import SERVICES
from operations.doctor.model import State
from stacks.gcp.tags import bucket_name, role_id
from tests.doctor.fake_google import Project, quota
from tests.doctor.support import ROOT, answers, example, not_ok, rights_of
from tests.scheduling.clouds.door import Door, Request, Response
from tests.scheduling.clouds.fake_google import refused, split


@pytest.fixture(scope="module")
def gibbon() -> Cluster:
    return example("gcp-small")


def test_a_ready_project_is_ok_and_is_only_read(gibbon: Cluster, google_door: Door) -> None:
    outcomes = answers(gibbon)
    assert not_ok(outcomes) == {}
    assert outcomes["account: identity"].finding == "a person's login in project a-project, which is ACTIVE"
    assert outcomes["quotas: vCPUs: C3_CPUS"].finding == "200 left of 200 vCPUs in us-central1"
    assert outcomes["quotas: vCPUs: C3_CPUS"].needed == (
        "40 vCPUs at the start, 132 at most: API servers (c3-standard-4) 3 to 6 × 4, etcd main (c3-standard-4) 3 × 4, "
        "pool cpu (c3-standard-8) 2 to 12 × 8"
    )
    written = {request.path for request in google_door.log if request.method != "GET"}
    assert written == {"/v3/projects/a-project:testIamPermissions"}


RIGHTS = {
    r"/v3/projects/[\w-]+": "resourcemanager.projects.get",
    r"/v3/projects/[\w-]+:testIamPermissions": "",
    r"/v1/projects/[\w-]+/services:batchGet": "serviceusage.services.get",
    r"/v1/projects/[\w-]+/roles/\w+": "iam.roles.get",
    r"/storage/v1/b/[\w-]+": "storage.buckets.get",
    r"/compute/v1/projects/[\w-]+": "compute.projects.get",
    r"/compute/v1/projects/[\w-]+/(?:global|zones/[\w-]+)/(networks|machineTypes)/[\w-]+": r"compute.\1.get",
    r"/compute/v1/projects/[\w-]+/(regions|zones)/[\w-]+": r"compute.\1.get",
    r"/compute/v1/projects/[\w-]+/global/images/family/[\w-]+": "compute.images.getFromFamily",
}
"""Path -> the permission that the method's reference names ("IAM Permissions"); none for testIamPermissions."""


def right_of(request: Request) -> str:
    path = split(request)[0]
    return next(re.sub(f"^{pattern}$", right, path) for pattern, right in RIGHTS.items() if re.fullmatch(pattern, path))


def test_the_rights_are_those_that_the_requests_need(gibbon: Cluster, google_door: Door) -> None:
    answers(gibbon)
    used = {right_of(request) for request in google_door.log} - {""}
    assert used == rights_of(gibbon) - {"compute.images.get"}


def test_every_service_is_in_the_guide() -> None:
    page = (ROOT / "docs/start/google-cloud.md").read_text()
    assert [name for name in SERVICES if name not in page] == []


def test_a_missing_permission_is_wrong_with_the_commands_that_grant_it(
    gibbon: Cluster, project: Project, google_door: Door
) -> None:
    project.lacking = {"compute.instances.create"}
    answer = answers(gibbon, "rights")["account: rights"]
    assert (answer.state, "compute.instances.create" in answer.finding) == (State.WRONG, True)
    assert answer.mend == (
        "gcloud iam roles create menagerieOperator --project=a-project --file=docs/gcp-role.yaml",
        (
            "gcloud projects add-iam-policy-binding a-project --member=user:$(gcloud config get account) "
            "--role=projects/a-project/roles/menagerieOperator"
        ),
    )
    project.lacking = {"resourcemanager.projects.setIamPolicy"}
    answer = answers(gibbon, "rights")["account: rights"]
    assert answer.mend[0].startswith("printf 'title: clusters own roles")
    assert answer.mend[2].endswith("roles/menagerieGranter --condition-from-file=condition.yaml")


def test_services_that_are_off_are_wrong_with_one_command(gibbon: Cluster, project: Project, google_door: Door) -> None:
    project.off = {"dns.googleapis.com", "cloudkms.googleapis.com"}
    answer = answers(gibbon, "services")["registrations: services"]
    assert answer.state is State.WRONG
    assert answer.mend == ("gcloud services enable dns.googleapis.com cloudkms.googleapis.com --project=a-project",)


def test_a_quota_that_is_too_small_is_wrong_with_its_arithmetic_and_one_that_is_not_listed_unknown(
    gibbon: Cluster, project: Project, google_door: Door
) -> None:
    project.quotas, project.common = [quota("C3_CPUS", 48, 16)], [quota("CPUS_ALL_REGIONS", 32)]
    outcomes = answers(gibbon, "vCPUs", "networks")
    answer = outcomes["quotas: vCPUs: C3_CPUS"]
    assert answer.state is State.WRONG
    assert answer.finding == "32 left of 48 vCPUs in us-central1: too few to start"
    assert answer.mend == (
        (
            "gcloud beta quotas preferences create --service=compute.googleapis.com --project=a-project "
            "--quota-id=C3-CPUS-per-project-region --preferred-value=148 --dimensions=region=us-central1"
        ),
    )
    everywhere = outcomes["quotas: vCPUs: CPUS_ALL_REGIONS"]
    assert (everywhere.state, "--dimensions" in everywhere.mend[0]) == (State.WRONG, False)
    assert outcomes["quotas: networks: NETWORKS"].state is State.UNKNOWN


def test_gpus_and_spot_machines_have_quotas_of_their_own(project: Project, google_door: Door) -> None:
    """Of ibis, the pool of A100s is spot and that of H100s is not. Without a preemptible quota spot takes the ordinary one."""
    project.quotas = [
        quota("NVIDIA_A100_GPUS", 0),
        quota("PREEMPTIBLE_NVIDIA_A100_GPUS", 1024),
        quota("NVIDIA_H100_GPUS", 8),
    ]
    project.common = [quota("GPUS_ALL_REGIONS", 2000)]
    outcomes = answers(example("ibis"), "GPUs")
    assert {name.rpartition(" ")[2]: answer.state for name, answer in outcomes.items()} == {
        "PREEMPTIBLE_NVIDIA_A100_GPUS": State.OK,
        "NVIDIA_H100_GPUS": State.WRONG,
        "GPUS_ALL_REGIONS": State.OK,
    }
    assert outcomes["quotas: GPUs: PREEMPTIBLE_NVIDIA_A100_GPUS"].needed == (
        "0 GPUs at the start, 1,024 at most: pool a100 (a2-highgpu-8g) 0 to 128 × 8"
    )
    project.quotas = project.quotas[:1]
    outcomes = answers(example("ibis"), "GPUs")
    assert outcomes["quotas: GPUs: NVIDIA_A100_GPUS"].state is State.WRONG
    assert outcomes["quotas: GPUs: NVIDIA_H100_GPUS"].state is State.UNKNOWN


def test_a_type_that_a_zone_does_not_offer_is_wrong_and_a_pool_needs_one_zone(
    gibbon: Cluster, project: Project, google_door: Door
) -> None:
    project.absent = {("us-central1-b", "c3-standard-4"), ("us-central1-b", "c3-standard-8")}
    outcomes = answers(gibbon, "machine types")
    plane = outcomes["places: machine types: c3-standard-4 for API servers"]
    assert plane.finding == "not offered in us-central1-b; it is offered in us-central1-a, us-central1-c"
    pool = outcomes["places: machine types: c3-standard-8 for pool cpu"]
    assert (pool.state, "except in us-central1-b" in pool.finding) == (State.OK, True)


def test_a_missing_zone_is_wrong(google_door: Door) -> None:
    outcomes = answers(example("gcp-small", zones=("us-central1-a", "us-central1-f")), "zones")
    assert outcomes["places: zones: us-central1-f"].state is State.WRONG
    assert outcomes["places: zones: us-central1-a"].state is State.OK


def test_a_missing_image_and_one_of_another_architecture_are_wrong(
    gibbon: Cluster, project: Project, google_door: Door
) -> None:
    project.architecture = "ARM64"
    (answer,) = answers(gibbon, "image").values()
    assert (answer.state, answer.finding[:26]) == (State.WRONG, "it is for arm64, which API")
    project.images = {}
    (answer,) = answers(gibbon, "image").values()
    assert (answer.state, answer.finding[:23]) == (State.WRONG, "there is no such image,")


def test_taken_names_are_wrong_and_a_bucket_of_others_is_unknown(
    gibbon: Cluster, project: Project, google_door: Door
) -> None:
    project.taken = {"gibbon-network", bucket_name(gibbon.name, "audit", "a-project")}
    project.elsewhere = {bucket_name(gibbon.name, "backups", "a-project")}
    project.deleted = {role_id("gibbon", "volumes")}
    outcomes = answers(gibbon, "network", "buckets", "roles")
    states = {name: answer.state for name, answer in outcomes.items() if answer.state is not State.OK}
    assert states == {
        "names: network": State.WRONG,
        "names: buckets: audit": State.WRONG,
        "names: buckets: backups": State.UNKNOWN,
        "names: roles: volumes": State.WRONG,
    }
    assert "keeps its ID" in outcomes["names: roles: volumes"].finding


def test_a_refused_call_is_unknown_with_the_right_that_is_lacking_and_the_others_go_on(
    gibbon: Cluster, google_door: Door
) -> None:
    def denied(request: Request) -> Response | None:
        return refused(403, "forbidden", "denied") if "serviceusage" in request.host else None

    google_door.faults = [denied]
    outcomes = answers(gibbon, "services", "identity", "zones")
    assert outcomes["registrations: services"].state is State.UNKNOWN
    assert outcomes["registrations: services"].finding.endswith("; it needs serviceusage.services.get")
    assert {answer.state for name, answer in outcomes.items() if "services" not in name} == {State.OK}


def test_throttled_calls_are_repeated_and_then_unknown(gibbon: Cluster, google_door: Door, pauses: list[float]) -> None:
    busy = refused(429, "rateLimitExceeded", "Too many requests")
    google_door.faults = [lambda request: busy if "serviceusage" in request.host else None]
    answer = answers(gibbon, "services")["registrations: services"]
    assert (answer.state, "throttles" in answer.finding) == (State.UNKNOWN, True)
    assert len(google_door.log) == 3


def test_a_login_that_google_does_not_accept_is_no_answer(gibbon: Cluster, project: Project, google_door: Door) -> None:
    project.tokens = set()
    answer = answers(gibbon, "services")["registrations: services"]
    assert (answer.state, "gcloud auth application-default login" in answer.finding) == (State.UNKNOWN, True)
