"""Quotas of an account of AWS, against the plan.

Codes: "Amazon EC2 On-Demand Instances" and "Spot Instance quotas" (EC2 user guide), Service Quotas' lists of EC2, VPC and ELB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from clients.clouds import CallError
from clients.clouds.aws_reader import AwsReader
from cluster.needs import Use
from cluster.spec import Cluster
from cluster.tags import of_cluster
from operations.doctor.model import Answer, Once, Question
from operations.doctor.quotas import Need, Quota, compared, needs_of, not_known

_STANDARD = ("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z")
_FAMILIES = {
    **dict.fromkeys(_STANDARD, "Standard"),
    "dl": "DL",
    "f": "F",
    "g": "G and VT",
    "vt": "G and VT",
    "hpc": "HPC",
    "inf": "Inf",
    "p": "P",
    "trn": "Trn",
    "u": "High Memory",
    "x": "X",
}
"""Letters before the generation of a type -> the family whose vCPUs are counted together."""
_ON_DEMAND = {
    "Standard": "L-1216C47A",
    "DL": "L-6E869C2A",
    "F": "L-74FC7D96",
    "G and VT": "L-DB2E81BA",
    "HPC": "L-F7808C92",
    "High Memory": "L-43DA4232",
    "Inf": "L-1945791B",
    "P": "L-417A185B",
    "Trn": "L-2C3B7624",
    "X": "L-7295265B",
}
_SPOT = {
    "Standard": "L-34B43A08",
    "DL": "L-85EED4F7",
    "F": "L-88CF9481",
    "G and VT": "L-3819A6DF",
    "Inf": "L-B5D1601B",
    "P": "L-7212CCBC",
    "P5": "L-C4BD4855",
    "Trn": "L-6B0D517C",
    "X": "L-E3A00192",
}
_VPCS, _ADDRESSES, _BALANCERS = ("vpc", "L-F678F1CE"), ("ec2", "L-0263D0A3"), ("elasticloadbalancing", "L-69A177A2")
_AT_ONCE = 100
"""Types in one DescribeInstanceTypes."""
_RIGHT = "servicequotas:GetServiceQuota"
_CALLS = (_RIGHT, "servicequotas:GetAWSDefaultServiceQuota")


def quota_questions(cluster: Cluster, reader: AwsReader, used: Sequence[Use]) -> list[Question]:
    counted = [use for use in used if not use.reserved]  # a reservation took its quota when it was made
    machines = _Machines(cluster, reader, counted)
    families: dict[tuple[str, bool], list[Use]] = {}
    for use in counted:
        families.setdefault((family_of(use.machine, spot=use.spot), use.spot), []).append(use)
    rights = (*_CALLS, "ec2:DescribeInstances", "ec2:DescribeInstanceTypes")

    def vcpus(family: str, *, spot: bool, uses: Sequence[Use]) -> Callable[[], Iterator[Answer]]:
        return lambda: _vcpus(reader, machines, family, uses, spot=spot)

    return [
        *(
            Question("quotas", "spot vCPUs" if spot else "vCPUs", vcpus(family, spot=spot, uses=uses), rights, rights)
            for (family, spot), uses in families.items()
        ),
        *_counts(cluster, reader),
    ]


def family_of(machine: str, *, spot: bool = False) -> str:
    """Return the family that counts a machine type. P5 and later have a separate one for spot."""
    match = re.match(r"([a-z]+)(?:-?)([0-9]*)", machine)
    letters, generation = (match[1], match[2]) if match else ("", "")
    family = _FAMILIES.get(letters, letters)
    return "P5" if spot and family == "P" and generation == "5" else family


class _Machines:
    """The running machines of the region, and the vCPUs of every type that runs or is planned. Requested once."""

    def __init__(self, cluster: Cluster, reader: AwsReader, used: Sequence[Use]) -> None:
        self._cluster, self._reader, self._used = cluster, reader, used
        self.running = Once(self._running)
        self.vcpus = Once(self._vcpus)

    def _running(self) -> list[tuple[str, bool]]:
        """Return (type, whether spot) of machines that are not this cluster's: its own are in the plan."""
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        reservations = self._reader.every("ec2", "describe_instances", "Reservations", Filters=states)
        own = of_cluster(self._cluster.name).items()
        return [
            (each["InstanceType"], each.get("InstanceLifecycle") == "spot")
            for reservation in reservations
            for each in reservation["Instances"]
            if not own <= {(tag["Key"], tag["Value"]) for tag in each.get("Tags", ())}
        ]

    def _vcpus(self) -> dict[str, int]:
        types = sorted({use.machine for use in self._used} | {type_ for type_, _ in self.running()})
        known: dict[str, int] = {}
        for at in range(0, len(types), _AT_ONCE):
            filters = [{"Name": "instance-type", "Values": types[at : at + _AT_ONCE]}]
            for each in self._reader.every("ec2", "describe_instance_types", "InstanceTypes", Filters=filters):
                known[each["InstanceType"]] = int(each["VCpuInfo"]["DefaultVCpus"])
        return known


def _vcpus(reader: AwsReader, machines: _Machines, family: str, used: Sequence[Use], *, spot: bool) -> Iterator[Answer]:
    code = (_SPOT if spot else _ON_DEMAND).get(family)
    known = machines.vcpus()
    needs = needs_of(used, lambda use: known.get(use.machine, 0))
    label = f"{family}{' spot' if spot else ''}"
    if code is None or any(need.each == 0 for need in needs):
        why = "no quota is known for this family" if code is None else f"{reader.region} has no such machine type"
        yield not_known(label, needs, why, "aws service-quotas list-service-quotas --service-code ec2 --output table")
        return
    running = [type_ for type_, is_spot in machines.running() if is_spot is spot]
    taken = sum(known.get(type_, 0) for type_ in running if family_of(type_, spot=spot) == family)
    yield _against(reader, ("ec2", code), label, "vCPUs", taken, needs)


def _counts(cluster: Cluster, reader: AwsReader) -> list[Question]:
    """The quotas that count things other than vCPUs. Those of this cluster count as used if it is built."""
    spec = cluster.spec
    zones = len(spec.control_plane.zones)
    balancers = 1 if spec.control_plane.public is None else 2

    def question(name: str, quota: tuple[str, str], need: int, used: Callable[[], int], right: str) -> Question:
        rights = (*_CALLS, right)
        return Question(
            "quotas",
            name,
            lambda: [_against(reader, quota, "", name, used(), [Need("", need, need, 1)])],
            rights,
            rights,
        )

    def networks() -> int:
        return len(reader.every("ec2", "describe_vpcs", "Vpcs"))

    def addresses() -> int:
        return len(reader.call("ec2", "describe_addresses")["Addresses"])

    def load_balancers() -> int:
        listed = reader.every("elbv2", "describe_load_balancers", "LoadBalancers")
        return sum(each["Type"] == "network" for each in listed)

    return [
        question("VPCs", _VPCS, 1, networks, "ec2:DescribeVpcs"),
        *(
            [question("Elastic IPs", _ADDRESSES, zones, addresses, "ec2:DescribeAddresses")]
            if spec.control_plane.public
            else []
        ),
        question(
            "network load balancers",
            _BALANCERS,
            balancers,
            load_balancers,
            "elasticloadbalancing:DescribeLoadBalancers",
        ),
    ]


def _against(
    reader: AwsReader, quota: tuple[str, str], name: str, unit: str, used: int, needs: Sequence[Need]
) -> Answer:
    service, code = quota
    arguments = {"ServiceCode": service, "QuotaCode": code}
    try:
        held = reader.call("service-quotas", "get_service_quota", **arguments)
    except CallError as error:
        if not error.missing:
            raise
        # Only a changed quota has a value of its own ("GetServiceQuota").
        held = reader.call("service-quotas", "get_aws_default_service_quota", **arguments)

    def more(size: int) -> list[str]:
        return [
            (
                f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
                f"--desired-value {size} --region {reader.region}"
            )
        ]

    return compared(Quota(name, unit, reader.region, float(held["Quota"]["Value"]), used), needs, more)
