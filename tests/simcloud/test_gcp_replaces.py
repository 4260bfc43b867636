"""What Google Cloud cannot change in place, according to terraform-provider-google (ForceNew)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simcloud.gcp_support import KINDS

# kind -> properties whose change replaces; then properties whose change does not.
FIXED: dict[str, tuple[str, str]] = {
    "network": ("name autoCreateSubnetworks description", "mtu routingMode"),
    "subnetwork": ("name network description region", "privateIpGoogleAccess secondaryIpRanges logConfig"),
    "firewall": ("name direction", "allows denies sourceRanges sourceServiceAccounts network priority disabled"),
    "firewall policy": ("name region policyType", "rules description"),
    "association of a policy": ("name attachmentTarget firewallPolicy region", ""),
    "address": ("name address addressType description network networkTier purpose subnetwork region", "labels"),
    "global address": ("name address addressType description network prefixLength purpose", "labels"),
    "route": ("name destRange network nextHopGateway nextHopIp nextHopIlb nextHopVpnTunnel priority tags", ""),
    "router": ("name network encryptedInterconnectRouter", "bgp description"),
    "nat": ("name router type", "natIps minPortsPerVm logConfig subnetworks"),
    "interface": ("name router vpnTunnel ipRange", ""),
    "peer": ("name router interface", "peerAsn advertiseMode peerIpAddress advertisedIpRanges"),
    "route policy": ("name router region", "terms"),
    "gateway": ("name network description stackType vpnInterfaces", "labels"),
    "peer gateway": ("name description interfaces redundancyType", "labels"),
    "tunnel": ("name sharedSecret router vpnGateway vpnGatewayInterface peerExternalGateway ikeVersion", "labels"),
    "health check": ("name region", "httpsHealthCheck checkIntervalSec timeoutSec description"),
    "global health check": ("name", "tcpHealthCheck sourceRegions"),
    "backend": ("name loadBalancingScheme network region", "backends healthChecks protocol timeoutSec"),
    "forwarding rule": (
        "name ipAddress ports allPorts backendService subnetwork ipProtocol",
        "allowGlobalAccess labels",
    ),
    "endpoint of Google's APIs": ("name ipAddress network", "labels target"),
    "template": ("name machineType metadata disks networkInterfaces labels serviceAccount tags", ""),
    "regional template": ("name machineType metadata region", ""),
    "group": ("name baseInstanceName distributionPolicyZones region", "versions updatePolicy targetSize namedPorts"),
    "zonal group": ("name baseInstanceName zone", "versions targetSize"),
    "instance group": ("name network zone", "instances namedPorts"),
    "instance": (
        "name zone bootDisk guestAccelerators hostname scratchDisks metadataStartupScript reservationAffinity",
        "machineType labels tags deletionProtection metadata serviceAccount attachedDisks",
    ),
    "disk": ("name type zone image snapshot diskEncryptionKey description", "labels provisionedIops"),
    "attached disk": ("disk instance deviceName mode zone", ""),
    "policy": ("name region", "snapshotSchedulePolicy description"),
    "policy of a disk": ("name disk zone", ""),
    "reservation": ("name zone description specificReservationRequired", ""),
    "zone": ("name dnsName visibility", "description privateVisibilityConfig labels"),
    "record": ("name managedZone", "rrdatas ttl type"),
    "key ring": ("name location", ""),
    "key": ("name keyRing purpose destroyScheduledDuration importOnly", "rotationPeriod labels"),
    "secret": ("secretId tags", "labels annotations deletionProtection"),
    "secret version": ("secret secretData isSecretDataBase64", "enabled"),
    "account": ("accountId project", "displayName description disabled"),
    "role": ("roleId project", "permissions title stage"),
    "service agent": ("service project", ""),
    "log sink": ("name project customWriterIdentity", "destination filter description"),
    "bucket": ("name location enableObjectRetention", "versioning labels lifecycleRules forceDestroy storageClass"),
    "object": ("name bucket source contentType", "content retention"),
    "binding of a key": ("cryptoKeyId role condition", "members"),
    "binding of a secret": ("secretId role condition", "members"),
    "member of the project": ("member role condition", ""),
    "member of a key": ("cryptoKeyId member role", ""),
    "member of a key ring": ("keyRingId member role", ""),
    "member of a secret": ("secretId member role", ""),
    "member of a bucket": ("bucket member role", ""),
    "member of an account": ("serviceAccountId member role", ""),
}


def test_every_kind_is_in_the_table() -> None:
    assert set(FIXED) == set(KINDS) - {"public address"}


@pytest.mark.parametrize("kind", FIXED)
def test_only_changes_of_fixed_properties_replace(api: Any, kind: str) -> None:
    fixed, free = FIXED[kind]
    token, _ = KINDS[kind]
    names = {*fixed.split(), *free.split()}
    old, new = ({name: f"{name} {word}" for name in names} for word in ("before", "after"))
    assert set(api("gcp").replaces(token, old, new)) == set(fixed.split())


@pytest.mark.parametrize(
    ("kind", "old", "new", "replaces"),
    [
        ("disk", {"size": 100}, {"size": 200}, []),
        ("disk", {"size": 100}, {"size": 50}, ["size"]),
        ("bucket", {"retentionPolicy": {"isLocked": False}}, {"retentionPolicy": {"isLocked": True}}, []),
        ("bucket", {"retentionPolicy": {"isLocked": True}}, {"retentionPolicy": {"isLocked": False}},
         ["retentionPolicy.isLocked"]),
        ("secret", {"replication": {"userManaged": {"replicas": [{"location": "a"}]}}},
         {"replication": {"userManaged": {"replicas": [{"location": "b"}]}}},
         ["replication.userManaged.replicas[0].location"]),
        ("instance", {"networkInterfaces": [{"subnetwork": "a", "networkIp": "10.0.0.2"}]},
         {"networkInterfaces": [{"subnetwork": "a", "networkIp": "10.0.0.3"}]}, ["networkInterfaces[0].networkIp"]),
        ("instance", {"networkInterfaces": [{"subnetwork": "a", "networkIp": "10.0.0.2"}]},
         {"networkInterfaces": [{"subnetwork": "b", "networkIp": "10.1.0.2"}]}, []),
        ("instance", {"networkInterfaces": [{"subnetwork": "a"}]},
         {"networkInterfaces": [{"subnetwork": "a"}, {"subnetwork": "b"}]}, ["networkInterfaces[1].subnetwork"]),
        ("instance", {"scheduling": {"preemptible": False}}, {"scheduling": {"preemptible": True}},
         ["scheduling.preemptible"]),
        ("key", {"versionTemplate": {"protectionLevel": "SOFTWARE", "algorithm": "a"}},
         {"versionTemplate": {"protectionLevel": "HSM", "algorithm": "b"}}, ["versionTemplate.protectionLevel"]),
        ("policy", {"groupPlacementPolicy": {"gpuTopology": "1x72"}}, {"groupPlacementPolicy": {"gpuTopology": "1x64"}},
         ["groupPlacementPolicy.gpuTopology"]),
    ],
)  # fmt: skip
def test_some_changes_of_a_property_replace(api: Any, kind: str, old: Any, new: Any, replaces: list[str]) -> None:
    assert api("gcp").replaces(KINDS[kind][0], old, new) == replaces
