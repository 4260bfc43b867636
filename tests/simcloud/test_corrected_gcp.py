"""Inputs of Google Cloud that simcloud refused until its rules were compared with the documentation, each with one that is
refused still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import Project

Changes = Callable[[Project], dict[str, Any]]
ATTACHMENT = "projects/apes/regions/europe-west4/interconnectAttachments/a"


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


def _with(**changes: Any) -> Changes:
    return lambda _: changes


def _scheduled(**scheduling: Any) -> Changes:
    return _with(scheduling={"instanceTerminationAction": "DELETE", **scheduling})


def _scope(scope: str) -> Changes:
    return lambda project: {"serviceAccount": {"email": project.of("account", "email"), "scopes": [scope]}}


def _keyed(place: str, location: str = "EU") -> Changes:
    def make(project: Project) -> dict[str, Any]:
        ring = project.make("key ring", name="backups", location=place)
        key = project.make("key", keyRing=ring.id)
        agent = "serviceAccount:service-1@gs-project-accounts.iam.gserviceaccount.com"
        role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
        project.make("member of a key", cryptoKeyId=key.id, member=agent, role=role)
        return {"location": location, "encryption": {"defaultKmsKeyName": key.id}}

    return make


def _leaving(**sources: list[str]) -> Changes:
    return _with(**{"direction": "EGRESS", "destinationRanges": ["10.1.0.0/16"], "sourceRanges": None, **sources})


def _second_nat(**changes: Any) -> Changes:
    def make(project: Project) -> dict[str, Any]:
        return {"name": f"not-{project.of('nat', 'name')}", **changes}

    return make


def _joined(address: str, **gateway: Any) -> Changes:
    def make(project: Project) -> dict[str, Any]:
        ends = [{"id": end, **gateway} for end in (0, 1)]
        own = project.make("gateway", name="private", vpnInterfaces=ends if gateway else None)
        single = {"redundancyType": "SINGLE_IP_INTERNALLY_REDUNDANT", "interfaces": [{"id": 0, "ipAddress": address}]}
        return {"vpnGateway": own.id, "peerExternalGateway": project.make("peer gateway", name="edge", **single).id}

    return make


def _peer(address: str) -> Changes:
    return _with(redundancyType="SINGLE_IP_INTERNALLY_REDUNDANT", interfaces=[{"id": 0, "ipAddress": address}])


def _unfinished(**condition: Any) -> Changes:
    return _with(lifecycleRules=[{"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": condition}])


# What, its page, kind, changes that are accepted, changes that are refused, words of the refusal.
ROWS: list[tuple[str, str, str, Changes, Changes, str]] = [
    ("a platform of one word", "Specify a minimum CPU platform", "instance",
     _with(minCpuPlatform="Intel Skylake"), _with(minCpuPlatform="intel skylake"), "such as Intel Ice Lake"),
    ("a platform of another maker", "Specify a minimum CPU platform", "instance",
     _with(minCpuPlatform="NVIDIA Grace"), _with(minCpuPlatform="Skylake"), "such as Intel Ice Lake"),
    ("an end at a time", "Scheduling.terminationTime", "template",
     _scheduled(terminationTime="2027-01-01T00:00:00Z"), _scheduled(provisioningModel="STANDARD"), "have a termination action"),
    ("an end with a reservation", "Scheduling.provisioningModel", "template",
     _scheduled(provisioningModel="RESERVATION_BOUND"), _scheduled(), "have a termination action"),
    ("N1 with more memory", "Instance.machine_type", "instance",
     _with(machineType="custom-2-15360-ext"), _with(machineType="custom-2-15360-more"), "such as n2-standard-4"),
    ("a share of a core with memory of choice", "Create a VM with a custom machine type", "instance",
     _with(machineType="e2-custom-micro-2048"), _with(machineType="e2-custom-micro"), "such as n2-standard-4"),
    ("a scope by its alias", "gcloud compute instances create: --scopes", "instance",
     _scope("monitoring"), _scope("metrics"), "write an address"),
    ("a key for the EU", "Cloud KMS locations", "bucket", _keyed("europe"), _keyed("eu"), "use a key of europe"),
    ("a key for a region of two", "Cloud KMS locations", "bucket", _keyed("eur4", "EUR4"), _keyed("europe", "EUR4"), "use a key of eur4"),
    ("packets that leave a range", "Firewall.direction", "firewall",
     _leaving(sourceRanges=["10.0.0.0/24"]), _leaving(sourceTags=["api"]), "Only INGRESS firewalls may have sourceTags"),
    ("names with numbers", "InstanceGroupManager.baseInstanceName", "group",
     _with(baseInstanceName="vm-###"), _with(baseInstanceName="vm###"), "Must be a match of regex"),
    ("names with numbers from 100", "InstanceGroupManager.baseInstanceName", "group",
     _with(baseInstanceName="vm-###[100]"), _with(baseInstanceName="vm-###100"), "Must be a match of regex"),
    ("a base name with a hyphen at its end", "InstanceGroupManager.baseInstanceName", "group",
     _with(baseInstanceName="vm-"), _with(baseInstanceName="Vm-"), "Must be a match of regex"),
    ("IPv6 inside a tunnel", "RouterInterface.ipRange", "interface",
     _with(ipRange="fdff:1::1/126"), _with(ipRange="fdff:2::1/126"), "an address of fdff:1::/64"),
    ("a range of IPv6 inside a tunnel", "RouterInterface.ipRange", "interface",
     _with(ipRange="fdff:1::1/64"), _with(ipRange="fdff:1::1/127"), "prefix /126 or less"),
    ("a wider range of IPv6 inside a tunnel", "RouterInterface.ipRange", "interface",
     _with(ipRange="fdff:1::1/112"), _with(ipRange="fdff:1::1/48"), "an address of fdff:1::/64"),
    ("private NAT beside public", "Cloud NAT overview", "nat",
     _second_nat(type="PRIVATE", natIpAllocateOption=None), _second_nat(), "has every subnetwork"),
    ("a peer behind Cloud Interconnect", "HA VPN over Cloud Interconnect overview", "tunnel",
     _joined("10.0.0.1", interconnectAttachment=ATTACHMENT), _joined("10.0.0.1"), "peer_ip may not be in RFC1918"),
    ("a peer in a provider's network", "HA VPN over Cloud Interconnect overview", "tunnel",
     _joined("100.80.121.94", interconnectAttachment=ATTACHMENT), _joined("100.80.121.94"), "peer_ip may not be in RFC1918"),
    ("a peer's address", "ExternalVpnGateway", "peer gateway", _peer("10.0.0.1"), _peer("169.254.0.1"), "an IPv4 address of the peer"),
    ("a peer's name", "ExternalVpnGateway", "peer gateway", _peer("192.168.0.1"), _peer("edge.apes"), "an IPv4 address of the peer"),
    ("uploads that are unfinished today", "BucketLifecycleRuleCondition.sendAgeIfZero", "bucket",
     _unfinished(age=0, sendAgeIfZero=True), _unfinished(age=0, sendAgeIfZero=True, numNewerVersions=1), "unfinished uploads"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes"), [(row[2], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_google_takes_is_accepted(project: Project, kind: str, changes: Changes) -> None:
    assert project.make(kind, **changes(project)).id


@pytest.mark.parametrize(
    ("kind", "changes", "words"), [(row[2], row[4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_google_refuses_is_refused_still(project: Project, kind: str, changes: Changes, words: str) -> None:
    with pytest.raises(RefusalError, match=words):
        project.make(kind, **changes(project))


def test_two_ranges_of_ipv6_inside_tunnels_are_apart(project: Project) -> None:
    first = project.make("interface", ipRange="fdff:1::1/126")
    assert project.make("interface", name="site-1", ipRange="fdff:1::5/126").id != first.id
    with pytest.raises(RefusalError, match="It overlaps fdff:1::1/126 of interface"):
        project.make("interface", name="site-2", ipRange="fdff:1::2/126")
    assert project.make("interface", name="site-3", ipRange="169.254.0.1/30").id
