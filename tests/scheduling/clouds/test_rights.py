"""The rights of the autoscaler: the documented ones, and those that its requests need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from cluster.tags import of_cluster
from controllers.autoscaler import clouds
from controllers.autoscaler.choose import groups_of
from controllers.autoscaler.clouds import rights
from controllers.autoscaler.clouds.azure import rights as azure_rights
from controllers.autoscaler.clouds.gcp import rights as google_rights
from stacks.azure.tags import autoscaler_tags
from stacks.azure.tags import tags as azure_tags
from stacks.gcp.tags import labels
from tests.scheduling.clouds.door import Door, Request, Upstream
from tests.scheduling.clouds.fake_azure import MANAGEMENT, Microsoft
from tests.scheduling.clouds.fake_google import TOKEN, Google, split

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", sorted(rights.documents("CLUSTER")))
def test_the_documented_rights_are_current(name: str) -> None:
    file, text = ROOT / "docs" / name, rights.documents("CLUSTER")[name]
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        file.write_text(text)
    assert file.read_text() == text


def use_everything(cluster: Cluster, pool: str, more: int) -> None:
    pools = clouds.groups_of(cluster, dict)
    size = pools.read()[pool].size
    pools.grow(pool, size + more)
    pools.remove(pool, [pools.read()[pool].machines[0].id])


def test_azures_role_has_exactly_the_rights_that_are_used(
    opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    koala = load_cluster(ROOT / "examples/azure-small/cluster.yaml")
    microsoft = Microsoft()
    marks = {**azure_tags(koala, "pool-cpu"), **autoscaler_tags(koala, "cpu", koala.spec.pools["cpu"])}
    result = microsoft.add("koala_workers", "pool-cpu", marks, 4)
    result.capacity, result.state = 5, "Failed"
    door = opened(microsoft.answer)
    own = {"CLIENT_ID": "a-client", "CLIENT_SECRET": "a-secret", "TENANT_ID": "a-tenant", "SUBSCRIPTION_ID": "a-sub"}
    for name, value in own.items():
        monkeypatch.setenv(f"ARM_{name}", value)
    use_everything(koala, "cpu", 2)
    used = {operation for each in door.log if each.host == MANAGEMENT for operation in of_azure(each)}
    assert used == set(azure_rights.ACTIONS)


def of_azure(request: Request) -> set[str]:
    kind = "Microsoft.Compute/virtualMachineScaleSets"
    path, query = split(request)
    what = path.rpartition("/")[2]
    if what == "virtualMachines":
        viewed = {f"{kind}/virtualMachines/instanceView/read"} if query.get("$expand") == "instanceView" else set()
        return {f"{kind}/virtualMachines/read"} | viewed
    if what in ("delete", "instanceView"):
        return {f"{kind}/delete/action" if what == "delete" else f"{kind}/instanceView/read"}
    return {f"{kind}/{'write' if request.method == 'PATCH' else 'read'}"}


def test_googles_role_has_exactly_the_rights_that_are_used(
    opened: Callable[[Upstream], Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    gibbon = load_cluster(ROOT / "examples/gcp-small/cluster.yaml")
    google = Google()
    for zone in map(str, gibbon.spec.control_plane.zones):
        google.add(zone, f"gibbon-cpu-{zone}", of_cluster(gibbon.name) | labels("worker") | {"pool": "cpu"}, 1)
    door = opened(google.answer)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    use_everything(gibbon, "cpu", 2)
    verbs = {
        "listManagedInstances": "get",
        "resize": "update",
        "deleteInstances": "update",
        "instanceGroupManagers": "list",
    }
    used = set()
    for each in door.log:
        what = split(each)[0].rpartition("/")[2]
        known = "compute.instanceTemplates.list" if what == "instanceTemplates" else ""
        used.add(known or f"compute.instanceGroupManagers.{verbs[what]}")
    assert used == set(google_rights.PERMISSIONS)


@pytest.mark.parametrize(
    ("example", "kind", "library"),
    [
        ("aws-small", "AwsGroups", "boto3"),
        ("azure-small", "AzureGroups", "azure"),
        ("gcp-small", "GcpGroups", "google.cloud"),
    ],
)
def test_a_clusters_groups_are_those_of_its_cloud_and_no_request_is_sent_yet(
    example: str, kind: str, library: str
) -> None:
    result = groups_of(load_cluster(ROOT / f"examples/{example}/cluster.yaml"), lambda: pytest.fail("asked"))
    assert type(result).__name__ == kind
    assert library in sys.modules


@pytest.mark.parametrize(
    "modules", ["cli.actions.build", "cli.failures, controllers.autoscaler.choose, controllers.autoscaler.run"]
)
def test_the_command_and_the_loop_load_no_cloud_library(modules: str) -> None:
    libraries = ("boto3", "botocore", "azure", "msal", "google.auth", "google.cloud", "google.api_core")
    program = f"import sys, {modules}; print([name for name in sys.modules if name.startswith({libraries!r})])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
