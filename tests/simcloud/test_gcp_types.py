"""Every type of Google Cloud: create, change, delete and show a valid resource."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.simcloud.gcp import CLOUD
from sandbox.simcloud.rules import Offers, RefusalError, ResourceType
from sandbox.simcloud.simulation import SimulatedCloud
from tests.simcloud.gcp_support import AGENT, KINDS, REGION, Project
from tests.simcloud.test_types import _classes


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


def test_a_good_resource_of_every_type_is_accepted(project: Project) -> None:
    for kind in KINDS:
        assert project[kind].id, kind
    assert {token for token, _ in KINDS.values()} == set(CLOUD.types)
    assert project.world.unproven == {}


@pytest.mark.parametrize(
    ("kind", "id_"),
    [
        ("firewall", "projects/apes/global/firewalls/api"),
        ("firewall policy", "projects/apes/regions/europe-west4/firewallPolicies/apes"),
        ("association of a policy",
         "projects/apes/regions/europe-west4/firewallPolicies/apes/associations/apes"),
        ("global address", "projects/apes/global/addresses/apis"),
        ("nat", "apes/europe-west4/apes/out"),
        ("interface", "europe-west4/apes/site-0"),
        ("peer", "projects/apes/regions/europe-west4/routers/apes/site-0"),
        ("tunnel", "projects/apes/regions/europe-west4/vpnTunnels/site"),
        ("peer gateway", "projects/apes/global/externalVpnGateways/site"),
        ("health check", "projects/apes/regions/europe-west4/healthChecks/api"),
        ("backend", "projects/apes/regions/europe-west4/backendServices/api"),
        ("disk", "projects/apes/zones/europe-west4-a/disks/etcd-0"),
        ("attached disk", "projects/apes/zones/europe-west4-a/instances/etcd-0/etcd-0"),
        ("policy of a disk", "apes/europe-west4-a/etcd-0/daily"),
        ("zone", "projects/apes/managedZones/apes"),
        ("record", "projects/apes/managedZones/apes/rrsets/api.apes.internal./A"),
        ("key", "projects/apes/locations/europe-west4/keyRings/apes/cryptoKeys/disks"),
        ("secret", "projects/apes/secrets/menagerie_apes_ca"),
        ("account", "projects/apes/serviceAccounts/etcd-0@apes.iam.gserviceaccount.com"),
        ("role", "projects/apes/roles/reader"),
        ("route policy", "projects/apes/regions/europe-west4/routers/apes/routePolicies/from-site"),
        ("service agent", "projects/apes/services/secretmanager.googleapis.com"),
        ("log sink", "projects/apes/sinks/flows"),
        ("bucket", "apes-backups"),
        ("member of the project",
         "apes/roles/logging.logWriter/serviceAccount:etcd-0@apes.iam.gserviceaccount.com"),
        ("member of a secret", ("projects/apes/secrets/menagerie_apes_ca/roles/viewer/"
         "serviceAccount:etcd-0@apes.iam.gserviceaccount.com")),
        ("binding of a key",
         "projects/apes/locations/europe-west4/keyRings/apes/cryptoKeys/disks/roles/viewer"),
        ("binding of a secret", "projects/apes/secrets/menagerie_apes_ca/roles/viewer"),
        ("member of a bucket", "b/apes-backups/roles/viewer/serviceAccount:etcd-0@apes.iam.gserviceaccount.com"),
    ],
)  # fmt: skip
def test_ids_have_the_provider_s_format(project: Project, kind: str, id_: str) -> None:
    assert project[kind].id == id_


@pytest.mark.parametrize(
    ("kind", "output", "value"),
    [
        ("account", "email", "etcd-0@apes.iam.gserviceaccount.com"),
        ("account", "member", "serviceAccount:etcd-0@apes.iam.gserviceaccount.com"),
        ("group", "instanceGroup", ("https://www.googleapis.com/compute/v1/projects/apes/regions/europe-west4/"
         "instanceGroups/api")),
        ("health check", "type", "HTTPS"),
        ("forwarding rule", "ipAddress", "10.0.0.5"),
        ("peer", "ipAddress", "169.254.0.1"),
        ("peer", "peerIpAddress", "169.254.0.2"),
        ("tunnel", "peerIp", "198.51.100.1"),
        ("zone", "nameServers", ["ns-gcp-private.googledomains.com."]),
        ("secret version", "version", "1"),
        ("bucket", "url", "gs://apes-backups"),
        ("disk", "effectiveLabels", {}),
        ("address", "purpose", "GCE_ENDPOINT"),
        ("attached disk", "zone", "europe-west4-a"),
        ("instance group", "size", 0),
    ],
)  # fmt: skip
def test_outputs_that_stacks_read_exist(project: Project, kind: str, output: str, value: object) -> None:
    assert project.of(kind, output) == value


def test_both_ends_of_a_vpn_gateway_have_different_permanent_addresses(project: Project) -> None:
    ends = project.of("gateway", "vpnInterfaces")
    assert [end["id"] for end in ends] == [0, 1]
    assert len({end["ipAddress"] for end in ends}) == 2
    assert project.api.update(project["gateway"], labels={"a": "b"}).outputs["vpnInterfaces"] == ends


def test_a_secret_s_name_has_the_project_s_number_and_its_versions_are_numbered(project: Project) -> None:
    name = project.of("secret", "name")
    number = project.api.simulation.invoke(project.api.settings, "gcp:organizations/getProject:getProject", {})[
        "number"
    ]
    assert name == f"projects/{number}/secrets/menagerie_apes_ca"
    assert [project.make("secret version").id for _ in range(2)] == [f"{name}/versions/1", f"{name}/versions/2"]


def test_the_number_of_a_deleted_version_is_not_reused(project: Project) -> None:
    project.api.delete(project.make("secret version"))
    assert project.make("secret version").outputs["version"] == "2"


def test_an_address_that_google_chooses_is_free_and_permanent(project: Project) -> None:
    first = project.make("address", name="a", address=None)
    second = project.make("address", name="b", address=None)
    assert (first.outputs["address"], second.outputs["address"]) == ("10.0.0.2", "10.0.0.3")
    interfaces = [{"subnetwork": project["subnetwork"].id}]
    host = project.make("instance", networkInterfaces=interfaces)
    assert host.outputs["networkInterfaces"][0]["networkIp"] == "10.0.0.4"
    project.api.delete(first)
    again = project.api.update(host, labels={"a": "b"})
    assert again.outputs["networkInterfaces"][0]["networkIp"] == "10.0.0.4"


def test_a_load_balancer_without_an_address_gets_a_free_one_and_keeps_it(project: Project) -> None:
    project["address"]
    balancer = project.make("forwarding rule", ipAddress=None)
    assert balancer.outputs["ipAddress"] == "10.0.0.2"
    project.make("address", name="b", address=None)
    assert project.api.update(balancer, labels={"a": "b"}).outputs["ipAddress"] == "10.0.0.2"


def test_public_addresses_are_unique_and_permanent(project: Project) -> None:
    first, second = project.make("public address"), project.make("public address", name="other")
    assert first.outputs["address"] != second.outputs["address"]
    assert project.api.update(first, labels={"a": "b"}).outputs["address"] == first.outputs["address"]


def test_an_endpoint_of_google_s_apis_keeps_its_address_from_deletion(project: Project) -> None:
    address = project["global address"]
    endpoint = project.make("endpoint of Google's APIs", ipAddress=address.outputs["address"])
    assert address.key in endpoint.uses


def test_a_full_subnetwork_has_no_free_address(project: Project) -> None:
    small = project.make("subnetwork", name="small", ipCidrRange="10.1.0.0/29").id
    for i in range(4):
        project.make("address", name=f"a{i}", subnetwork=small, address=None)
    with pytest.raises(RefusalError, match="IP space of .*small' is exhausted"):
        project.make("address", name="last", subnetwork=small, address=None)


def test_functions_return_facts_about_the_project(project: Project) -> None:
    def invoke(token: str, **arguments: object) -> Any:
        return project.api.simulation.invoke(project.api.settings, token, arguments)

    number = invoke("gcp:organizations/getProject:getProject")["number"]
    account = invoke("gcp:storage/getProjectServiceAccount:getProjectServiceAccount")
    assert account["emailAddress"] == f"service-{number}@gs-project-accounts.iam.gserviceaccount.com"
    image = invoke("gcp:compute/getImage:getImage", project="debian-cloud", family="debian-12")
    assert image["selfLink"].startswith("https://www.googleapis.com/compute/v1/projects/debian-cloud/global/images/deb")
    with pytest.raises(RefusalError, match="one of `family,filter,name` must be specified"):
        invoke("gcp:compute/getImage:getImage")


def test_adding_an_existing_member_is_not_an_error(project: Project) -> None:
    assert project.make("member of a bucket").id == project.make("member of a bucket").id


@pytest.mark.parametrize("kind", ["disk", "secret", "bucket", "instance"])
def test_a_key_can_be_used_only_by_a_service_that_may_encrypt_with_it(project: Project, kind: str) -> None:
    key = project["key"].id
    changes: dict[str, dict[str, object]] = {
        "disk": {"diskEncryptionKey": {"kmsKeySelfLink": key}},
        "secret": {"replication": {"userManaged": {"replicas": [
            {"location": REGION, "customerManagedEncryption": {"kmsKeyName": key}}]}}},
        "bucket": {"encryption": {"defaultKmsKeyName": key}},
        "instance": {"bootDisk": {"kmsKeySelfLink": f"{key}/cryptoKeyVersions/1"}},
    }  # fmt: skip
    agents = {
        "secret": "service-1@gcp-sa-secretmanager.iam.gserviceaccount.com",
        "bucket": "service-1@gs-project-accounts.iam.gserviceaccount.com",
    }
    member = f"serviceAccount:{agents.get(kind, AGENT)}"
    project.make("member of a key", member=member, role="roles/viewer")
    with pytest.raises(RefusalError, match="[Pp]ermission .*roles/cloudkms.cryptoKeyEncrypterDecrypter on the key"):
        project.make(kind, **changes[kind])
    project.make("member of a key", member=member, role="roles/cloudkms.cryptoKeyEncrypterDecrypter")
    project.make(kind, **changes[kind])


def test_a_binding_lets_each_of_its_members_use_a_key(project: Project) -> None:
    disk = {"diskEncryptionKey": {"kmsKeySelfLink": project["key"].id}}
    binding = project.make(
        "binding of a key",
        role="roles/cloudkms.cryptoKeyEncrypterDecrypter",
        members=["serviceAccount:service-1@gs-project-accounts.iam.gserviceaccount.com"],
    )
    with pytest.raises(RefusalError, match="on the key first"):
        project.make("disk", **disk)
    project.api.update(binding, members=[*binding.inputs["members"], f"serviceAccount:{AGENT}"])
    project.make("disk", **disk)


@pytest.mark.parametrize("kind", ["member of a key ring", "member of the project"])
def test_a_role_on_a_parent_of_a_key_applies_to_the_key(project: Project, kind: str) -> None:
    role = project.make("role", permissions=["cloudkms.cryptoKeyVersions.useToEncrypt"]).id
    project.make(kind, member=f"serviceAccount:{AGENT}", role=role)
    project.make("disk", diskEncryptionKey={"kmsKeySelfLink": project["key"].id})


def test_a_new_grant_works_after_some_uses_in_vain(project: Project) -> None:
    project.api.simulation = SimulatedCloud(CLOUD, project.api.world, Offers(slow_grants=2))
    project.make("member of a key", member=f"serviceAccount:{AGENT}", role="roles/cloudkms.cryptoKeyEncrypterDecrypter")
    disk = {"diskEncryptionKey": {"kmsKeySelfLink": project["key"].id}}
    for _ in range(2):
        with pytest.raises(RefusalError, match="Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied"):
            project.make("disk", **disk)
    project.make("disk", **disk)


def _paths(type_: ResourceType) -> Iterator[str]:
    yield from (*type_.replace_on, *type_.replace_if, *(reference.path for reference in type_.references))


def _getters(class_: type) -> dict[str, Any]:
    getters = {name: member.fget for name, member in inspect.getmembers(class_) if isinstance(member, property)}
    return {getattr(getter, "_pulumi_name", name): getter for name, getter in getters.items()}


@pytest.mark.parametrize("type_", CLOUD.types.values(), ids=lambda type_: type_.token)
def test_every_path_of_a_row_exists_in_the_sdk_s_types(type_: ResourceType) -> None:
    module, name = _classes("gcp")[type_.token]
    sdk_module = sys.modules[getattr(importlib.import_module(module), name).__module__]
    nested = importlib.import_module(f"{module}._inputs") if "._" not in module else None
    for path in set(_paths(type_)) - {"*"}:
        class_ = getattr(sdk_module, f"{name}InitArgs", None) or getattr(sdk_module, f"{name}Args")
        for part in path.split("."):
            property_, is_list = part.removesuffix("[]"), part.endswith("[]")
            assert property_ in _getters(class_), path
            kind = str(_getters(class_)[property_].__annotations__["return"])
            assert not is_list or "Sequence" in kind, path
            inner = [text for text in re.findall(r"[A-Z]\w+Args", kind) if hasattr(nested, text)]
            class_ = getattr(nested, inner[0]) if inner else class_
