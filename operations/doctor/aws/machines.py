"""Zones, machine types and images of a region of AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.clouds import CallError
from clients.clouds.aws_reader import AwsReader
from cluster.needs import Use, images, machine_types
from cluster.spec import Cluster
from operations.doctor import places
from operations.doctor.model import Answer, Once, Question, ok, wrong
from stacks.aws.launch import PARAMETER

_RESOLVED = "resolve:ssm:"
_SPEC_WORDS = {"x86_64": "amd64", "arm64": "arm64"}


def machine_questions(cluster: Cluster, reader: AwsReader, used: Sequence[Use]) -> list[Question]:
    zones = [str(zone) for zone in cluster.spec.control_plane.zones]
    types = Once(lambda: _described(reader, used))
    offers, kinds = "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes"
    looks = ("ssm:GetParameter", "ec2:DescribeImages", kinds)
    return [
        Question(
            "places",
            "zones",
            lambda: _zones(reader, zones),
            ("ec2:DescribeAvailabilityZones",),
            ("ec2:DescribeAvailabilityZones",),
        ),
        Question("places", "machine types", lambda: _offered(reader, zones, used), (offers,), (offers,)),
        Question("images", "image", lambda: _images(reader, used, types), looks, looks),
    ]


def _by_id(zones: Sequence[str]) -> bool:
    """Return whether the spec names zones by their IDs, such as euc1-az1."""
    return all("-az" in zone for zone in zones)


def _zones(reader: AwsReader, zones: Sequence[str]) -> Iterator[Answer]:
    listed = reader.call("ec2", "describe_availability_zones")["AvailabilityZones"]
    key = "ZoneId" if _by_id(zones) else "ZoneName"
    states = {each[key]: each.get("State", "") for each in listed}
    if absent := [zone for zone in zones if zone not in states]:
        command = f"aws ec2 describe-availability-zones --region {reader.region} --output table"
        yield wrong(f"this account has no {', '.join(absent)}; it has {', '.join(sorted(states))}", command)
    elif closed := [zone for zone in zones if states[zone] != "available"]:
        yield wrong(
            f"{', '.join(f'{zone} is {states[zone]}' for zone in closed)}", f"./menagerie show prices {reader.region}"
        )
    else:
        yield ok(f"{', '.join(zones)} are available")


def _offered(reader: AwsReader, zones: Sequence[str], used: Sequence[Use]) -> Iterator[Answer]:
    kind = "availability-zone-id" if _by_id(zones) else "availability-zone"
    filters = [{"Name": "instance-type", "Values": machine_types(used)}]
    listed = reader.every(
        "ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", LocationType=kind, Filters=filters
    )
    offers: dict[str, set[str]] = {}
    for each in listed:
        offers.setdefault(each["InstanceType"], set()).add(each["Location"])

    def where(machine: str) -> str:
        return (
            f"aws ec2 describe-instance-type-offerings --region {reader.region} --location-type {kind} "
            f"--filters Name=instance-type,Values={machine} --output table"
        )

    yield from places.answers(used, lambda machine: offers.get(machine, set()), where)


def _described(reader: AwsReader, used: Sequence[Use]) -> Mapping[str, Any]:
    filters = [{"Name": "instance-type", "Values": machine_types(used)}]
    listed = reader.every("ec2", "describe_instance_types", "InstanceTypes", Filters=filters)
    return {each["InstanceType"]: each for each in listed}


def _images(reader: AwsReader, used: Sequence[Use], types: Once[Mapping[str, Any]]) -> Iterator[Answer]:
    for image, uses in images(used).items():
        name = image or f"{_RESOLVED}{PARAMETER}"
        try:
            yield _image(reader, name, uses, types())
        except CallError as error:
            if not error.missing:
                raise
            yield wrong(f"there is no such image in {reader.region}", _finds(reader, name), about=name)


def _image(reader: AwsReader, name: str, used: Sequence[Use], types: Mapping[str, Any]) -> Answer:
    id_ = name
    if name.startswith(_RESOLVED):
        id_ = reader.call("ssm", "get_parameter", Name=name.removeprefix(_RESOLVED))["Parameter"]["Value"]
    images = reader.call("ec2", "describe_images", ImageIds=[id_])["Images"]
    if not images:
        return wrong(
            f"there is no {id_} in {reader.region}, or it is not shared with this account",
            _finds(reader, name),
            about=name,
        )
    image = images[0]
    if image.get("State") != "available":
        return wrong(f"{id_} is {image.get('State')}", f"aws ec2 describe-images --image-ids {id_}", about=name)
    architecture = image.get("Architecture", "")
    unfit = [
        use
        for use in used
        if use.machine in types and architecture not in types[use.machine]["ProcessorInfo"]["SupportedArchitectures"]
    ]
    if unfit:
        words = ", ".join(f"{use.what} ({use.machine})" for use in unfit)
        return wrong(f"{id_} is for {architecture}, which {words} cannot boot", _finds(reader, name), about=name)
    return ok(
        f"{id_}, {_SPEC_WORDS.get(architecture, architecture)}, made {image.get('CreationDate', 'at an unknown time')}",
        about=name,
    )


def _finds(reader: AwsReader, name: str) -> str:
    """Return the command that lists images to choose from: Debian's, or the account's own."""
    if name.startswith(_RESOLVED):
        parameter = name.removeprefix(_RESOLVED)
        return (
            f"aws ssm get-parameter --region {reader.region} --name {parameter} --query Parameter.Value --output text"
        )
    query = "--query 'Images[].[ImageId,Architecture,Name]' --output text"
    return f"aws ec2 describe-images --region {reader.region} --owners self {query}"
