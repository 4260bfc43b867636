"""Inputs that AWS refused of others, from reports of failed runs and from its documentation.

They were collected without a look at simcloud's rules; each has the report, or the page of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from tests.simcloud.aws_support import CONNECTION, FLOW_LOG, HOSTS, LIFECYCLE, READS, ROLE_POLICY, Region, policy

Inputs = Callable[[Region], dict[str, Any]]

ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
POLICY_OF_FILES = "aws:efs/fileSystemPolicy:FileSystemPolicy"


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _template(**inputs: Any) -> Inputs:
    return lambda _: {"name": "refused", "imageId": "ami-1", "instanceType": "m7i.large", **inputs}


def _disk(**ebs: Any) -> Inputs:
    return _template(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": ebs}])


def _instance(**inputs: Any) -> Inputs:
    return lambda region: {"ami": "ami-1", "instanceType": "m7i.large", "subnetId": region.a.id, **inputs}


def _targets(**inputs: Any) -> Inputs:
    return lambda region: {"name": "api-2", "port": 6443, "protocol": "TCP", "vpcId": region.vpc.id, **inputs}


def _listener(**inputs: Any) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        action = {"type": "forward", "targetGroupArn": region.targets().id}
        given = {"loadBalancerArn": region.balancer().id, "port": 6443, "protocol": "TCP", "defaultActions": [action]}
        return {**given, **inputs}

    return make


def _tunnels(asn: str = "65010", **inputs: Any) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        gateway = region.make(tokens.VPN_GATEWAY, "vgw", vpcId=region.vpc.id, amazonSideAsn="64512")
        router = region.make(tokens.CUSTOMER_GATEWAY, "cgw", bgpAsn=asn, ipAddress="192.0.2.1", type="ipsec.1")
        return {"vpnGatewayId": gateway.id, "customerGatewayId": router.id, "type": "ipsec.1", **inputs}

    return make


def _record(**inputs: Any) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        zone = region.make(tokens.ZONE, "zone", name="apes.internal", vpcs=[{"vpcId": region.vpc.id}])
        given = {"zoneId": zone.id, "name": "api", "type": "A", "ttl": 60, "records": ["10.0.1.4"], **inputs}
        return {name: value for name, value in given.items() if value is not None}

    return make


def _of_bucket(**statement: Any) -> Inputs:
    given = {**READS, "Resource": "arn:aws:s3:::apes-logs/*", "Principal": "*", **statement}
    return lambda region: {"bucket": region.bucket.id, "policy": policy(given)}


def _reads(**statement: Any) -> Inputs:
    return lambda region: {"name": "reads", "role": region.role.id, "policy": policy({**READS, **statement})}


def _role(**inputs: Any) -> Inputs:
    return lambda _: {"name": "outside", "assumeRolePolicy": policy(HOSTS), **inputs}


def _trusted(**statement: Any) -> Inputs:
    return _role(assumeRolePolicy=policy({**HOSTS, **statement}))


def _group(**rule: Any) -> Inputs:
    ingress = {"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["10.0.0.0/16"], **rule}
    return lambda region: {"name": "outside", "vpcId": region.vpc.id, "ingress": [ingress]}


def _endpoint(**inputs: Any) -> Inputs:
    return lambda region: {"vpcId": region.vpc.id, "serviceName": "com.amazonaws.eu-west-1.s3", **inputs}


def _of_files(**statement: Any) -> Inputs:
    given = {"Effect": "Allow", "Action": "elasticfilesystem:ClientMount", **statement}
    return lambda region: {
        "fileSystemId": region.make(tokens.FILE_SYSTEM, "files", encrypted=True).id,
        "policy": policy(given),
    }


def _profile(region: Region) -> str:
    return str(region.make(tokens.PROFILE, "p", name="p", role=region.role.outputs["name"]).outputs["arn"])


def _expired(**rule: Any) -> Inputs:
    given = {"id": "old", "status": "Enabled", "filter": {"tag": {"key": "a", "value": "b"}}, **rule}
    return lambda region: {"bucket": region.bucket.id, "rules": [given]}


def _machines(version: str = "$Latest", **inputs: Any) -> Inputs:
    def make(region: Region) -> dict[str, Any]:
        template = inputs.get("launchTemplate") or {"id": region.template().id, "version": version}
        return {"minSize": 1, "maxSize": 1, "vpcZoneIdentifiers": [region.a.id], **inputs, "launchTemplate": template}

    return make


def _tagged(**tags: str) -> Inputs:
    return lambda _: {"cidrBlock": "10.7.0.0/16", "tags": tags}


# What, its report or page, type, inputs, words of the refusal.
ROWS: list[tuple[str, str, str, Inputs, str]] = [
    # The list as it was collected.
    ("a subnet around another", "ansible/ansible 23400", tokens.SUBNET,
     lambda r: {"vpcId": r.vpc.id, "cidrBlock": "10.0.0.0/20", "availabilityZone": "eu-west-1a"}, "InvalidSubnet.Conflict"),
    ("750 IOPS a GiB", "rocicorp/mono 4410", tokens.TEMPLATE, _disk(volumeType="gp3", volumeSize=20, iops=15000),
     "ratio of 750.* maximum is 500"),
    ("more throughput than IOPS carry", "runs-on/runs-on 260", tokens.TEMPLATE,
     _disk(volumeType="gp3", volumeSize=100, iops=3000, throughput=1000), "Throughput of 1000 is out of range"),
    ("a throughput of io2", "runs-on/runs-on 426", tokens.TEMPLATE,
     _disk(volumeType="io2", volumeSize=100, iops=3000, throughput=200), "throughput is not supported for io2"),
    ("io2 without IOPS", "velero-io/velero-plugin-for-aws 119", tokens.TEMPLATE, _disk(volumeType="io2", volumeSize=100),
     "iops must be specified for io2"),
    ("addresses as targets without a check", "openkruise/kruise-game 357", tokens.TARGETS,
     _targets(targetType="ip", healthCheck={"enabled": False}), "parameter targetType.*type lambda"),
    ("a target group with an underscore", "CreateTargetGroup", tokens.TARGETS, _targets(name="api_2"), "hyphens"),
    ("HTTP on a network load balancer", "CreateListener", tokens.LISTENER, _listener(protocol="HTTP"), "must be one of 'TCP"),
    ("a key with a plus", "GoogleCloudPlatform/pbmm-on-gcp-onboarding 299", CONNECTION,
     _tunnels(tunnel1PresharedKey="4ANftZwN6zk+MUMdl5RiY9dAgVUzF05G"), "Invalid value for tunnel1PresharedKey"),
    ("one ASN at both ends", "aws/aws-cdk 22848", CONNECTION, _tunnels("64512"), "ASN of the specified.*are the same"),
    ("a record of nothing", "ministryofjustice/modernisation-platform 10072", tokens.RECORD, _record(ttl=None, records=None),
     "one of .alias,records. must be"),
    ("a principal that is a name", "versity/versitygw 649", tokens.BUCKET_POLICY, _of_bucket(Principal={"AWS": "somebody"}),
     'Invalid principal in policy: "AWS":"somebody"'),
    ("a principal with spaces", "cloudposse/terraform-aws-cloudfront-s3-cdn 50", tokens.BUCKET_POLICY,
     _of_bucket(Principal={"AWS": "arn:aws:iam::cloudfront:user/CloudFront Origin E1"}), "Invalid principal in policy"),
    ("a bucket's name as a resource", "ministryofjustice/modernisation-platform-environments 590", ROLE_POLICY,
     _reads(Resource="apes-logs"), "must be in ARN format"),
    ("a role's policy with a principal", "hashicorp/terraform-provider-aws 10419", ROLE_POLICY, _reads(Principal="*"),
     "should not specify a principal"),
    ("flow logs every five minutes", "CreateFlowLogs", FLOW_LOG,
     lambda r: {"vpcId": r.vpc.id, "trafficType": "ALL", "logDestinationType": "s3", "maxAggregationInterval": 300,
                "logDestination": r.bucket.outputs["arn"]}, r"\(300\).*use one of 60, 600"),
    ("a description with an apostrophe", "CreateSecurityGroup", tokens.SECURITY_GROUP,
     lambda r: {"name": "outside", "vpcId": r.vpc.id, "description": "API servers\u2019 peers"}, "parameter description"),
    ("an interface and groups beside it", "ansible-collections/amazon.aws 157", tokens.TEMPLATE,
     lambda r: _template(networkInterfaces=[{"securityGroups": [r.group.id]}], vpcSecurityGroupIds=[r.group.id])(r),
     "Network interfaces and an instance-level security groups"),
    # What was accepted until it was tried.
    ("a gateway's public ASN", "CreateVpnGateway", tokens.VPN_GATEWAY, lambda _: {"amazonSideAsn": "70000"}, "private ASN"),
    ("a router's ASN of more than 31 bits", "hashicorp/terraform-provider-aws 14983", tokens.CUSTOMER_GATEWAY,
     lambda _: {"bgpAsn": "4293918725", "ipAddress": "192.0.2.1", "type": "ipsec.1"}, "parameter bgpAsn"),
    ("a tunnel that gives up after 20 s", "ModifyVpnTunnelOptionsSpecification", CONNECTION,
     _tunnels(tunnel1DpdTimeoutSeconds=20), "use 30 or more"),
    ("a tunnel's unknown group", "ModifyVpnTunnelOptionsSpecification", CONNECTION,
     _tunnels(tunnel2Phase1DhGroupNumbers=[3]), "tunnel2Phase1DhGroupNumbers"),
    ("a second phase longer than the first", "ModifyVpnTunnelOptionsSpecification", CONNECTION,
     _tunnels(tunnel1Phase1LifetimeSeconds=1800, tunnel1Phase2LifetimeSeconds=3600), "phase 2 is below that of phase 1"),
    ("a cipher that is no more", "ModifyVpnTunnelOptionsSpecification", CONNECTION,
     _tunnels(tunnel1Phase1EncryptionAlgorithms=["3DES"]), "AES256-GCM-16"),
    ("a record's address twice", "ResourceRecordSet", tokens.RECORD, _record(records=["10.0.1.4"] * 2), "give each once"),
    ("a session of 13 hours", "CreateRole", tokens.ROLE, _role(maxSessionDuration=46800), "use 3600 to 43200"),
    ("a path without slashes", "CreateRole", tokens.ROLE, _role(path="apes"), "begin and end it with /"),
    ("a service without its domain", "Principal", tokens.ROLE, _trusted(Principal={"Service": "ec2"}), '"Service":"ec2"'),
    ("a trust policy for S3", "AssumeRole", tokens.ROLE, _trusted(Action="s3:GetObject"), "not an action of sts"),
    ("an unknown operator", "Condition operators", ROLE_POLICY, _reads(Condition={"StringEqualz": {"a": "b"}}),
     "Invalid Condition type : StringEqualz"),
    ("Action and NotAction", "NotAction", ROLE_POLICY, _reads(NotAction="s3:PutObject"), "Action or NotAction, not both"),
    ("an unknown element", "IAM JSON policy elements", ROLE_POLICY, _reads(Comment="all"), "Comment is not one of"),
    ("a bucket's policy for EC2", "PutBucketPolicy", tokens.BUCKET_POLICY, _of_bucket(Action="ec2:RunInstances"),
     "not an action of s3"),
    ("a file system's policy for nobody", "PutFileSystemPolicy", POLICY_OF_FILES, _of_files(), "Missing required field Principal"),
    ("an asymmetric key that rotates", "EnableKeyRotation", tokens.KEY,
     lambda _: {"customerMasterKeySpec": "RSA_2048", "keyUsage": "SIGN_VERIFY", "enableKeyRotation": True}, "only symmetric"),
    ("a suffix of AWS", "General purpose bucket naming rules", tokens.BUCKET, lambda _: {"bucket": "apes-s3alias"}, "suffix"),
    ("a rule's range with bits of a host", "IpRange", tokens.SECURITY_GROUP, _group(cidrBlocks=["10.0.0.1/16"]), "bits of a host"),
    ("an IPv6 range among IPv4", "IpRange", tokens.SECURITY_GROUP, _group(cidrBlocks=["fd00::/8"]), "IPv4 network"),
    ("an unknown protocol", "IpPermission", tokens.SECURITY_GROUP, _group(protocol="quic"), "number of IANA"),
    ("a tag that AWS reserves", "Tag your Amazon EC2 resources", tokens.VPC, _tagged(**{"aws:name": "x"}), "reserved for internal"),
    ("51 tags", "Tag your Amazon EC2 resources", tokens.VPC, _tagged(**{f"t{i}": "" for i in range(51)}), "TagLimitExceeded"),
    ("a tag that IAM refuses", "Tag naming limits", tokens.ROLE, _role(tags={"a": "wow!"}), "characters that are not allowed"),
    ("former versions for no day", "NoncurrentVersionExpiration", LIFECYCLE,
     lambda r: {"bucket": r.bucket.id, "rules": [{"id": "a", "noncurrentVersionExpiration": {"noncurrentDays": 0}, "expiration": {"days": 1}}]},
     "noncurrentDays"),
    ("a key for AES256", "ServerSideEncryptionByDefault", ENCRYPTION,
     lambda r: {"bucket": r.bucket.id, "rules": [{"applyServerSideEncryptionByDefault":
                {"sseAlgorithm": "AES256", "kmsMasterKeyId": r.key.outputs["arn"]}}]}, "a KMS key goes with aws:kms"),
    ("a key of an open disk", "CreateVolume", tokens.VOLUME,
     lambda r: {"availabilityZone": "eu-west-1a", "size": 1, "kmsKeyId": r.key.outputs["arn"]}, "set encrypted"),
    ("a boot disk on HDD", "Amazon EBS volume types", tokens.INSTANCE,
     _instance(rootBlockDevice={"volumeType": "st1", "volumeSize": 500}), "HDDs cannot boot"),
    ("credits of a large machine", "CreditSpecificationRequest", tokens.TEMPLATE,
     _template(creditSpecification={"cpuCredits": "unlimited"}), "burstable"),
    ("65 hops", "InstanceMetadataOptionsRequest", tokens.TEMPLATE,
     _template(metadataOptions={"httpPutResponseHopLimit": 65}), "use 1 to 64"),
    ("provisioned files without a throughput", "CreateFileSystem", tokens.FILE_SYSTEM,
     lambda _: {"encrypted": True, "throughputMode": "provisioned"}, "needs a throughput"),
    ("cookies on TCP", "TargetGroupAttribute", tokens.TARGETS, _targets(stickiness={"type": "lb_cookie"}), "source_ip"),
    ("TLS without a certificate", "CreateListener", tokens.LISTENER, _listener(protocol="TLS"), "need a certificate"),
    ("subnets of a gateway endpoint", "CreateVpcEndpoint", tokens.ENDPOINT,
     lambda r: _endpoint(vpcEndpointType="Gateway", subnetIds=[r.a.id])(r), "no subnetIds"),
    ("a private NAT gateway for a region", "ansible-collections/amazon.aws 2989", tokens.NAT_GATEWAY,
     lambda r: {"availabilityMode": "regional", "vpcId": r.vpc.id, "connectivityType": "private"}, "regional gateways are public"),
    ("a VPC said to be elsewhere", "VPC", tokens.ZONE,
     lambda r: {"name": "b.internal", "vpcs": [{"vpcId": r.vpc.id, "vpcRegion": "us-east-1"}]}, "InvalidVPCId"),
    ("a boundary that is a role", "CreateRole", tokens.ROLE, _role(permissionsBoundary="arn:aws:iam::123456789012:role/a"), "ARN of a policy"),
    ("a trust policy of another version", "IAM JSON policy elements: Version", tokens.ROLE,
     _role(assumeRolePolicy=policy(HOSTS).replace("2012", "2022")), "valid version string"),
    ("an effect of a bucket's policy", "IAM JSON policy elements: Effect", tokens.BUCKET_POLICY, _of_bucket(Effect="Permit"), "Allow or Deny"),
    ("an action that S3 has not", "versity/versitygw 650", tokens.BUCKET_POLICY, _of_bucket(Action="s3:ReadObject"), "invalid action"),
    ("an address of EC2-Classic", "AllocateAddress", tokens.ADDRESS, lambda _: {"domain": "standard"}, "use one of vpc"),
    ("a check longer than its interval", "CreateTargetGroup", tokens.TARGETS,
     _targets(healthCheck={"protocol": "HTTPS", "path": "/", "interval": 10, "timeout": 11}), "at most the interval"),
    ("a check of a port by name", "CreateTargetGroup", tokens.TARGETS,
     _targets(healthCheck={"protocol": "HTTPS", "path": "/", "port": "https"}), "traffic-port"),
    ("a connection of another type", "CreateVpnConnection", CONNECTION, _tunnels(type="ipsec"), "use one of ipsec.1"),
    ("a market with a capital", "LaunchTemplateInstanceMarketOptionsRequest", tokens.TEMPLATE,
     _template(instanceMarketOptions={"marketType": "Spot"}), "use one of spot"),
    ("a reservation by name", "CapacityReservationTarget", tokens.TEMPLATE,
     _template(capacityReservationSpecification={"capacityReservationTarget": {"capacityReservationId": "mine"}}), "write its ID"),
    ("a profile by name and ARN", "LaunchTemplateIamInstanceProfileSpecificationRequest", tokens.TEMPLATE,
     lambda r: _template(iamInstanceProfile={"name": "p", "arn": _profile(r)})(r), "give its name or its arn"),
    ("markers by tags", "LifecycleExpiration", LIFECYCLE, _expired(expiration={"expiredObjectDeleteMarker": True}), "no delete markers"),
    ("parts of uploads by tags", "AbortIncompleteMultipartUpload", LIFECYCLE,
     _expired(abortIncompleteMultipartUpload={"daysAfterInitiation": 1}), "parts of uploads"),
    ("a long name of a rule", "LifecycleRule", LIFECYCLE, _expired(id="a" * 256, filter={"prefix": ""}, expiration={"days": 1}), "at most 255"),
    ("a template by ID and name", "LaunchTemplateSpecification", tokens.SCALING_GROUP,
     lambda r: _machines(launchTemplate={"id": r.template().id, "name": "template", "version": "1"})(r), "ID or its name"),
    ("a version that is not yet", "LaunchTemplateSpecification", tokens.SCALING_GROUP, _machines("7"), "Could not find launch template version 7"),
    ("a refresh of an unknown kind", "StartInstanceRefresh", tokens.SCALING_GROUP, _machines(instanceRefresh={"strategy": "Replace"}), "Rolling"),
    ("an unknown order of termination", "CreateAutoScalingGroup", tokens.SCALING_GROUP, _machines(terminationPolicies=["Oldest"]), "OldestInstance"),
    ("an unknown process", "SuspendProcesses", tokens.SCALING_GROUP, _machines(suspendedProcesses=["AZRebalancing"]), "use one of Launch"),
    ("an unknown health check", "CreateAutoScalingGroup", tokens.SCALING_GROUP, _machines(healthCheckType="NLB"), "VPC_LATTICE"),
    ("a wait in words", "Group: waitForCapacityTimeout", tokens.SCALING_GROUP, _machines(waitForCapacityTimeout="10 minutes"), "such as 10m"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "inputs", "words"), [row[2:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_aws_refused_of_others_is_refused(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(words, token, "refused", **inputs(region))
