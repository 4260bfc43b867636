"""An AWS region with basic resources: a VPC, a subnet in each of two zones, a security group, a key and an identity."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import RefusalError
from sandbox.simcloud.world import Record

RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ATTACHMENT = "aws:ec2/volumeAttachment:VolumeAttachment"
FLOW_LOG = "aws:ec2/flowLog:FlowLog"
CONNECTION = "aws:ec2/vpnConnection:VpnConnection"
PROPAGATION = "aws:ec2/vpnGatewayRoutePropagation:VpnGatewayRoutePropagation"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
SECRET_VERSION = "aws:secretsmanager/secretVersion:SecretVersion"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
LOCK = "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration"
PUBLIC_ACCESS = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
SCALING_TAG = "aws:autoscaling/tag:Tag"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"

HOSTS = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
READS = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}


def policy(*statements: dict[str, Any], **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements, **more})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Region:
    """A region. Its resources are created as by a program; each has the name of its attribute."""

    def __init__(self, aws: Any) -> None:
        self.aws = aws
        self.vpc = self.make(tokens.VPC, "vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=True)
        self.abroad = self.make(tokens.VPC, "abroad", cidrBlock="10.1.0.0/16")
        self.internet = self.make(tokens.INTERNET_GATEWAY, "internet", vpcId=self.vpc.id)
        self.a = self.subnet("a", "10.0.1.0/24")
        self.b = self.subnet("b", "10.0.2.0/24")
        self.away = self.make(
            tokens.SUBNET, "away", vpcId=self.abroad.id, cidrBlock="10.1.1.0/24", availabilityZone="eu-west-1b"
        )
        self.group = self.make(tokens.SECURITY_GROUP, "hosts", name="hosts", vpcId=self.vpc.id)
        self.stranger = self.make(tokens.SECURITY_GROUP, "stranger", name="stranger", vpcId=self.abroad.id)
        self.table = self.make(tokens.ROUTE_TABLE, "table", vpcId=self.vpc.id)
        self.key = self.make(tokens.KEY, "key", deletionWindowInDays=30)
        self.role = self.make(tokens.ROLE, "role", name="hosts", assumeRolePolicy=policy(HOSTS))
        self.bucket = self.make(tokens.BUCKET, "bucket", bucket="apes-logs")

    def make(self, token: str, called: str = "it", **inputs: Any) -> Record:
        record: Record = self.aws.create(token, called, **inputs)
        return record

    def refuses(self, words: str, token: str, called: str = "it", **inputs: Any) -> None:
        with pytest.raises(RefusalError, match=words):
            self.make(token, called, **inputs)

    def subnet(self, zone: str, range_: str, called: str = "") -> Record:
        place = f"eu-west-1{zone}"
        return self.make(tokens.SUBNET, called or zone, vpcId=self.vpc.id, cidrBlock=range_, availabilityZone=place)

    def interface(self, called: str = "eni", **inputs: Any) -> Record:
        return self.make(tokens.INTERFACE, called, **{"subnetId": self.a.id, **inputs})

    def instance(self, called: str = "host", **inputs: Any) -> Record:
        return self.make(
            tokens.INSTANCE, called, **{"ami": "ami-1", "instanceType": "m7i.large", "subnetId": self.a.id, **inputs}
        )

    def volume(self, called: str = "disk", **inputs: Any) -> Record:
        return self.make(tokens.VOLUME, called, **{"availabilityZone": "eu-west-1a", "size": 100, **inputs})

    def template(self, called: str = "template", **inputs: Any) -> Record:
        return self.make(
            tokens.TEMPLATE, called, name=called, **{"imageId": "ami-1", "instanceType": "m7i.large", **inputs}
        )

    def balancer(self, called: str = "api", **inputs: Any) -> Record:
        given = {"loadBalancerType": "network", "internal": True, "subnets": [self.a.id, self.b.id]}
        return self.make(tokens.BALANCER, called, name=called, **{**given, **inputs})

    def targets(self, called: str = "api", **inputs: Any) -> Record:
        given = {"port": 6443, "protocol": "TCP", "vpcId": self.vpc.id}
        return self.make(tokens.TARGETS, called, name=called, **{**given, **inputs})

    def listener(self, balancer: Record, targets: Record, called: str = "api", **inputs: Any) -> Record:
        action = {"type": "forward", "targetGroupArn": targets.id}
        given = {"loadBalancerArn": balancer.id, "port": 6443, "protocol": "TCP", "defaultActions": [action]}
        return self.make(tokens.LISTENER, called, **{**given, **inputs})
