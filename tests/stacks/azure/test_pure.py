"""Tests without an engine: names, images, the key that nobody has, credentials, permissions of operators."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import catalogue
from cluster.check.azure import OWN_TAGS
from cluster.pools import Pool
from cluster.spec import Cloud
from stacks.azure.credentials import missing
from stacks.azure.hosts import image, nobodys_key
from stacks.azure.permissions import ACTIONS, WAITS, operators_role, resource_providers
from stacks.azure.tags import (
    GENERATED,
    account_name,
    autoscaler_tags,
    files_name,
    host_prefix,
    scale_set_name,
    tags,
    vault_name,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "azure.md"
START = ROOT / "docs" / "start" / "azure.md"
ROLE = re.compile(r"(?<=```json\n)\{.*?^\}\n(?=```)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["a", "7", "a--b", "0-9-" * 15 + "abc", "jaguar", "x" * 63, "abcdefghijklmn--o"])
def test_global_names_are_within_azures_limits(build, name):
    cluster = build({"name": name})
    limits = catalogue.of(Cloud.AZURE).names
    vault, account, files = vault_name(cluster), account_name(cluster), files_name(cluster)
    assert re.fullmatch(r"[a-z](?!.*--)[a-z0-9-]*", vault)
    assert re.fullmatch(r"[a-z0-9]+", account)
    assert len(vault) + GENERATED <= limits["key_vault"].max
    for name_ in (account, files):
        assert len(name_) + GENERATED <= limits["storage_account"].max
    assert files != account


def test_names_of_pools_are_shortened_and_stay_unique():
    long, other = "p" * 63, "p" * 62 + "q"
    assert len(scale_set_name(long)) <= catalogue.of(Cloud.AZURE).names["scale_set"].max
    assert scale_set_name(long) != scale_set_name(other)
    assert host_prefix(long) != host_prefix(other)
    assert (host_prefix("cpu"), len(host_prefix(long))) == ("cpu-", 15)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (None, "publisher"),
        ("Canonical:ubuntu-24_04-lts:server:latest", "publisher"),
        ("/subscriptions/1/resourceGroups/i/providers/Microsoft.Compute/images/gpu", "id"),
        ("/CommunityGalleries/g/Images/i/Versions/latest", "community_gallery_image_id"),
        ("/SharedGalleries/g/Images/i/Versions/latest", "shared_gallery_image_id"),
    ],
)
def test_an_image_has_one_of_azures_formats(text, field):
    assert getattr(image(text), field)


@pytest.mark.parametrize("text", ["debian-12", "ami-0123456789abcdef0", "a:b:c"])
def test_other_image_names_are_refused_with_the_valid_formats(text):
    with pytest.raises(ValueError, match="publisher:offer:sku:version"):
        image(text)


def test_the_key_that_nobody_has_is_a_point_of_its_curve():
    """RFC 8032, 5.1.3: y and the sign of x, and x squared is a square."""
    kind, blob = nobodys_key().split()
    raw = base64.b64decode(blob)
    assert kind == "ssh-ed25519"
    assert raw[:19] == b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20"
    p, y = 2**255 - 19, int.from_bytes(raw[19:], "little") & (1 << 255) - 1
    d = -121665 * pow(121666, -1, p) % p
    square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
    root = pow(square, (p + 3) // 8, p)
    root = root if root * root % p == square else root * pow(2, (p - 1) // 4, p) % p
    assert len(raw) == 51
    assert root * root % p == square


def test_ssh_accepts_the_key_that_nobody_has(tmp_path):
    (tmp_path / "key.pub").write_text(nobodys_key())
    result = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], check=False, capture_output=True)
    assert (result.returncode, b"ED25519" in result.stdout) == (0, True)


def test_a_scale_set_has_a_tag_for_each_label_and_taint_and_seven_others(build):
    """`cluster.check.azure` depends on this number."""
    pool = Pool.model_validate({"machine": "m", "labels": {f"example.org/{number}": "x" for number in range(9)}})
    tags_ = {**tags(build({}), "pool-cpu"), **autoscaler_tags(build({}), "cpu", pool)}
    assert len(tags_) == 9 + OWN_TAGS


PRINCIPAL = {"ARM_CLIENT_ID": "1", "ARM_TENANT_ID": "2", "ARM_SUBSCRIPTION_ID": "3"}


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ["nobody is logged in", "az login"]),
        (
            {"ARM_CLIENT_ID": "1"},
            ["ARM_TENANT_ID is not set", "ARM_CLIENT_ID has no credential", "ARM_SUBSCRIPTION_ID is not set"],
        ),
        ({"ARM_CLIENT_SECRET": "s"}, ["ARM_CLIENT_ID", "ARM_TENANT_ID", "ARM_SUBSCRIPTION_ID"]),
        ({**PRINCIPAL, "ARM_CLIENT_SECRET": "s"}, []),
        ({**PRINCIPAL, "ARM_CLIENT_CERTIFICATE_PATH": "/nowhere/c.pfx"}, ["/nowhere/c.pfx, which does not exist"]),
        ({**PRINCIPAL, "ARM_USE_OIDC": "true"}, ["ARM_USE_OIDC is set without a token"]),
        ({**PRINCIPAL, "ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "t"}, []),
        ({"ARM_USE_MSI": "true"}, ["ARM_SUBSCRIPTION_ID is not set"]),
        ({"ARM_USE_MSI": "true", "ARM_SUBSCRIPTION_ID": "3"}, []),
    ],
)
def test_missing_credentials_are_named_with_a_way_to_get_them(tmp_path, environment, words):
    problems = missing({"HOME": str(tmp_path), **environment})
    assert bool(problems) == bool(words)
    assert all(any(word in problem for problem in problems) for word in words)


def test_a_login_of_the_azure_cli_is_sufficient(tmp_path):
    (tmp_path / "azureProfile.json").write_text("{}")
    assert missing({"AZURE_CONFIG_DIR": str(tmp_path)}) == []


def test_the_documented_role_matches_the_table_and_has_no_wildcard():
    """Compare the role in the page with the table. MENAGERIE_UPDATE_GOLDEN=1 rewrites it."""
    text = PAGE.read_text()
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        text = ROLE.sub(lambda _: operators_role(), text)
        PAGE.write_text(text)
    (documented,) = ROLE.findall(text)
    assert documented == operators_role()
    assert not [action for action in json.loads(documented)["Actions"] if "*" in action]


OF_LONG_OPERATIONS = {
    "Microsoft.Compute/locations/diskOperations/read",
    "Microsoft.Compute/locations/operations/read",
    "Microsoft.KeyVault/locations/operationResults/read",
    "Microsoft.Network/locations/operationResults/read",
    "Microsoft.Network/locations/operations/read",
    "Microsoft.Network/privateDnsOperationResults/read",
    "Microsoft.Network/privateDnsOperationStatuses/read",
    "Microsoft.Resources/subscriptions/operationresults/read",
    "Microsoft.Storage/operations/read",
}
"""As "Azure permissions" and Microsoft's built-in roles name them."""


def test_the_role_reads_the_status_of_the_long_operations_of_every_provider():
    """Without them the first network, load balancer or gateway stops: its creation is accepted, then polled."""
    actions = set(json.loads(operators_role())["Actions"])
    assert {action for action in actions if "operation" in action.lower()} == OF_LONG_OPERATIONS
    assert set(WAITS) == {type_.split(":")[1] for type_ in ACTIONS}


def test_the_role_has_what_azure_requires_for_flow_logs():
    """ "Azure RBAC permissions for Network Watcher", flow logs."""
    watcher, account = "Microsoft.Network/networkWatchers", "Microsoft.Storage/storageAccounts"
    required = {f"{watcher}/flowLogs/{verb}" for verb in ("read", "write", "delete")}
    required |= {f"{watcher}/{call}/action" for call in ("configureFlowLog", "queryFlowLogStatus")} | {
        f"{watcher}/read"
    }
    required |= {f"{account}/{call}/action" for call in ("listAccountSas", "listKeys", "listServiceSas")}
    assert required <= set(json.loads(operators_role())["Actions"])


def test_the_page_registers_every_resource_provider_of_the_stacks_types():
    registered = re.findall(r"az provider register --namespace (\S+)", START.read_text())
    assert registered == list(resource_providers())
    assert "Microsoft.Insights" in registered


def test_the_azure_stack_imports_no_other_cloud():
    absent = ("pulumi_aws", "pulumi_gcp", "stacks.aws", "stacks.gcp", "lab")
    program = f"import sys, stacks.azure.provider; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n")
