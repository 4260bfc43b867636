"""Wrong inputs that Google Cloud refuses, written without knowledge of the simulated one. Each has its right form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.gcp_support import KINDS, Project, policy_rules

Inputs = dict[str, Any]
Form = Callable[[Project], Inputs]
"""Creates what a resource needs, and returns changes to the inputs of the valid resource of its kind."""


def _with(**changes: Any) -> Form:
    return lambda _: changes


def _policy(**ports: list[str]) -> Form:
    match = {"srcIpRanges": ["10.0.0.0/24"], "layer4Configs": [{"ipProtocol": "icmp", **ports}]}
    return policy_rules({"match": match})


def _nat(is_same_network: bool) -> Form:
    def form(project: Project) -> Inputs:
        assert project["nat"].id
        network = project["network"] if is_same_network else project.make("network", name="other")
        router = project.make("router", name="second", network=network.id)
        return {"name": "second", "router": router.outputs["name"]}

    return form


def _tunnel(interface: int) -> Form:
    def form(project: Project) -> Inputs:
        peer = project.make(
            "peer gateway",
            name="edge",
            redundancyType="SINGLE_IP_INTERNALLY_REDUNDANT",
            interfaces=[{"id": 0, "ipAddress": "198.51.100.9"}],
        )
        return {"peerExternalGateway": peer.id, "peerExternalGatewayInterface": interface}

    return form


def _scheduling(restarts: bool) -> Form:
    return _with(
        scheduling={
            "provisioningModel": "SPOT",
            "preemptible": True,
            "automaticRestart": restarts,
            "onHostMaintenance": "TERMINATE",
            "instanceTerminationAction": "DELETE",
        }
    )


def _group(redistribution: str) -> Form:
    return _with(
        distributionPolicyTargetShape="ANY",
        updatePolicy={
            "maxSurgeFixed": 3,
            "maxUnavailableFixed": 0,
            "type": "PROACTIVE",
            "minimalAction": "REPLACE",
            "instanceRedistributionType": redistribution,
        },
    )


def _attached(is_used: bool) -> Form:
    def form(project: Project) -> Inputs:
        assert project["attached disk"].id
        interface = {"subnetwork": project["subnetwork"].id, "networkIp": "10.0.0.11"}
        instance = project.make("instance", name="etcd-1", networkInterfaces=[interface])
        disk = project["disk"] if is_used else project.make("disk", name="etcd-1")
        return {"disk": disk.id, "instance": instance.id}

    return form


def _zone(domain: str) -> Form:
    def form(project: Project) -> Inputs:
        assert project["zone"].id
        return {"name": "second", "dnsName": domain}

    return form


def _key(period: str | None) -> Form:
    return _with(
        name="signing",
        purpose="ASYMMETRIC_SIGN",
        versionTemplate={"algorithm": "EC_SIGN_P256_SHA256"},
        rotationPeriod=period,
    )


def _bucket_member(is_uniform: bool) -> Form:
    def form(project: Project) -> Inputs:
        bucket = project.make("bucket", name="apes-artefacts", uniformBucketLevelAccess=is_uniform)
        folder = 'resource.name.startsWith("projects/_/buckets/apes-artefacts/objects/etcd/")'
        return {
            "bucket": bucket.id,
            "role": "roles/storage.objectViewer",
            "condition": {"title": "etcd", "expression": folder},
        }

    return form


def _sink(ending: str) -> Form:
    names = '("nodes" OR "etcd"'
    subnets = f"resource.labels.subnetwork_name={names}{ending}"
    return _with(filter=f'log_id("compute.googleapis.com/vpc_flows") AND {subnets}')


ROWS: list[tuple[str, str, str, Form, Form]] = [
    (
        "a subnetwork has link-local addresses",
        "Subnets, Virtual Private Cloud, prohibited IPv4 subnet ranges: Invalid value for field 'resource.ipCidrRange'",
        "subnetwork",
        _with(ipCidrRange="169.254.0.0/20"),
        _with(ipCidrRange="10.2.0.0/20"),
    ),
    (
        "a rule of a firewall policy has ports for ICMP",
        (
            "Firewall policy rules, protocols and ports: Ports may only be specified on rules whose protocol is one of "
            "[TCP, UDP, SCTP]"
        ),
        "firewall policy",
        _policy(ports=["8"]),
        _policy(),
    ),
    (
        "a network has two NATs for all subnetworks",
        (
            "github.com/google/osv.dev, pull request 5629: Can not create new Nats since a Nat with option "
            "ALL_SUBNETWORKS_ALL_IP_RANGES exists"
        ),
        "nat",
        _nat(True),
        _nat(False),
    ),
    (
        "a tunnel ends at an interface that the peer's gateway does not have",
        (
            "ExternalVpnGateways, Compute Engine API: SINGLE_IP_INTERNALLY_REDUNDANT has only the interface 0; "
            "Invalid value for field 'resource.peerExternalGatewayInterface'"
        ),
        "tunnel",
        _tunnel(1),
        _tunnel(0),
    ),
    (
        "a BGP peer has its own ranges in the default mode",
        (
            "github.com/hashicorp/terraform-provider-google, issue 5382: Router cannot have a custom advertisement "
            "configuration in default mode"
        ),
        "peer",
        _with(advertiseMode="DEFAULT", advertisedIpRanges=[{"range": "10.0.0.0/16"}]),
        _with(advertiseMode="CUSTOM", advertisedIpRanges=[{"range": "10.0.0.0/16"}]),
    ),
    (
        "an internal forwarding rule has the standard network tier",
        (
            "github.com/terraform-google-modules/terraform-google-lb-internal, issue 125: Network tier other than "
            "PREMIUM is not supported for loadBalancingScheme=INTERNAL"
        ),
        "forwarding rule",
        _with(networkTier="STANDARD"),
        _with(networkTier="PREMIUM"),
    ),
    (
        "a template's spot machines restart automatically",
        (
            "github.com/hashicorp/terraform-provider-google, issue 107: Scheduling must have preemptible be false when "
            "AutomaticRestart is true"
        ),
        "regional template",
        _scheduling(True),
        _scheduling(False),
    ),
    (
        "a regional group of any shape redistributes its machines",
        (
            "Set a target distribution shape for VMs in a regional MIG: disable proactive redistribution for shapes "
            "other than EVEN"
        ),
        "group",
        _group("PROACTIVE"),
        _group("NONE"),
    ),
    (
        "a disk is attached to two machines",
        (
            "About attaching disks, Compute Engine: RESOURCE_IN_USE_BY_ANOTHER_RESOURCE: The disk resource is "
            "already being used"
        ),
        "attached disk",
        _attached(True),
        _attached(False),
    ),
    (
        "a policy spreads machines over nine domains",
        (
            "About placement policies, spread placement: at most eight; Invalid value for field "
            "'resource.groupPlacementPolicy.availabilityDomainCount'"
        ),
        "policy",
        _with(name="spread", snapshotSchedulePolicy=None, groupPlacementPolicy={"availabilityDomainCount": 9}),
        _with(name="spread", snapshotSchedulePolicy=None, groupPlacementPolicy={"availabilityDomainCount": 8}),
    ),
    (
        "a network has two private zones of one name",
        "Overlapping zones, Cloud DNS: private zones with the same origin can't be authorized for the same network",
        "zone",
        _zone("apes.internal."),
        _zone("more.internal."),
    ),
    (
        "a key for signatures has a rotation period",
        "Key rotation, Cloud KMS: automatic rotation is only for symmetric encryption; INVALID_ARGUMENT",
        "key",
        _key("7776000s"),
        _key(None),
    ),
    (
        "a project's role has a permission of organizations",
        (
            "github.com/terraform-google-modules/terraform-google-iam, issue 158: Permission "
            "resourcemanager.projects.list is not valid"
        ),
        "role",
        _with(permissions=["resourcemanager.projects.list"]),
        _with(permissions=["resourcemanager.projects.get"]),
    ),
    (
        "a condition limits access to a bucket that has access lists",
        (
            "github.com/googleapis/python-storage, issue 52 (PreconditionFailed); Use IAM conditions on buckets: uniform "
            "bucket-level access must be enabled"
        ),
        "member of a bucket",
        _bucket_member(False),
        _bucket_member(True),
    ),
    (
        "a sink's filter has an open parenthesis",
        "Logging query language; projects.sinks.create: INVALID_ARGUMENT: Unparseable filter: syntax error",
        "log sink",
        _sink(""),
        _sink(")"),
    ),
    (
        "a secret's member has a role for buckets",
        "github.com/hashicorp/terraform-provider-google, issue 993: Role is not supported for this resource",
        "member of a secret",
        _with(role="roles/storage.objectViewer"),
        _with(role="roles/secretmanager.secretAccessor"),
    ),
]
NAMES = [what for what, *_ in ROWS]


@pytest.mark.parametrize(("what", "source", "kind", "wrong", "right"), ROWS, ids=NAMES)
def test_gcp_refuses_the_wrong_form(api: Any, what: str, source: str, kind: str, wrong: Form, right: Form) -> None:
    project = Project(api("gcp"))
    changes = wrong(project)
    _prepare(project, kind)
    with pytest.raises(RefusalError):
        project.make(kind, **changes)


@pytest.mark.parametrize(("what", "source", "kind", "wrong", "right"), ROWS, ids=NAMES)
def test_gcp_accepts_the_right_form(api: Any, what: str, source: str, kind: str, wrong: Form, right: Form) -> None:
    project = Project(api("gcp"))
    changes = right(project)
    _prepare(project, kind)
    assert project.make(kind, **changes).id


def _prepare(project: Project, kind: str) -> None:
    """Create what the valid resource of a kind refers to, so that only the resource itself can be refused."""
    KINDS[kind][1](project)
