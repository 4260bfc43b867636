"""Network interfaces of machines with EFA.

"Maximize network bandwidth on Amazon EC2 instances with multiple network cards": the first interface is an ordinary one
and has the address; each card also has an EFA-only one without an address. The catalogue counts the cards with EFA. Beyond the
first card that one is device 0, as on the present page; former ones had device 1, except on P5.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws

from cluster import catalogue
from cluster.spec import Cloud

_ORDINARY, _EFA_ONLY = "interface", "efa-only"
_FIRST_CARD_WITHOUT_EFA = frozenset({"p6-b300.48xlarge"})
"""Same page, "EFA configuration for P6-B300 instances"."""


def cards(machine: str) -> list[tuple[int, int, str]]:
    """Return network card, device index and kind of every interface of a machine type.

    Raises ValueError if the catalogue has no EFA for it.
    """
    entry = catalogue.of(Cloud.AWS).machine_types.get(machine)
    count = entry.type.efa if entry and entry.type else 0
    if not count:
        raise ValueError(f"machine {machine} has no EFA in the catalogue (cluster/catalogue/aws.yaml); remove rdma")
    first = 1 if machine in _FIRST_CARD_WITHOUT_EFA else 0
    # Device 0 of the first card is the ordinary interface.
    return [(0, 0, _ORDINARY), *((card, int(card == 0), _EFA_ONLY) for card in range(first, first + count))]


def efa_interfaces(
    machine: str, group: pulumi.Input[str], fabric: pulumi.Input[str]
) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """Return the interfaces. group: filters the workers' packets. fabric: its members may exchange any traffic."""
    return [_interface(*place, [group, fabric] if place[2] == _ORDINARY else [fabric]) for place in cards(machine)]


def _interface(
    card: int, device: int, kind: str, groups: list[pulumi.Input[str]]
) -> aws.ec2.LaunchTemplateNetworkInterfaceArgs:
    more: dict[str, Any] = {"network_card_index": card} if card else {}
    return aws.ec2.LaunchTemplateNetworkInterfaceArgs(
        device_index=device, interface_type=kind, security_groups=groups, delete_on_termination="true", **more
    )
