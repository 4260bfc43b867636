"""Wrong inputs that AWS refuses, written without knowledge of the simulated AWS. Each has its right form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.aws_support import (
    CONNECTION,
    FLOW_LOG,
    HOSTS,
    LIFECYCLE,
    RULE,
    SECRET_VERSION,
    Region,
    policy,
)

Inputs = dict[str, Any]
Form = Callable[[Region], Inputs]
"""Creates what a resource needs, and returns the resource's inputs."""

LARGEST_SECRET = 65_536


def _nat(is_shared: bool) -> Form:
    def form(region: Region) -> Inputs:
        first = region.make(tokens.ADDRESS, "first", domain="vpc")
        second = region.make(tokens.ADDRESS, "second", domain="vpc")
        region.make(tokens.NAT_GATEWAY, "nat-a", subnetId=region.a.id, allocationId=first.id)
        return {"subnetId": region.b.id, "allocationId": (first if is_shared else second).id}

    return form


def _flow_log(bucket: str | None) -> Form:
    def form(region: Region) -> Inputs:
        inputs = {
            "vpcId": region.vpc.id,
            "trafficType": "ALL",
            "logDestinationType": "s3",
            "logDestination": region.bucket.outputs["arn"],
        }
        region.make(FLOW_LOG, "first", **inputs)
        if bucket is None:
            return inputs
        other = region.make(tokens.BUCKET, "other", bucket=bucket)
        return {**inputs, "logDestination": other.outputs["arn"]}

    return form


def _zone(is_same_network: bool) -> Form:
    def form(region: Region) -> Inputs:
        region.make(tokens.ZONE, "first", name="apes.internal", vpcs=[{"vpcId": region.vpc.id}])
        network = region.vpc if is_same_network else region.abroad
        return {"name": "apes.internal", "vpcs": [{"vpcId": network.id}]}

    return form


def _lifecycle(days: int) -> Form:
    return lambda region: {
        "bucket": region.bucket.id,
        "rules": [
            {
                "id": "expire",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "transitions": [{"days": 30, "storageClass": "STANDARD_IA"}],
                "expiration": {"days": days},
            }
        ],
    }


def _bucket_policy(ending: str) -> Form:
    def form(region: Region) -> Inputs:
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": region.bucket.outputs["arn"] + ending,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        return {"bucket": region.bucket.id, "policy": policy(statement)}

    return form


def _key(*actions: str) -> Form:
    def form(region: Region) -> Inputs:
        account = region.key.outputs["arn"].split(":")[4]
        statement = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
            "Action": list(actions),
            "Resource": "*",
        }
        return {"deletionWindowInDays": 30, "policy": policy(statement)}

    return form


def _role(**more: str) -> Form:
    return lambda _: {"name": "workers", "assumeRolePolicy": policy({**HOSTS, **more})}


def _rule(**ports: int) -> Form:
    return lambda region: {
        "securityGroupId": region.group.id,
        "cidrIpv4": "10.0.0.0/16",
        "ipProtocol": "tcp",
        **ports,
    }


def _routes(destination: str) -> Form:
    return lambda region: {
        "vpcId": region.vpc.id,
        "routes": [{"cidrBlock": destination, "gatewayId": region.internet.id}],
    }


def _endpoint(zone: str) -> Form:
    def form(region: Region) -> Inputs:
        second = region.subnet(zone, "10.0.3.0/24", "second")
        return {
            "vpcId": region.vpc.id,
            "serviceName": "com.amazonaws.eu-west-1.secretsmanager",
            "vpcEndpointType": "Interface",
            "subnetIds": [region.a.id, second.id],
            "securityGroupIds": [region.group.id],
        }

    return form


def _connection(first_inside: str, second_inside: str) -> Form:
    def form(region: Region) -> Inputs:
        gateway = region.make(tokens.VPN_GATEWAY, "vpn", vpcId=region.vpc.id)
        one, two = (
            region.make(tokens.CUSTOMER_GATEWAY, name, type="ipsec.1", bgpAsn="65010", ipAddress=address)
            for name, address in (("edge-1", "203.0.113.7"), ("edge-2", "203.0.113.8"))
        )
        inputs = {"type": "ipsec.1", "vpnGatewayId": gateway.id, "staticRoutesOnly": False}
        inside = {"tunnel1InsideCidr": "169.254.10.0/30", "tunnel2InsideCidr": "169.254.10.4/30"}
        region.make(CONNECTION, "edge-1", **inputs, **inside, customerGatewayId=one.id)
        return {
            **inputs,
            "customerGatewayId": two.id,
            "tunnel1InsideCidr": first_inside,
            "tunnel2InsideCidr": second_inside,
        }

    return form


def _listener(protocol: str) -> Form:
    def form(region: Region) -> Inputs:
        action = {"type": "forward", "targetGroupArn": region.targets(protocol=protocol).id}
        return {
            "loadBalancerArn": region.balancer().id,
            "port": 6443,
            "protocol": "TCP",
            "defaultActions": [action],
        }

    return form


def _template(has_groups_twice: bool) -> Form:
    def form(region: Region) -> Inputs:
        interface = {"deviceIndex": 0, "securityGroups": [region.group.id]}
        twice = {"vpcSecurityGroupIds": [region.group.id]} if has_groups_twice else {}
        return {
            "name": "workers",
            "imageId": "ami-1",
            "instanceType": "m7i.large",
            "networkInterfaces": [interface],
            **twice,
        }

    return form


def _files(mode: str) -> Form:
    return lambda _: {
        "creationToken": "apes-files",
        "encrypted": True,
        "throughputMode": "elastic",
        "performanceMode": mode,
    }


def _volume(**more: bool) -> Form:
    return lambda region: {
        "availabilityZone": "eu-west-1a",
        "size": 100,
        "kmsKeyId": region.key.outputs["arn"],
        **more,
    }


def _secret(size: int) -> Form:
    def form(region: Region) -> Inputs:
        secret = region.make(tokens.SECRET, "secret", name="menagerie/apes/ca")
        return {"secretId": secret.id, "secretString": "x" * size}

    return form


ROWS: list[tuple[str, str, str, Form, Form]] = [
    (
        "two NAT gateways have one Elastic IP address",
        "github.com/hashicorp/terraform-provider-aws, issue 709: Resource.AlreadyAssociated",
        tokens.NAT_GATEWAY,
        _nat(True),
        _nat(False),
    ),
    (
        "a second flow log of a VPC has the same destination",
        (
            "github.com/getmoto/moto, issue 6369: FlowLogAlreadyExists: There is an existing Flow Log with the same "
            "configuration and log destination"
        ),
        FLOW_LOG,
        _flow_log(None),
        _flow_log("apes-more-logs"),
    ),
    (
        "a VPC has two private zones of one name",
        "github.com/infrablocks/terraform-aws-base-networking, issue 4: ConflictingDomainExists",
        tokens.ZONE,
        _zone(True),
        _zone(False),
    ),
    (
        "objects expire on the day of their transition",
        (
            "Transitioning objects using Amazon S3 Lifecycle: InvalidArgument: 'Days' in the Expiration action for filter "
            "'(prefix=)' must be greater than 'Days' in the Transition action"
        ),
        LIFECYCLE,
        _lifecycle(30),
        _lifecycle(90),
    ),
    (
        "a bucket's policy has an action on objects for the bucket itself",
        (
            "github.com/ministryofjustice/modernisation-platform, pull request 10762: MalformedPolicy: Action does "
            "not apply to any resource(s) in statement"
        ),
        tokens.BUCKET_POLICY,
        _bucket_policy(""),
        _bucket_policy("/*"),
    ),
    (
        "a key's policy permits nobody to change it",
        (
            "CreateKey (AWS KMS), BypassPolicyLockoutSafetyCheck: MalformedPolicyDocumentException: The new key "
            "policy will not allow you to update the key policy in the future"
        ),
        tokens.KEY,
        _key("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey*"),
        _key("kms:*"),
    ),
    (
        "a role's trust policy names a resource",
        "CreateRole (IAM): MalformedPolicyDocument: Has prohibited field Resource",
        tokens.ROLE,
        _role(Resource="*"),
        _role(),
    ),
    (
        "a rule for TCP has no ports",
        (
            "github.com/aws-cloudformation/cfn-lint, issue 1323: InvalidParameterValue: Invalid value 'Must specify "
            "both from and to ports with TCP/UDP.' for portRange"
        ),
        RULE,
        _rule(),
        _rule(fromPort=6443, toPort=6443),
    ),
    (
        "a route to a part of the VPC has the internet gateway as its target",
        (
            "github.com/hashicorp/terraform, issue 26018: InvalidParameterValue: Route target is not supported. This route "
            "only supports interface and instance targets"
        ),
        tokens.ROUTE_TABLE,
        _routes("10.0.0.0/20"),
        _routes("10.16.0.0/20"),
    ),
    (
        "an interface endpoint has two subnets of one zone",
        "github.com/terraform-aws-modules/terraform-aws-vpc, issue 451: DuplicateSubnetsInSameZone",
        tokens.ENDPOINT,
        _endpoint("a"),
        _endpoint("b"),
    ),
    (
        "two connections of a virtual private gateway have one inside range",
        (
            "Tunnel options for your AWS Site-to-Site VPN connection: CIDR blocks must be unique across all VPN "
            "connections that use the same virtual private gateway"
        ),
        CONNECTION,
        _connection("169.254.10.4/30", "169.254.10.8/30"),
        _connection("169.254.10.8/30", "169.254.10.12/30"),
    ),
    (
        "a TCP listener forwards to a UDP target group",
        (
            "github.com/hashicorp/terraform-provider-aws, issue 4955: IncompatibleProtocols: The listener and its "
            "associated target group have incompatible protocols"
        ),
        tokens.LISTENER,
        _listener("UDP"),
        _listener("TCP"),
    ),
    (
        "a launch template has security groups outside its network interface",
        (
            "github.com/hashicorp/terraform-provider-aws, issue 4570: InvalidQueryParameter: Invalid launch "
            "template: When a network interface is provided, the security groups must be a part of it"
        ),
        tokens.TEMPLATE,
        _template(True),
        _template(False),
    ),
    (
        "a file system with elastic throughput has the Max I/O mode",
        "Amazon EFS performance specifications: Max I/O is not supported for Elastic throughput; BadRequest",
        tokens.FILE_SYSTEM,
        _files("maxIO"),
        _files("generalPurpose"),
    ),
    (
        "a volume has a key but is not encrypted",
        (
            "github.com/getmoto/moto, pull request 3383: InvalidParameterDependency: The parameter KmsKeyId requires the "
            "parameter Encrypted to be set"
        ),
        tokens.VOLUME,
        _volume(),
        _volume(encrypted=True),
    ),
    (
        "a secret's value is longer than 65,536 bytes",
        (
            "AWS Secrets Manager quotas; PutSecretValue: ValidationException: Member must have length less than or "
            "equal to 65536"
        ),
        SECRET_VERSION,
        _secret(LARGEST_SECRET + 1),
        _secret(LARGEST_SECRET),
    ),
]
NAMES = [what for what, *_ in ROWS]


@pytest.mark.parametrize(("what", "source", "token", "wrong", "right"), ROWS, ids=NAMES)
def test_aws_refuses_the_wrong_form(api: Any, what: str, source: str, token: str, wrong: Form, right: Form) -> None:
    region = Region(api("aws"))
    inputs = wrong(region)
    with pytest.raises(RefusalError):
        region.make(token, "tested", **inputs)


@pytest.mark.parametrize(("what", "source", "token", "wrong", "right"), ROWS, ids=NAMES)
def test_aws_accepts_the_right_form(api: Any, what: str, source: str, token: str, wrong: Form, right: Form) -> None:
    region = Region(api("aws"))
    assert region.make(token, "tested", **right(region)).id
