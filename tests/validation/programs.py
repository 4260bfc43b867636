"""Programs of small stacks on AWS: a correct one, and some with faults. Processes of the fleet import them by name."""

from __future__ import annotations

import sys
import time
import uuid

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from stacks.protection import is_protected


class Etcd(pulumi.ComponentResource):
    """Has the real one's type name, so that findings point to the spec's etcd."""

    def __init__(self, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Etcd", "etcd", None, opts)


class _Stack:
    """A VPC with a subnet, and options for its contents."""

    def __init__(self, cluster: Cluster) -> None:
        self.range = cluster.spec.network.nodes
        self.zone = str(cluster.spec.control_plane.zones[0])
        region = cluster.spec.control_plane.region
        self.opts = pulumi.ResourceOptions(provider=aws.Provider("aws", region=region))
        self.api_servers = cluster.spec.control_plane.api_servers
        self.vpc = aws.ec2.Vpc(
            "vpc", cidr_block=str(self.range), tags={"servers": str(self.api_servers)}, opts=self.opts
        )
        self.etcd = Etcd(self.opts)

    def subnet(self, name: str, number: int, **more: object) -> aws.ec2.Subnet:
        ranges = list(self.range.subnets(8))
        options = pulumi.ResourceOptions.merge(self.opts, pulumi.ResourceOptions(**more))
        return aws.ec2.Subnet(name, vpc_id=self.vpc.id, cidr_block=str(ranges[number]), tags={"a": "b"}, opts=options)

    def volume(self, name: str, size: int, *, protect: bool, **more: object) -> None:
        options = pulumi.ResourceOptions(parent=self.etcd, protect=protect and is_protected(), **more)
        aws.ebs.Volume(name, availability_zone=self.zone, size=size, encrypted=True, opts=options)


def right(cluster: Cluster) -> None:
    stack = _Stack(cluster)
    stack.subnet("subnet-0", 0)
    stack.subnet("subnet-1", 1)
    stack.volume("data", 10, protect=True)


def careless(cluster: Cluster) -> None:
    """Has one fault for each stage after `up`."""
    stack = _Stack(cluster)
    stack.volume("replaced", 10 + stack.api_servers, protect=False, replace_on_changes=["size"])
    stack.volume("kept", 10, protect=True)
    stack.subnet("forgotten", stack.api_servers, retain_on_delete=True)
    aws.ec2.SecurityGroup("restless", vpc_id=stack.vpc.id, description=uuid.uuid4().hex, opts=stack.opts)
    blind = pulumi.ResourceOptions.merge(stack.opts, pulumi.ResourceOptions(ignore_changes=["tags"]))
    aws.ec2.InternetGateway("blind", vpc_id=stack.vpc.id, tags={"a": "b"}, opts=blind)


def replacing_what_is_protected(cluster: Cluster) -> None:
    stack = _Stack(cluster)
    for number in range(3):
        stack.volume(f"data-{number}", 10 + stack.api_servers, protect=True, replace_on_changes=["size"])


def refused(cluster: Cluster) -> None:
    stack = _Stack(cluster)
    aws.ec2.Subnet("outside", vpc_id=stack.vpc.id, cidr_block="192.168.0.0/24", opts=stack.opts)


def broken(cluster: Cluster) -> None:
    print("a program may print")
    raise ValueError(f"no idea what to do with {cluster.name}")


def ended(cluster: Cluster) -> None:
    """End its whole process."""
    import os

    sys.stderr.write("killed by something\n")
    sys.stderr.flush()
    os._exit(9)


def endless(cluster: Cluster) -> None:
    right(cluster)
    time.sleep(600)
