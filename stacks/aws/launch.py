"""What all machines of the cluster have, created by the stack or by a group: image, system disk, metadata, tags."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from stacks.aws.storage import Storage
from stacks.aws.tags import tags, whole_tags

PARAMETER = "/aws/service/debian/release/13/latest/amd64"
"""Debian's wiki, "Cloud/AmazonEC2Image/Trixie": holds the ID of its newest image for x86."""
_RESOLVED = "resolve:ssm:"
_ROOT_OF_DEBIAN = "/dev/xvda"
SYSTEM_DISK_GIB = 20
"""Of API servers and members of etcd, which keep only programs and logs on it."""
_REQUIRED: Mapping[str, Any] = {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1}
"""Metadata requires a token, and responses travel one hop: not into a container with its own network."""


@dataclass(frozen=True)
class Launch:
    """How the machines of one group are created. root: the device of the image's system disk; a mapping with another name
    would add a disk."""

    role: str
    machine: str
    image: pulumi.Input[str]
    root: pulumi.Input[str]
    disk_gib: int
    user_data: str
    profile: aws.iam.InstanceProfile


def image_of(spec: str | None, opts: pulumi.InvokeOutputOptions) -> tuple[pulumi.Input[str], pulumi.Input[str]]:
    """Return image and root device of machines that a group creates. Groups resolve a parameter at each launch."""
    if spec is None:
        return f"{_RESOLVED}{PARAMETER}", _ROOT_OF_DEBIAN
    return spec, _details(image_id(spec, opts), opts).root_device_name


def image_id(spec: str | None, opts: pulumi.InvokeOutputOptions) -> pulumi.Output[str]:
    """Return the image of machines that the stack creates: RunInstances accepts a parameter only inside a template."""
    if spec is None or spec.startswith(_RESOLVED):
        parameter = PARAMETER if spec is None else spec.removeprefix(_RESOLVED)
        # The whole answer is marked secret, because a parameter may be; an image's ID is not.
        return pulumi.Output.unsecret(aws.ssm.get_parameter_output(name=parameter, opts=opts).insecure_value)
    return pulumi.Output.from_input(spec)


def metadata() -> Mapping[str, Any]:
    """Return metadata options, for instances and templates."""
    return _REQUIRED


def template(
    name: str, cluster: Cluster, launch: Launch, storage: Storage, opts: pulumi.ResourceOptions, **more: Any
) -> aws.ec2.LaunchTemplate:
    """Return a launch template. more: interfaces or groups, and how its machines are bought and placed."""
    tagged = tags(cluster, launch.role)
    disk = aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
        volume_type="gp3",
        volume_size=launch.disk_gib,
        encrypted="true",
        kms_key_id=storage.key.arn,
        delete_on_termination="true",
    )
    return aws.ec2.LaunchTemplate(
        name,
        image_id=launch.image,
        instance_type=launch.machine,
        user_data=base64.b64encode(launch.user_data.encode()).decode(),
        update_default_version=True,
        iam_instance_profile=aws.ec2.LaunchTemplateIamInstanceProfileArgs(arn=launch.profile.arn),
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(**_REQUIRED),
        block_device_mappings=[aws.ec2.LaunchTemplateBlockDeviceMappingArgs(device_name=launch.root, ebs=disk)],
        # A name that no other machine will get: addresses are reused, and so are names derived from them.
        private_dns_name_options=aws.ec2.LaunchTemplatePrivateDnsNameOptionsArgs(
            hostname_type="resource-name", enable_resource_name_dns_a_record=True
        ),
        # The provider's tags apply only to the template itself.
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=whole_tags(cluster, launch.role))
            for kind in ("instance", "volume", "network-interface")
        ],
        tags=tagged,
        opts=opts,
        **more,
    )


def _details(image: pulumi.Output[str], opts: pulumi.InvokeOutputOptions) -> pulumi.Output[aws.ec2.GetAmiResult]:
    filters = image.apply(lambda id_: [aws.ec2.GetAmiFilterArgs(name="image-id", values=[id_])])
    details: pulumi.Output[aws.ec2.GetAmiResult] = aws.ec2.get_ami_output(filters=filters, opts=opts)
    return details
