"""The whole stack: made, unchanged, changed, destroyed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from stacks.gcp import permissions

ROOT = Path(__file__).resolve().parents[3]
KEEPS_DATA = {"Disk", "Instance", "Bucket", "CryptoKey", "KeyRing", "Secret"}
MADE_ANEW = {"RegionInstanceTemplate", "SecretVersion", "RegionInstanceGroupManager", "IAMMember"}
"""Of what a condition names, the pools are part."""


def test_a_cluster_is_built_found_unchanged_released_and_taken_away(gibbon):
    total = gibbon.summaries["up"]["create"]
    assert set(gibbon.summaries["up"]) == {"create"}
    assert gibbon.summaries["again"] == {"same": total}
    assert set(gibbon.summaries["release"]) == {"same", "update"}
    assert gibbon.summaries["destroy"] == {"delete": total}
    assert gibbon.left == []


def test_every_type_has_rules_in_the_simulated_cloud(run):
    assert run.unproven == {}


def test_a_small_cluster_has_few_resources_in_the_cloud(gibbon):
    assert len(gibbon.records) <= 72


def test_more_members_zones_and_api_servers_other_images_and_payloads_replace_nothing_that_keeps_data(gibbon):
    touched = {(operation, kind) for operation, kind, _ in gibbon.steps if operation not in ("same", "read")}
    assert {kind for operation, kind in touched if "replace" in operation or operation == "delete"} <= MADE_ANEW
    assert {operation for operation, kind in touched if kind in KEEPS_DATA} == {"create"}
    assert ("create", "Instance") in touched


def test_other_zones_take_another_group_of_api_servers_that_serves_before_the_former_goes(gibbon):
    order = [(operation, kind) for operation, kind, _ in gibbon.steps]
    former = order.index(("delete-replaced", "RegionInstanceGroupManager"))
    assert order.index(("create-replacement", "RegionInstanceGroupManager")) < former
    assert order.index(("update", "RegionBackendService")) < former


def test_a_pool_that_grows_is_left_to_the_autoscaler(gibbon):
    groups = {(operation, name) for operation, kind, name in gibbon.steps if kind == "InstanceGroupManager"}
    of_cpu = {name[-1]: operation for operation, name in groups if "-pool-cpu-" in name}
    assert of_cpu == {"a": "same", "b": "same", "c": "same", "f": "create"}
    assert {operation for operation, name in groups if "-pool-more-" in name} == {"create"}


def test_what_keeps_data_is_protected_by_the_engine_and_members_by_the_cloud_too(langur):
    hosts = {host.name for host in langur.plan.hosts()}
    protected = langur.protected()
    assert len(protected["Instance"]) == len(hosts) == 8
    assert len(protected["Disk"]) == 3
    assert len(protected["Bucket"]) == 4
    assert protected["CryptoKey"] and protected["KeyRing"]
    assert all(instance["deletionProtection"] for instance in langur.all("Instance"))


def test_outputs_hold_nothing_secret_but_what_is_marked_so(langur):
    outputs = str(langur.outputs["outputs"])
    assert "PRIVATE KEY" not in outputs
    assert json.loads(outputs)["endpoint"] == f"api.{langur.cluster.name}.internal:6443"


def test_permissions_of_who_runs_up_cover_every_type_that_is_declared(run):
    declared = {record.type for record in run.records}
    assert declared <= set(permissions.by_type())


def test_the_role_in_the_docs_is_made_from_the_permissions():
    assert (ROOT / "docs" / "gcp-role.yaml").read_text() == permissions.role()
    assert (ROOT / "docs" / "gcp-role-grants.yaml").read_text() == permissions.grants_role()


def test_the_operators_role_grants_nothing_on_the_project_and_the_granters_condition_names_what_the_stack_grants(run):
    assert "resourcemanager.projects.setIamPolicy" not in permissions.role()
    granted = {each["role"] for each in run.all("IAMMember")}
    project = next(iter(granted)).split("/")[1]
    listed = ", ".join(f"'{role}'" for role in sorted(granted))
    expected = f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"
    assert permissions.only_our_roles(project, [run.cluster.name]) == expected


def test_the_stack_imports_no_other_cloud():
    text = "import sys, stacks.gcp.provider; print([n for n in sys.modules if n.startswith(('pulumi_aws', 'pulumi_azure'))])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
