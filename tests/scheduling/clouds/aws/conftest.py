"""AWS is a moto server behind the door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.config import Config

from cluster.load import load_cluster
from cluster.spec import Cluster
from stacks.aws.workers import autoscaler_tags
from tests.scheduling.clouds.aws.support import (
    REGION,
    ROOT,
    relay,
)
from tests.scheduling.clouds.door import Door, Upstream
from tests.stacks.fake_stores import moto


@pytest.fixture(scope="package")
def cloud() -> Iterator[tuple[Any, Any, tuple[str, int]]]:
    server = moto()
    at = server.get_host_and_port()
    patient = Config(read_timeout=100, retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "a-key", "aws_secret_access_key": "a-secret", "region_name": REGION, "config": patient}
    url = f"http://{at[0]}:{at[1]}"
    yield boto3.client("autoscaling", endpoint_url=url, **keys), boto3.client("ec2", endpoint_url=url, **keys), at
    server.stop()


@pytest.fixture
def nobody(cloud: tuple[Any, Any, tuple[str, int]], opened: Callable[[Upstream], Door]) -> Door:
    """The door, without credentials."""
    return opened(relay(cloud[2]))


@pytest.fixture
def door(nobody: Door, monkeypatch: pytest.MonkeyPatch) -> Door:
    """The door, with a key in the environment."""
    for name, value in (("ACCESS_KEY_ID", "a-key"), ("SECRET_ACCESS_KEY", "a-secret"), ("SESSION_TOKEN", "a-token")):
        monkeypatch.setenv(f"AWS_{name}", value)
    return nobody


@pytest.fixture(scope="package")
def small() -> Cluster:
    return load_cluster(ROOT / "examples/aws-small/cluster.yaml")


@pytest.fixture
def make_group(cloud: tuple[Any, Any, tuple[str, int]], small: Cluster) -> Iterator[Any]:
    """Return a function that creates groups as the stack does; they are deleted after the test."""
    scaling, ec2, _ = cloud
    template = ec2.create_launch_template(
        LaunchTemplateName="workers", LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "m7i.2xlarge"}
    )["LaunchTemplate"]["LaunchTemplateId"]
    names: list[str] = []

    def make(name: str, tags: Mapping[str, str] | None = None, size: int = 3, most: int = 20) -> str:
        tags_ = autoscaler_tags(small, "cpu", small.spec.pools["cpu"]) if tags is None else tags
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=most,
            DesiredCapacity=size,
            LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
            AvailabilityZones=[f"{REGION}a"],
            Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": False} for key, value in tags_.items()],
        )
        names.append(name)
        return name

    yield make
    for name in names:
        scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
    ec2.delete_launch_template(LaunchTemplateId=template)
