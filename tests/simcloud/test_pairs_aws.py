"""Inputs that AWS refuses, each with its right form. They were written without a look at simcloud's rules and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from tests.simcloud.aws_support import (
    ATTACHMENT,
    CONNECTION,
    FLOW_LOG,
    LIFECYCLE,
    READS,
    ROLE_POLICY,
    Region,
    policy,
)

Inputs = Callable[[Region], dict[str, Any]]
LOGS = {"Effect": "Allow", "Principal": {"Service": "delivery.logs.amazonaws.com"}, "Action": "kms:*", "Resource": "*"}


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _hops(number: int) -> Inputs:
    options = {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": number}
    return lambda _: {"imageId": "ami-1", "instanceType": "m7i.large", "metadataOptions": options}


def _group(version: str = "$Latest", **inputs: Any) -> Inputs:
    return lambda region: {
        "minSize": 1,
        "maxSize": 1,
        "vpcZoneIdentifiers": [region.a.id, region.b.id],
        "launchTemplate": {"id": region.template().id, "version": version},
        **inputs,
    }


def _refreshed(least: int, most: int) -> Inputs:
    preferences = {"minHealthyPercentage": least, "maxHealthyPercentage": most}
    return _group(instanceRefresh={"strategy": "Rolling", "preferences": preferences})


def _checked(path: str) -> Inputs:
    check = {"protocol": "HTTPS", "port": "6443", "path": path, "matcher": "200"}
    return lambda r: {"name": "t", "port": 6443, "protocol": "TCP", "vpcId": r.vpc.id, "healthCheck": check}


def _listener(protocol: str) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        action = {"type": "forward", "targetGroupArn": region.targets(protocol=protocol).id}
        return {"loadBalancerArn": region.balancer().id, "port": 6443, "protocol": protocol, "defaultActions": [action]}

    return make


def _addressed(internal: bool) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        address = region.make(tokens.ADDRESS, "address", domain="vpc")
        mapping = {"subnetId": region.a.id, "allocationId": address.id}
        return {"name": "b", "loadBalancerType": "network", "internal": internal, "subnetMappings": [mapping]}

    return make


def _attached(device: str) -> Inputs:
    return lambda r: {"deviceName": device, "volumeId": r.volume().id, "instanceId": r.instance().id}


def _volume(kind: str) -> Inputs:
    return lambda _: {"availabilityZone": "eu-west-1a", "size": 100, "type": kind, "iops": 3000, "throughput": 250}


def _of_owner(region: Region) -> dict[str, Any]:
    owner = f"arn:aws:iam::{region.key.outputs['arn'].split(':')[4]}:root"
    whole = {"Effect": "Allow", "Principal": {"AWS": owner}, "Action": "kms:*", "Resource": "*"}
    return {"policy": policy(whole, LOGS)}


def _said(sid: str) -> Inputs:
    return lambda region: {"role": region.role.id, "policy": policy({"Sid": sid, **READS})}


def _of_bucket(resource: str) -> Inputs:
    statement = {**READS, "Principal": "*", "Resource": resource, "Effect": "Deny"}
    return lambda region: {"bucket": region.bucket.id, "policy": policy(statement)}


def _expired(**expiration: Any) -> Inputs:
    rule = {"id": "expire", "status": "Enabled", "filter": {"prefix": ""}, "expiration": expiration}
    return lambda region: {"bucket": region.bucket.id, "rules": [rule]}


def _alias(of_balancer: bool) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        zone = region.make(tokens.ZONE, "zone", name="apes.internal", vpcs=[{"vpcId": region.vpc.id}])
        balancer = region.balancer()
        place = balancer.outputs["zoneId"] if of_balancer else zone.id
        alias = {"name": balancer.outputs["dnsName"], "zoneId": place, "evaluateTargetHealth": True}
        return {"zoneId": zone.id, "name": "api", "type": "A", "aliases": [alias]}

    return make


def _ciphers(name: str) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        gateway = region.make(tokens.VPN_GATEWAY, "vgw", vpcId=region.vpc.id, amazonSideAsn="64512")
        router = region.make(tokens.CUSTOMER_GATEWAY, "cgw", bgpAsn="65010", ipAddress="192.0.2.1", type="ipsec.1")
        ends = {"vpnGatewayId": gateway.id, "customerGatewayId": router.id, "type": "ipsec.1"}
        return {**ends, "tunnel1Phase1EncryptionAlgorithms": [name]}

    return make


def _logged(**target: Any) -> Inputs:
    return lambda region: {
        "trafficType": "ALL",
        "logDestinationType": "s3",
        "logDestination": region.bucket.outputs["arn"],
        **{key: region.vpc.id for key in target},
    }


# What, its page or report, type, wrong inputs, right inputs, words of the refusal.
ROWS: list[tuple[str, str, str, Inputs, Inputs, str]] = [
    ("a refresh from 50 to 190 percent", "RefreshPreferences: the difference cannot exceed 100", tokens.SCALING_GROUP,
     _refreshed(50, 190), _refreshed(90, 190), "at most 100 above"),
    ("a template's version latest", "LaunchTemplateSpecification: a number, $Latest or $Default", tokens.SCALING_GROUP,
     _group("latest"), _group("$Latest"), "use a number, \\$Latest"),
    ("a health check's path without a slash", "Health checks for Network Load Balancer target groups", tokens.TARGETS,
     _checked("readyz"), _checked("/readyz"), "begin with /"),
    ("an internal load balancer with a public address", "SubnetMapping: AllocationId is for internet-facing ones",
     tokens.BALANCER, _addressed(True), _addressed(False), "internet-facing load balancers only"),
    ("a machine's security group by name", "RunInstances: SecurityGroupId", tokens.INSTANCE,
     lambda r: {"ami": "ami-1", "instanceType": "m7i.large", "subnetId": r.a.id, "vpcSecurityGroupIds": ["hosts"]},
     lambda r: {"ami": "ami-1", "instanceType": "m7i.large", "subnetId": r.a.id, "vpcSecurityGroupIds": [r.group.id]},
     "InvalidGroup.NotFound"),
    ("a disk as /dev/nvme1n1", "sous-chefs/aws 384", ATTACHMENT, _attached("/dev/nvme1n1"), _attached("/dev/sdf"),
     "not a valid EBS device name"),
    ("a key policy that locks the account out", "CreateKey: BypassPolicyLockoutSafetyCheck", tokens.KEY,
     lambda _: {"policy": policy(LOGS)}, _of_owner, "will not allow you to update"),
    ("a secret's name with a space", "CreateSecret: Name", tokens.SECRET,
     lambda _: {"name": "menagerie/apes/kubernetes ca"}, lambda _: {"name": "menagerie/apes/kubernetes_ca"},
     "it may have only a-z"),
    ("a hyphen in a statement's ID", "IAM JSON policy elements: Sid", ROLE_POLICY,
     _said("Read-Secrets"), _said("ReadSecrets"), "must be alpha-numeric"),
    ("an action on objects for a bucket", "versity/versitygw 645", tokens.BUCKET_POLICY,
     _of_bucket("arn:aws:s3:::apes-logs"), _of_bucket("arn:aws:s3:::apes-logs/*"), "does not apply to any resource"),
    ("a marker's expiration with days", "LifecycleExpiration: cannot be specified with Days or Date", LIFECYCLE,
     _expired(days=30, expiredObjectDeleteMarker=True), _expired(days=30), "or expiredObjectDeleteMarker"),
    ("an alias of a load balancer in the record's own zone", "barnybug/cli53 213", tokens.RECORD,
     _alias(of_balancer=False), _alias(of_balancer=True), "does not lie within"),
    ("a cipher under another name", "Tunnel options for your AWS Site-to-Site VPN connection", CONNECTION,
     _ciphers("AES-256-GCM-16"), _ciphers("AES256-GCM-16"), "use one of AES128"),
    ("elastic throughput with Max I/O", "Amazon EFS performance specifications", tokens.FILE_SYSTEM,
     lambda _: {"performanceMode": "maxIO", "throughputMode": "elastic"},
     lambda _: {"performanceMode": "generalPurpose", "throughputMode": "elastic"}, "goes with generalPurpose"),
    ("a flow log of nothing", "CreateFlowLogs: ResourceIds", FLOW_LOG, _logged(), _logged(vpcId=True), "must be specified"),
    ("a profile's path without its last slash", "CreateInstanceProfile: Path", tokens.PROFILE,
     lambda r: {"name": "p", "path": "/menagerie", "role": r.role.outputs["name"]},
     lambda r: {"name": "p", "path": "/menagerie/", "role": r.role.outputs["name"]}, "begin and end it with /"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("token", "inputs", "words"), [(*row[2:4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_aws_refuses_is_refused(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(words, token, "refused", **inputs(region))


@pytest.mark.parametrize(("token", "inputs"), [(row[2], row[4]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_right_form_is_accepted_by_aws(region: Region, token: str, inputs: Inputs) -> None:
    assert region.make(token, "accepted", **inputs(region)).id
