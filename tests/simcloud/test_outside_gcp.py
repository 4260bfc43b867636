"""Inputs that Google Cloud refused of others, from reports of failed runs and from its documentation.

They were collected without a look at simcloud's rules; each has the report, or the page of the documentation.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import REGION, Project, policy_rules

CONDITION = {"title": "a", "expression": "request.time < timestamp('2030-01-01T00:00:00Z')"}


def _booted(kind: str, machine: str) -> dict[str, Any]:
    return {"machineType": machine, "disks": [{"boot": True, "sourceImage": "debian", "diskType": kind}]}


def _update(**policy: Any) -> dict[str, Any]:
    given = {"maxSurgeFixed": 3, "maxUnavailableFixed": 0, "type": "PROACTIVE", "minimalAction": "REPLACE"}
    return {"updatePolicy": {**given, **policy}}


def _bgp(**settings: Any) -> dict[str, Any]:
    return {"bgp": {"asn": 64512, **settings}}


def _bfd(**settings: Any) -> dict[str, Any]:
    return {"bfd": {"sessionInitializationMode": "ACTIVE", **settings}}


def _cycle(**schedule: Any) -> dict[str, Any]:
    return {
        "snapshotSchedulePolicy": {"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00", **schedule}}}
    }


def _placement(**policy: Any) -> dict[str, Any]:
    return {"snapshotSchedulePolicy": None, "groupPlacementPolicy": policy}


def _term(**changes: Any) -> dict[str, Any]:
    return {"priority": 1, "match": {"expression": "true"}, "actions": [{"expression": "drop()"}], **changes}


def _lifecycle(condition: dict[str, Any], **action: Any) -> dict[str, Any]:
    return {"lifecycleRules": [{"action": {"type": "Delete", **action}, "condition": condition}]}


def _replicas(*places: str) -> dict[str, Any]:
    return {"replication": {"userManaged": {"replicas": [{"location": place} for place in places]}}}


# What, its report or page, kind, changes, words of the refusal.
ROWS: list[tuple[str, str, str, Any, str]] = [
    # The list as it was collected.
    ("a name with an underscore", "hashicorp/terraform 20884", "network", {"name": "db_vpc"}, "doesn't match regexp"),
    ("UDP to TCP", "PaloAltoNetworks/terraform-google-swfw-modules 72", "forwarding rule", {"ipProtocol": "UDP"}, "protocol is TCP"),
    ("two schemes", "GoogleCloudPlatform/cloud-foundation-fabric 1065", "forwarding rule", {"loadBalancingScheme": "INTERNAL_MANAGED"},
     "backend service's scheme is INTERNAL"),
    ("a check that outlasts its interval", "Resource: RegionHealthCheck", "health check", {"checkIntervalSec": 5, "timeoutSec": 6},
     "TimeoutSec should be less"),
    ("one machine of three zones", "terraform-google-modules/terraform-example-foundation 427", "group", _update(maxUnavailableFixed=1),
     "maxUnavailable.fixed"),
    ("a surge of recreated machines", "hashicorp/terraform-provider-google 14991", "group", _update(replacementMethod="RECREATE"),
     "maxSurge must be equal to 0"),
    ("an address of another tunnel", "terraform-google-modules/terraform-google-vpn 45", "peer", {"ipAddress": "169.254.0.9"},
     "not in the interface's range"),
    ("a public ASN", "Cloud Router overview", "router", {"bgp": {"asn": 64000}}, "RFC6996"),
    ("a Persistent Disk of N4", "DataBiosphere/dsub 301", "template", _booted("pd-standard", "n4-standard-2"), "does not boot from"),
    ("a boot disk for throughput", "GoogleCloudPlatform/cluster-toolkit 2809", "template",
     _booted("hyperdisk-extreme", "n2-standard-80"), "does not boot from"),
    ("a key for an hour", "Key rotation", "key", {"rotationPeriod": "3600s"}, "greater than one day"),
    ("a rotating key for signatures", "cloud-custodian/cloud-custodian 10910", "key", {"purpose": "ASYMMETRIC_SIGN"}, "ENCRYPT_DECRYPT rotate"),
    ("a bucket's objects kept for a day", "Soft delete", "bucket", {"softDeletePolicy": {"retentionDurationSeconds": 86400}}, "use 0, or 604800"),
    ("ports of ICMP", "Resource: NetworkFirewallPolicy", "firewall policy",
     policy_rules({"match": {"srcIpRanges": ["10.0.0.0/24"], "layer4Configs": [{"ipProtocol": "icmp", "ports": ["1"]}]}}), "icmp"),
    ("a spot machine that restarts", "Spot VMs", "template", {"scheduling": {"provisioningModel": "SPOT", "preemptible": True}}, "AutomaticRestart"),
    ("a member without a kind", "Resource: Policy", "member of a key", {"member": "etcd-0@apes.iam.gserviceaccount.com"}, "known prefix"),
    # What was accepted until it was tried.
    ("a Hyperdisk of E2", "nextflow-io/nextflow 6841", "template", _booted("hyperdisk-balanced", "e2-standard-4"), "does not boot from"),
    ("a machine type without a number", "Machine families", "template", {"machineType": "n2-standard"}, "such as n2-standard-4"),
    ("three local disks", "About Local SSD disks", "instance", {"scratchDisks": [{"interface": "NVME"}] * 3}, "no such number"),
    ("a local disk of E2", "About Local SSD disks", "instance",
     {"machineType": "e2-standard-4", "scratchDisks": [{"interface": "NVME"}]}, "no such number"),
    ("GPUs of N2", "GPU machine types", "template",
     {"guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}], "scheduling": {"onHostMaintenance": "TERMINATE"}}, "only N1"),
    ("a spot machine that migrates", "Spot VMs", "template",
     {"scheduling": {"provisioningModel": "SPOT", "preemptible": True, "automaticRestart": False, "onHostMaintenance": "MIGRATE"}},
     "spot machines terminate"),
    ("Tier_1 of a small machine", "Tier_1 networking", "template",
     {"networkPerformanceConfig": {"totalEgressBandwidthTier": "TIER_1"}}, "30 vCPUs"),
    ("a confidential N2", "Confidential VM", "instance", {"confidentialInstanceConfig": {"enableConfidentialCompute": True}}, "confidential"),
    ("a name without a domain", "Instance: hostname", "instance", {"hostname": "etcd"}, "three labels"),
    ("a key of metadata with a space", "About VM metadata", "instance", {"metadata": {"user data": "x"}}, "keys have"),
    ("an unknown scope", "OAuth 2.0 scopes", "instance",
     lambda p: {"serviceAccount": {"email": p.of("account", "email"), "scopes": ["everything"]}}, "write an address"),
    ("no reservation of a name", "Consume reserved instances", "template", {"reservationAffinity": {"type": "SPECIFIC_RESERVATION"}}, "say which"),
    ("a path without its slash", "Resource: RegionHealthCheck", "health check",
     {"httpsHealthCheck": {"port": 6443, "requestPath": "readyz"}}, "begin with /"),
    ("a surge in both forms", "terraform-google-modules/terraform-google-vm 303", "group", _update(maxSurgePercent=20), "maxSurgeFixed or"),
    ("a repair after more than an hour", "Resource: InstanceGroupManager", "group",
     lambda p: {"autoHealingPolicies": {"healthCheck": p["health check"].id, "initialDelaySec": 3601}}, "use 0 to 3600"),
    ("too frequent signs of life", "Resource: Router", "router", _bgp(keepaliveInterval=10), "use 20 to 60"),
    ("an advertised range with bits of a host", "Advertised routes", "router",
     _bgp(advertiseMode="CUSTOM", advertisedIpRanges=[{"range": "10.0.0.1/24"}]), "without bits of a host"),
    ("one ASN at both ends", "Cloud Router overview", "peer", {"peerAsn": 64512}, "the router's own"),
    ("too eager detection", "BFD for Cloud Router", "peer", _bfd(minTransmitInterval=100), "use 1000 to 30000"),
    ("two terms of one priority", "BGP route policies", "route policy", {"terms": [_term(), _term()]}, "give each once"),
    ("half an expression", "BGP route policies", "route policy", {"terms": [_term(match={"expression": "destination =="})]}, "whole expression"),
    ("an unknown action", "BGP route policies", "route policy", {"terms": [_term(actions=[{"expression": "reject()"}])]}, "drop"),
    ("ports that are no power of two", "Resource: Router", "nat", {"enableDynamicPortAllocation": True, "minPortsPerVm": 100}, "power of two"),
    ("two ways of NAT", "Resource: Router", "nat", {"enableDynamicPortAllocation": True, "enableEndpointIndependentMapping": True}, "excludes"),
    ("IKE of a third version", "Resource: VpnTunnel", "tunnel", {"ikeVersion": 3}, "use one of 1, 2"),
    ("a router at a private address", "Resource: ExternalVpnGateway", "tunnel",
     lambda p: {"peerExternalGateway": p.make("peer gateway", name="edge", redundancyType="SINGLE_IP_INTERNALLY_REDUNDANT",
                                              interfaces=[{"id": 0, "ipAddress": "10.0.0.1"}]).id}, "on the internet"),
    ("twice the samples", "Resource: Subnetwork", "subnetwork", {"logConfig": {"flowSampling": 2}}, "use 0 to 1"),
    ("ports in reverse", "Resource: NetworkFirewallPolicy", "firewall policy",
     policy_rules({"match": {"srcIpRanges": ["10.0.0.0/24"], "layer4Configs": [{"ipProtocol": "tcp", "ports": ["443-80"]}]}}), "80-443"),
    ("a small Hyperdisk", "About Hyperdisk Balanced", "disk", {"size": 2}, "4 GB at least"),
    ("more throughput than IOPS carry", "About Hyperdisk Balanced", "disk", {"provisionedIops": 3000, "provisionedThroughput": 2000}, "fourth"),
    ("a zone that is none", "Regions and zones", "disk", {"zone": "europe-west99-a"}, "name a zone"),
    ("close together and apart", "Placement policies", "policy", _placement(collocation="COLLOCATED", availabilityDomainCount=2), "compact"),
    ("snapshots every second day", "Resource: ResourcePolicy", "policy", _cycle(daysInCycle=2), "use 1 to 1"),
    ("snapshots at half past", "Resource: ResourcePolicy", "policy", _cycle(startTime="04:30"), "full hour"),
    ("a private zone of no network", "Resource: ManagedZone", "zone", {"privateVisibilityConfig": None}, "needs its networks"),
    ("an alias of two", "Resource: ResourceRecordSet", "record", {"type": "CNAME", "rrdatas": ["a.apes.", "b.apes."]}, "one name"),
    ("an unknown type of record", "Resource: ResourceRecordSet", "record", {"type": "AAAAA"}, "use one of A"),
    ("a ring in a region that is none", "Cloud KMS locations", "key ring", {"location": "europe-west99"}, "name a region"),
    ("a key destroyed after an hour", "Resource: CryptoKey", "key", {"destroyScheduledDuration": "3600s"}, "use 86400s"),
    ("an algorithm of another purpose", "CryptoKeyVersionAlgorithm", "key", {"versionTemplate": {"algorithm": "RSA_SIGN_PSS_2048_SHA256"}}, "purpose"),
    ("a secret twice in one region", "Resource: Secret", "secret", _replicas(REGION, REGION), "give each once"),
    ("a secret in a continent", "Resource: Secret", "secret", _replicas("europe"), "name a region"),
    ("a role that permits nothing", "Resource: Role", "role", {"permissions": []}, "at least one permission"),
    ("a rule for every object", "Object Lifecycle Management", "bucket", _lifecycle({}), "at least one condition"),
    ("a class that is not said", "Object Lifecycle Management", "bucket", _lifecycle({"age": 1}, type="SetStorageClass"), "which class"),
    ("a bucket in a region that is none", "Bucket locations", "bucket", {"location": "europe-west99"}, "name a region"),
    ("half a condition", "Overview of IAM Conditions", "member of a bucket", {"condition": {"title": "a", "expression": "request.time <"}}, "whole"),
    ("a role of an ordinary subnetwork", "Resource: Subnetwork", "subnetwork", {"role": "ACTIVE"}, "only subnetworks for proxies"),
    ("16 ports of a host", "Cloud NAT: dynamic port allocation", "nat",
     {"enableDynamicPortAllocation": True, "minPortsPerVm": 16, "maxPortsPerVm": 64}, "use 32 or more"),
    ("an unknown purpose", "Resource: Address", "address", {"purpose": "LOAD_BALANCER"}, "use one of GCE_ENDPOINT"),
    ("an unknown mode of a router", "Resource: Router", "router", _bgp(advertiseMode="ALL"), "use one of DEFAULT"),
    ("a range of ports of a rule", "Resource: ForwardingRule", "forwarding rule", {"ports": ["80-90"]}, "use 1 to 65535"),
    ("a port twice", "Resource: ForwardingRule", "forwarding rule", {"ports": ["80", "80"]}, "give each once"),
    ("an unknown kind of update", "Resource: InstanceGroupManager", "group", _update(type="AUTOMATIC"), "use one of PROACTIVE"),
    ("an update that may not be", "Resource: InstanceGroupManager", "group", _update(mostDisruptiveAllowedAction="RESTART"), "at least minimalAction"),
    ("two versions for the rest", "Canary updates", "group",
     lambda p: {"versions": [{"name": name, "instanceTemplate": p.of("template", "selfLinkUnique")} for name in "ab"]}, "exactly one version"),
    ("an unknown boot disk", "Choose a disk type", "template", _booted("pd-fast", "n2-standard-4"), "does not boot from"),
    ("an unknown way to buy", "Resource: InstanceTemplate", "template", {"scheduling": {"provisioningModel": "PREEMPTIBLE"}}, "use one of STANDARD"),
    ("an unknown maintenance", "Resource: InstanceTemplate", "template", {"scheduling": {"onHostMaintenance": "LIVE"}}, "use one of MIGRATE"),
    ("an unknown use of reservations", "Consume reserved instances", "template", {"reservationAffinity": {"type": "ANY"}}, "use one of ANY_RES"),
    ("a local disk of 100 GB", "About Local SSD disks", "instance", {"scratchDisks": [{"interface": "NVME", "size": 100}]}, "use one of 375"),
    ("a local disk by NVMe", "About Local SSD disks", "instance", {"scratchDisks": [{"interface": "NVMe"}]}, "use one of NVME"),
    ("snapshots and a workload", "Resource: ResourcePolicy", "policy", {"workloadPolicy": {"type": "HIGH_THROUGHPUT"}}, "one kind"),
    ("a service by its short name", "Service Usage", "service agent", {"service": "secretmanager"}, "googleapis.com"),
    ("a condition without a title", "Overview of IAM Conditions", "member of the project",
     {"condition": {"title": "", "expression": "true"}}, "has a title"),
    ("a long title", "Overview of IAM Conditions", "member of the project",
     {"condition": {"title": "a" * 101, "expression": "true"}}, "at most 100"),
    ("an owner on a condition", "Overview of IAM Conditions", "member of the project", {"role": "roles/owner", "condition": CONDITION}, "no conditions"),
    ("a bucket in a zone", "Bucket locations", "bucket", {"location": "europe-west4-a"}, "name a region"),
    ("an unknown prevention", "Public access prevention", "bucket", {"publicAccessPrevention": "enabled"}, "use one of inherited"),
    ("versions of unfinished uploads", "Object Lifecycle Management", "bucket",
     _lifecycle({"numNewerVersions": 1}, type="AbortIncompleteMultipartUpload"), "unfinished uploads"),
]  # fmt: skip


@pytest.fixture
def project(api: Any) -> Project:
    return Project(api("gcp"))


@pytest.mark.parametrize(("kind", "changes", "words"), [row[2:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_google_refused_of_others_is_refused(project: Project, kind: str, changes: Any, words: str) -> None:
    with pytest.raises(RefusalError, match=words):
        project.make(kind, **(changes(project) if callable(changes) else changes))


def test_subnetworks_of_two_regions_do_not_overlap(api: Any, project: Project) -> None:
    """tranquilitybase-io/tb-gcp 160."""
    project["subnetwork"]
    away = Project(api("gcp", project.world, region="us-central1", zone="us-central1-a"), project.records)
    with pytest.raises(RefusalError, match="conflicts with existing subnetwork 'nodes' in region 'europe-west4'"):
        away.make("subnetwork", name="again")


@pytest.mark.parametrize(
    ("bucket", "changes", "words"),
    [
        ({"uniformBucketLevelAccess": None}, {"condition": CONDITION}, "need uniform bucket-level access"),
        ({"publicAccessPrevention": "enforced"}, {"member": "allUsers"}, "public access prevention is enforced"),
    ],
)
def test_a_bucket_decides_who_may_be_a_member(
    project: Project, bucket: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    """kubernetes-sigs/agent-sandbox 1541; "Public access prevention"."""
    project.records["bucket"] = project.make("bucket", **bucket)
    with pytest.raises(RefusalError, match=words):
        project.make("member of a bucket", **changes)
