"""The whole stack: created, unchanged, changed, destroyed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from stacks.gcp import permissions
from tests.stacks.gcp.conftest import SLOW_GRANTS

ROOT = Path(__file__).resolve().parents[3]
KEEPS_DATA = {"Disk", "Instance", "Bucket", "CryptoKey", "KeyRing", "Secret"}
REPLACED = {"RegionInstanceTemplate", "SecretVersion", "RegionInstanceGroupManager", "IAMMember"}
"""Includes IAMMember, because the condition names the pools."""


def test_a_cluster_is_created_unchanged_released_and_destroyed(gibbon):
    total = gibbon.summaries["up"]["create"]
    assert set(gibbon.summaries["up"]) == {"create"}
    assert gibbon.summaries["again"] == {"same": total}
    assert set(gibbon.summaries["release"]) == {"same", "update"}
    assert gibbon.summaries["destroy"] == {"delete": total}
    assert gibbon.left == []


def test_a_first_up_waits_for_the_grants_of_the_key_and_then_succeeds(gibbon):
    waits = [text for text in gibbon.reported if "waits until a grant works: Google's agents for disks" in text]
    assert len(waits) == SLOW_GRANTS


def test_everything_that_uses_the_key_waits_until_its_grant_works(run):
    waiting = {
        resource["type"].rpartition(":")[2]
        for resource in run.resources
        if resource.get("resourceHooks") == {"OnError": ["waits-for-use-key"]}
    }
    assert waiting == {"Bucket", "Secret", "SecretVersion", "Disk", "Instance"}


def test_every_type_has_rules_in_the_simulated_cloud(run):
    assert run.unproven == {}


def test_a_small_cluster_has_few_resources_in_the_cloud(gibbon):
    assert len(gibbon.records) <= 72


def test_larger_clusters_and_new_images_and_payloads_replace_no_resource_with_data(gibbon):
    touched = {(operation, kind) for operation, kind, _ in gibbon.steps if operation not in ("same", "read")}
    assert {kind for operation, kind in touched if "replace" in operation or operation == "delete"} <= REPLACED
    assert {operation for operation, kind in touched if kind in KEEPS_DATA} == {"create"}
    assert ("create", "Instance") in touched


def test_new_zones_create_a_new_group_of_api_servers_before_the_former_is_deleted(gibbon):
    order = [(operation, kind) for operation, kind, _ in gibbon.steps]
    former = order.index(("delete-replaced", "RegionInstanceGroupManager"))
    assert order.index(("create-replacement", "RegionInstanceGroupManager")) < former
    assert order.index(("update", "RegionBackendService")) < former


def test_a_pool_that_grows_is_left_to_the_autoscaler(gibbon):
    groups = {(operation, name) for operation, kind, name in gibbon.steps if kind == "InstanceGroupManager"}
    of_cpu = {name[-1]: operation for operation, name in groups if "-pool-cpu-" in name}
    assert of_cpu == {"a": "same", "b": "same", "c": "same", "f": "create"}
    assert {operation for operation, name in groups if "-pool-more-" in name} == {"create"}


def test_eleven_pools_have_two_grants_of_the_role_for_volumes_and_one_of_that_for_machines(gibbon):
    grants = {(operation, name) for operation, kind, name in gibbon.steps if kind == "IAMMember"}
    of_volumes = {name.removeprefix("gibbon-"): operation for operation, name in grants if operation == "create"}
    assert of_volumes == {"volumes-2": "create"}


def test_resources_with_data_are_protected_by_the_engine_and_members_also_by_the_cloud(langur):
    hosts = {host.name for host in langur.plan.hosts()}
    protected = langur.protected()
    assert len(protected["Instance"]) == len(hosts) == 8
    assert len(protected["Disk"]) == 3
    assert len(protected["Bucket"]) == 4
    assert protected["CryptoKey"] and protected["KeyRing"]
    assert all(instance["deletionProtection"] for instance in langur.all("Instance"))


def test_outputs_contain_no_unmarked_secret(langur):
    outputs = str(langur.outputs["outputs"])
    assert "PRIVATE KEY" not in outputs
    assert json.loads(outputs)["endpoint"] == f"api.{langur.cluster.name}.internal:6443"


def test_permissions_of_the_operator_cover_every_declared_type(run):
    declared = {record.type for record in run.records}
    assert declared <= set(permissions.by_type())


def test_the_documented_roles_match_the_permissions():
    assert (ROOT / "docs" / "gcp-role.yaml").read_text() == permissions.role()
    assert (ROOT / "docs" / "gcp-role-grants.yaml").read_text() == permissions.grants_role()


def test_the_page_enables_every_api_of_the_stacks_types():
    """Without one of them the first resource of its type is refused. With `storage.file` the driver calls one more."""
    page = (ROOT / "docs" / "start" / "google-cloud.md").read_text()
    command = page[page.index("gcloud services enable") : page.index("2. Create the roles of the operator")]
    assert sorted(re.findall(r"[a-z]+\.googleapis\.com", command)) == list(permissions.services())
    assert "With `storage.file`, also enable `file.googleapis.com`" in page


def test_only_the_granter_role_grants_on_the_project_and_its_condition_names_the_stacks_roles(run):
    assert "resourcemanager.projects.setIamPolicy" not in permissions.role()
    granted = {member["role"] for member in run.all("IAMMember")}
    project = next(iter(granted)).split("/")[1]
    listed = ", ".join(f"'{role}'" for role in sorted(granted))
    expected = f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"
    assert permissions.only_our_roles(project, [run.cluster.name]) == expected


def test_the_stack_imports_no_other_cloud():
    text = "import sys, stacks.gcp.provider; print([n for n in sys.modules if n.startswith(('pulumi_aws', 'pulumi_azure'))])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
