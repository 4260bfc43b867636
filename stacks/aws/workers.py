"""Workers in the region: a group for each pool; after creation the autoscaler sets its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster import catalogue, places
from cluster.pools import Placement, Pool
from cluster.quantities import whole_gib
from cluster.spec import Cloud, Cluster
from components.flows.flow import Role
from stacks.aws.interfaces import efa_interfaces
from stacks.aws.launch import Launch, image_of, template
from stacks.aws.network import Network
from stacks.aws.security import EVERY_PROTOCOL, SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.tags import group_tags, named, refuse_too_many, tags, whole_tags
from stacks.cloud_store import WORKERS

_SPREAD_IN_ZONE = 7
""""Placement groups", rules of spread: running machines per zone and group."""
_AUTOSCALER = "k8s.io/cluster-autoscaler"
_STRATEGIES = {Placement.COMPACT: "cluster", Placement.SPREAD: "spread"}


@dataclass(frozen=True)
class Ground:
    """What all pools have in common. profiles: by pool."""

    network: Network
    security: SecurityGroups
    storage: Storage
    profiles: Mapping[str, aws.iam.InstanceProfile]


class Workers(pulumi.ComponentResource):
    """Running machines stay when the template changes: people's jobs run on them."""

    pools: dict[str, aws.autoscaling.Group]

    def __init__(
        self, cluster: Cluster, ground: Ground, user_data: Mapping[str, str], opts: pulumi.ResourceOptions
    ) -> None:
        """user_data: by pool in the region. opts: depends on what hosts fetch at boot."""
        super().__init__("menagerie:aws:Workers", f"{cluster.name}-workers", None, opts)
        self._cluster = cluster
        self._ground = ground
        self._own = pulumi.ResourceOptions(parent=self)
        self._fabric = self._closed_fabric() if any(cluster.spec.pools[name].rdma for name in user_data) else None
        self.pools = {name: self._pool(name, text) for name, text in user_data.items()}
        self.register_outputs({})

    def _closed_fabric(self) -> aws.ec2.SecurityGroup:
        """Create a group whose members may exchange any traffic ("Get started with EFA and NCCL"): EFA has no ports, and the
        table of flows does not cover traffic among jobs."""
        everything = {
            "protocol": EVERY_PROTOCOL,
            "from_port": 0,
            "to_port": 0,
            "self": True,
            "description": "EFA wants all traffic among its members.",
        }
        return aws.ec2.SecurityGroup(
            f"{self._cluster.name}-fabric",
            vpc_id=self._ground.network.vpc.id,
            description=f"{self._cluster.name}: interfaces of EFA",
            ingress=[aws.ec2.SecurityGroupIngressArgs(**everything)],
            egress=[aws.ec2.SecurityGroupEgressArgs(**everything)],
            tags=tags(self._cluster, "fabric"),
            opts=self._own,
        )

    def _pool(self, name: str, user_data: str) -> aws.autoscaling.Group:
        pool = self._cluster.spec.pools[name]
        zones = self._cluster.spec.zones_of(pool)
        refuse_impossible(name, pool, len(zones))
        # The same name: the plan finds a group's costs by the template with its name.
        common = named(self._cluster, f"pool-{name}", "launch_template")
        template_ = self._template(common, name, pool, user_data)
        return aws.autoscaling.Group(
            common,
            min_size=pool.min,
            max_size=pool.max,
            vpc_zone_identifiers=[self._ground.network.zones[zone].workers.id for zone in zones],
            launch_template=aws.autoscaling.GroupLaunchTemplateArgs(
                id=template_.id, version=template_.latest_version.apply(str)
            ),
            placement_group=self._placement(common, name, pool),
            health_check_type="EC2",
            capacity_rebalance=pool.spot,
            # It would terminate machines that the autoscaler has filled ("Cluster Autoscaler on AWS").
            suspended_processes=["AZRebalance"],
            # An update must not fail because no machines are available.
            wait_for_capacity_timeout="0",
            tags=group_tags(autoscaler_tags(self._cluster, name, pool)),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["desiredCapacity"]),
        )

    def _template(self, common: str, name: str, pool: Pool, user_data: str) -> aws.ec2.LaunchTemplate:
        image, root = image_of(pool.image, pulumi.InvokeOutputOptions(parent=self))
        disk_gib = whole_gib(pool.disk_size)
        launch = Launch(
            f"{WORKERS}-{name}", str(pool.machine), image, root, disk_gib, user_data, self._ground.profiles[name]
        )
        kind = {**_bought(pool), **self._plugged(pool)}
        return template(common, self._cluster, launch, self._ground.storage, self._own, **kind)

    def _plugged(self, pool: Pool) -> dict[str, Any]:
        group = self._ground.security.of[Role.WORKER_IN_REGION].id
        if not (pool.rdma and self._fabric):
            return {"vpc_security_group_ids": [group]}
        return {"network_interfaces": efa_interfaces(str(pool.machine), group, self._fabric.id)}

    def _placement(self, common: str, name: str, pool: Pool) -> pulumi.Output[str] | None:
        if pool.placement is None:
            return None
        group_ = aws.ec2.PlacementGroup(
            common,
            strategy=_STRATEGIES[pool.placement],
            tags=tags(self._cluster, "pool", name),
            opts=self._own,
        )
        group_name: pulumi.Output[str] = group_.name
        return group_name


def _bought(pool: Pool) -> dict[str, Any]:
    """Return how machines are bought: regular, spot capacity that AWS takes back at any time, or reserved capacity."""
    if pool.spot:
        return {"instance_market_options": aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="spot")}
    if pool.reservation:
        key = (
            "capacity_reservation_id"
            if pool.reservation.startswith("cr-")
            else "capacity_reservation_resource_group_arn"
        )
        target = aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
            **{key: pool.reservation}
        )
        return {
            "capacity_reservation_specification": aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
                capacity_reservation_target=target
            )
        }
    return {}


def autoscaler_tags(cluster: Cluster, name: str, pool: Pool) -> dict[str, str]:
    """Return tags by which the cluster autoscaler finds a pool and knows its nodes before it has any ("Cluster Autoscaler on AWS").

    Raises ValueError if a group cannot have that many.
    """
    template_ = f"{_AUTOSCALER}/node-template"
    result = {
        **whole_tags(cluster, "pool", name),
        f"{_AUTOSCALER}/enabled": "true",
        f"{_AUTOSCALER}/{cluster.name}": "owned",
        f"{template_}/resources/ephemeral-storage": str(pool.disk_size),
    }
    result |= {f"{template_}/label/{key}": value for key, value in places.of_pool(Cloud.AWS, name, pool).items()}
    result |= {f"{template_}/taint/{taint.key}": f"{taint.value}:{taint.effect.value}" for taint in pool.taints}
    entry = catalogue.of(Cloud.AWS).machine_types.get(str(pool.machine))
    if entry and entry.type and entry.type.gpus:
        result[f"{template_}/resources/nvidia.com/gpu"] = str(entry.type.gpus)
    if entry and entry.type and pool.rdma:
        result[f"{template_}/resources/vpc.amazonaws.com/efa"] = str(entry.type.efa)
    refuse_too_many(f"pools.{name}", result)
    return result


def refuse_impossible(name: str, pool: Pool, zones: int) -> None:
    """Raise ValueError for combinations that AWS does not offer."""
    wrong = None
    if pool.placement is Placement.SPREAD and pool.max > _SPREAD_IN_ZONE * zones:
        most = _SPREAD_IN_ZONE * zones
        wrong = (
            f"max {pool.max} with placement spread: AWS spreads {_SPREAD_IN_ZONE} machines per zone, {most} in total"
        )
    elif pool.reservation and not pool.reservation.startswith(("cr-", "arn:")):
        wrong = f"reservation {pool.reservation}: write the ID of a reservation, cr-..., or the ARN of a group of them"
    elif pool.reservation and pool.spot:
        wrong = "reserved capacity is never spot; remove reservation or spot"
    if wrong:
        raise ValueError(f"pools.{name}: {wrong}")
