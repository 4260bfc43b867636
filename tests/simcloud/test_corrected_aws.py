"""Inputs of AWS that simcloud refused until its rules were compared with the documentation, each with one that is refused still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from tests.simcloud.aws_support import CONNECTION, READS, ROLE_POLICY, Region, policy

Inputs = Callable[[Region], dict[str, Any]]
IDENTITY = "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity"
CONFIGURATION = "arn:aws:vpc-lattice:eu-west-1:123456789012:resourceconfiguration/rcfg-0123456789abcdef0"
BY_ATTACHMENT = {"outsideIpAddressType": "PrivateIpv4", "transportTransitGatewayAttachmentId": "tgw-attach-1"}


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _read_by(principal: str) -> Inputs:
    statement = {**READS, "Resource": "arn:aws:s3:::apes-logs/*", "Principal": {"AWS": principal}}
    return lambda region: {"bucket": region.bucket.id, "policy": policy(statement)}


def _listener(protocol: str, of_targets: str) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        action = {"type": "forward", "targetGroupArn": region.targets(protocol=of_targets).id}
        return {"loadBalancerArn": region.balancer().id, "port": 6443, "protocol": protocol, "defaultActions": [action]}

    return make


def _checked(**check: str) -> Inputs:
    return lambda r: {"name": "t", "port": 6443, "protocol": "TCP", "vpcId": r.vpc.id, "healthCheck": check}


def _endpoint(kind: str, name: str = "", **inputs: Any) -> Inputs:
    given = {"vpcEndpointType": kind, **({"serviceName": name} if name else {}), **inputs}
    return lambda region: {"vpcId": region.vpc.id, **given}


def _inside(name: str, **inputs: Any) -> Inputs:
    return lambda region: _endpoint("Interface", name, subnetIds=[region.a.id], **inputs)(region)


def _tunnels(address: str = "192.0.2.1", **inputs: Any) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        router = region.make(tokens.CUSTOMER_GATEWAY, "cgw", bgpAsn="65010", ipAddress=address, type="ipsec.1")
        return {"customerGatewayId": router.id, "type": "ipsec.1", **inputs}

    return make


def _router(**asn: str) -> Inputs:
    return lambda _: {"ipAddress": "192.0.2.1", "type": "ipsec.1", **asn}


def _zone(name: str) -> Inputs:
    return lambda region: {"name": name, "vpcs": [{"vpcId": region.vpc.id}]}


def _doing(action: str) -> Inputs:
    return lambda region: {"role": region.role.id, "policy": policy({**READS, "Action": action})}


def _owned(action: str) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        owner = f"arn:aws:iam::{region.key.outputs['arn'].split(':')[4]}:root"
        return {"policy": policy({"Effect": "Allow", "Principal": {"AWS": owner}, "Action": action, "Resource": "*"})}

    return make


def _key(spec: str, use: str) -> Inputs:
    return lambda _: {"customerMasterKeySpec": spec, "keyUsage": use}


def _bought(market: str) -> Inputs:
    return lambda _: {"imageId": "ami-1", "instanceType": "m7i.large", "instanceMarketOptions": {"marketType": market}}


# What, its page, type, inputs that are accepted, inputs that are refused, words of the refusal.
ROWS: list[tuple[str, str, str, Inputs, Inputs, str]] = [
    ("an origin access identity", "Restrict access to an Amazon S3 origin", tokens.BUCKET_POLICY,
     _read_by(f"{IDENTITY} EH1HDMB1FH2TC"), _read_by(IDENTITY), "Invalid principal in policy"),
    ("TCP to targets of TCP and UDP", "Target groups for your Network Load Balancers: routing configuration", tokens.LISTENER,
     _listener("TCP", "TCP_UDP"), _listener("TCP", "UDP"), "it takes TCP or TCP_UDP"),
    ("UDP to targets of TCP and UDP", "Target groups for your Network Load Balancers: routing configuration", tokens.LISTENER,
     _listener("UDP", "TCP_UDP"), _listener("UDP", "TCP"), "it takes UDP or TCP_UDP"),
    ("TCP and UDP to targets of both", "CreateTargetGroup: a TCP_UDP listener must have a TCP_UDP target group", tokens.LISTENER,
     _listener("TCP_UDP", "TCP_UDP"), _listener("TCP_UDP", "TCP"), "it takes TCP_UDP"),
    ("a path for the default check", "TargetGroupHealthCheck.protocol: HTTP by default", tokens.TARGETS,
     _checked(path="/readyz"), _checked(path="/readyz", protocol="TCP"), "should not be set when protocol is TCP"),
    ("a gateway to directory buckets", "Networking for directory buckets", tokens.ENDPOINT,
     _endpoint("Gateway", "com.amazonaws.eu-west-1.s3express"), _endpoint("Gateway", "com.amazonaws.eu-west-1.s3tables"),
     "exist only for s3, dynamodb, s3express"),
    ("an endpoint of a resource", "CreateVpcEndpoint: ResourceConfigurationArn", tokens.ENDPOINT,
     _endpoint("Resource", resourceConfigurationArn=CONFIGURATION), _endpoint("Resource", "com.amazonaws.eu-west-1.s3"),
     "have resourceConfigurationArn alone"),
    ("an endpoint of a service", "VpcEndpoint: exactly one of these", tokens.ENDPOINT, _endpoint("Gateway", "com.amazonaws.eu-west-1.s3"),
     _endpoint("Gateway", resourceConfigurationArn=CONFIGURATION), "have serviceName alone"),
    ("SageMaker's notebooks", "AWS services that integrate with AWS PrivateLink", tokens.ENDPOINT,
     _inside("aws.sagemaker.eu-west-1.notebook"), _inside("aws.sagemaker.us-east-1.notebook"), "InvalidServiceName"),
    ("a service of another region", "CreateVpcEndpoint: ServiceRegion", tokens.ENDPOINT,
     _inside("com.amazonaws.us-east-1.s3", serviceRegion="us-east-1"), _inside("com.amazonaws.us-east-1.s3"), "InvalidServiceName"),
    ("a gateway to another region", "Gateway endpoints: in the same Region", tokens.ENDPOINT,
     _endpoint("Gateway", "com.amazonaws.eu-west-1.s3"),
     _endpoint("Gateway", "com.amazonaws.us-east-1.s3", serviceRegion="us-east-1"), "InvalidServiceName"),
    ("access points of several regions", "Multi-Region Access Points with AWS PrivateLink", tokens.ENDPOINT,
     _inside("com.amazonaws.s3-global.accesspoint"), _inside("com.amazonaws.s3"), "InvalidServiceName"),
    ("a router in a private network", "CreateCustomerGateway: IpAddress", CONNECTION,
     _tunnels("10.9.0.1", **BY_ATTACHMENT), _tunnels("10.9.0.1"), "has the private address 10.9.0.1"),
    ("a router behind a provider's NAT", "CreateCustomerGateway: IpAddress, RFC 6598", CONNECTION,
     _tunnels("100.64.0.1", **BY_ATTACHMENT), _tunnels("100.64.0.1"), "set outsideIpAddressType to PrivateIpv4"),
    ("an attachment of a private connection", "VpnConnectionOptionsSpecification", CONNECTION,
     _tunnels("10.9.0.1", **BY_ATTACHMENT), _tunnels("10.9.0.1", outsideIpAddressType="PrivateIpv4"), "needs the attachment"),
    ("a tunnel that gives up after two hours", "VpnTunnelOptionsSpecification: at least 30", CONNECTION,
     _tunnels(tunnel1DpdTimeoutSeconds=7200), _tunnels(tunnel1DpdTimeoutSeconds=29), "use 30 or more"),
    ("the last ASN", "CreateCustomerGateway: BgpAsnExtended", tokens.CUSTOMER_GATEWAY,
     _router(bgpAsnExtended="4294967295"), _router(bgpAsnExtended="4294967296"), "bgpAsnExtended"),
    ("an ASN of documentation", "CreateCustomerGateway: BgpAsn", tokens.CUSTOMER_GATEWAY,
     _router(bgpAsn="64500"), _router(bgpAsn="9059"), "parameter bgpAsn is invalid"),
    ("the last ASN of two bytes", "CreateCustomerGateway: 1 to 65534", tokens.CUSTOMER_GATEWAY,
     _router(bgpAsn="65534"), _router(bgpAsn="65535"), "parameter bgpAsn is invalid"),
    ("a zone of half a network", "DNS domain name format: hosted zones; RFC 2317", tokens.ZONE,
     _zone("0/25.2.0.192.in-addr.arpa"), _zone("0 25.2.0.192.in-addr.arpa"), "printable ASCII without spaces"),
    ("labels of a zone", "DNS domain name format: 63 bytes", tokens.ZONE,
     _zone(f"{'a' * 63}.internal"), _zone(f"{'a' * 64}.internal"), "at most 63 characters"),
    ("a service in capitals", "IAM JSON policy elements: Action", ROLE_POLICY, _doing("S3:getobject"), _doing("S3.GetObject"),
     "write <service>:<action>"),
    ("a key's owner in capitals", "IAM JSON policy elements: Action", tokens.KEY, _owned("KMS:PutKeyPolicy"), _owned("KMS:GetKeyPolicy"),
     "will not allow you to update"),
    ("a key that encapsulates", "CreateKey: KeySpec, KeyUsage", tokens.KEY,
     _key("ML_KEM_768", "ENCAPSULATE_DECAPSULATE"), _key("RSA_2048", "ENCAPSULATE_DECAPSULATE"), "another kind of key"),
    ("a key's use", "CreateKey: KeyUsage", tokens.KEY, _key("RSA_2048", "SIGN_VERIFY"), _key("RSA_2048", "SIGN"), "use one of ENCRYPT_DECRYPT"),
    ("a machine on demand", "MarketType", tokens.TEMPLATE, _bought("on-demand"), _bought("ondemand"), "use one of spot"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "inputs"), [(row[2], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_aws_takes_is_accepted(region: Region, token: str, inputs: Inputs) -> None:
    assert region.make(token, "accepted", **inputs(region)).id


@pytest.mark.parametrize(
    ("token", "inputs", "words"), [(row[2], row[4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_aws_refuses_is_refused_still(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(words, token, "refused", **inputs(region))


def test_only_a_template_may_not_have_credits_of_a_large_machine(region: Region) -> None:
    """The provider sends credits of an instance only if its type is burstable (ec2_instance.go)."""
    credit = {"creditSpecification": {"cpuCredits": "unlimited"}}
    assert region.instance(**credit).inputs["creditSpecification"]
    assert region.template(instanceType="t3.large", **credit).id
    region.refuses(
        "burstable", tokens.TEMPLATE, "large", name="large", imageId="ami-1", instanceType="m7i.large", **credit
    )


def test_an_endpoint_of_a_resource_has_interfaces_and_no_names(region: Region) -> None:
    inputs = _endpoint("Resource", resourceConfigurationArn=CONFIGURATION, subnetIds=[region.a.id])(region)
    outputs = region.make(tokens.ENDPOINT, "resource", **inputs).outputs
    assert (len(outputs["networkInterfaceIds"]), outputs["dnsEntries"], outputs.get("prefixListId")) == (1, [], None)


def test_private_names_of_an_endpoint_are_of_its_service_s_region(region: Region) -> None:
    inputs = _inside("com.amazonaws.us-east-1.sqs", serviceRegion="us-east-1", privateDnsEnabled=True)(region)
    names = [entry["dnsName"] for entry in region.make(tokens.ENDPOINT, "abroad", **inputs).outputs["dnsEntries"]]
    assert names[1] == "sqs.us-east-1.amazonaws.com"
