"""Workers in the region: a template for each pool, and a group in each of its zones; after creation the autoscaler sets
the groups' sizes.

One group per zone: the autoscaler supports only zonal groups ("Cluster Autoscaler on GCE" has zones in the addresses of
its groups; github.com/kubernetes/kops, pull request 18543).
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster.bandwidth import can_have_tier_1
from cluster.pools import Placement, Pool
from cluster.quantities import whole_gib
from cluster.spec import Cluster
from cluster.tags import of_cluster
from components.userdata import Payload
from stacks.gcp import hosts
from stacks.gcp.keys import Keys
from stacks.gcp.readers import of_pool
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import base_name, generated, labels, named

_MOST_APART = 8
"""Availability domains of a spread placement policy ("About placement policies")."""
_CLUSTERED = frozenset({"a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4-highgpu-8g"})
"""Machine types whose groups are placed by a workload policy, not by a compact placement policy of their machines ("Compact
placement policy and workload policy overview": groups that use clustered GPUs)."""


class Workers(pulumi.ComponentResource):
    """Running machines stay when the template changes: people's jobs run on them."""

    groups: dict[tuple[str, str], gcp.compute.InstanceGroupManager]
    """(pool, zone) -> group."""

    def __init__(
        self,
        cluster: Cluster,
        subnet: gcp.compute.Subnetwork,
        keys: Keys,
        identities: Mapping[str, Identity],
        payloads: Mapping[str, Payload],
        after: list[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """identities: under the names in `stacks.gcp.readers`. payloads: by pool in the region. after: what hosts need to reach
        the store."""
        super().__init__("menagerie:gcp:Workers", f"{cluster.name}-workers", None, opts)
        self._cluster = cluster
        self._subnet = subnet
        self._keys = keys
        self._identities = identities
        self._after = [keys.granted, *after]
        self.groups = {}
        for name, payload in payloads.items():
            pool = cluster.spec.pools[name]
            policy = self._placement(name, pool)
            of_groups, of_machines = (policy, None) if is_placed_by_workload(pool) else (None, policy)
            template = self._template(name, pool, payload, of_machines)
            for zone, size in sizes(cluster, pool).items():
                self.groups[name, zone] = self._group(name, zone, size, template, of_groups)
        self.register_outputs({})

    def _template(
        self, name: str, pool: Pool, payload: Payload, policy: gcp.compute.ResourcePolicy | None
    ) -> gcp.compute.RegionInstanceTemplate:
        machine = str(pool.machine)
        own = of_cluster(self._cluster.name)
        identity = self._identities[of_pool(self._cluster, name)]
        disks = hosts.template_disks(machine, pool.image, whole_gib(pool.disk_size), self._keys.key, own)
        tier_1 = pool.rdma and can_have_tier_1(machine)
        return hosts.template(
            generated(self._cluster, "pool", name),
            machine,
            disks,
            self._subnet,
            identity.account,
            hosts.metadata(identity.startup_script(payload), {"kube-env": autoscaler_hints(pool)}),
            labels("worker") | {"pool": name},
            pulumi.ResourceOptions(parent=self, depends_on=[*identity.after, *self._after]),
            scheduling=scheduling(pool),
            reservation_affinity=_reserved(pool),
            resource_policies=policy.id if policy else None,
            network_performance_config=gcp.compute.RegionInstanceTemplateNetworkPerformanceConfigArgs(
                total_egress_bandwidth_tier="TIER_1"
            )
            if tier_1
            else None,
        )

    def _placement(self, name: str, pool: Pool) -> gcp.compute.ResourcePolicy | None:
        if pool.placement is None:
            return None
        own, opts = generated(self._cluster, "pool", name), pulumi.ResourceOptions(parent=self)
        if is_placed_by_workload(pool):
            near = gcp.compute.ResourcePolicyWorkloadPolicyArgs(type="HIGH_THROUGHPUT")
            return gcp.compute.ResourcePolicy(own, workload_policy=near, opts=opts)
        policy = (
            gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(collocation="COLLOCATED")
            if pool.placement is Placement.COMPACT
            else gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(availability_domain_count=_MOST_APART)
        )
        return gcp.compute.ResourcePolicy(own, group_placement_policy=policy, opts=opts)

    def _group(
        self,
        name: str,
        zone: str,
        size: int,
        template: gcp.compute.RegionInstanceTemplate,
        policy: gcp.compute.ResourcePolicy | None,
    ) -> gcp.compute.InstanceGroupManager:
        return gcp.compute.InstanceGroupManager(
            generated(self._cluster, "pool", name, zone),
            name=named(self._cluster, name, zone),
            zone=zone,
            base_instance_name=base_name(self._cluster, name),
            target_size=size,
            resource_policies=gcp.compute.InstanceGroupManagerResourcePoliciesArgs(workload_policy=policy.id)
            if policy
            else None,
            versions=[gcp.compute.InstanceGroupManagerVersionArgs(instance_template=template.self_link)],
            update_policy=gcp.compute.InstanceGroupManagerUpdatePolicyArgs(
                type="OPPORTUNISTIC", minimal_action="REPLACE", max_surge_fixed=1, max_unavailable_fixed=0
            ),
            opts=pulumi.ResourceOptions(
                parent=self, ignore_changes=["targetSize"], delete_before_replace=True, depends_on=self._after
            ),
        )


def is_placed_by_workload(pool: Pool) -> bool:
    """Return whether a workload policy of a pool's groups keeps its machines close together."""
    return pool.placement is Placement.COMPACT and pool.machine in _CLUSTERED


def sizes(cluster: Cluster, pool: Pool) -> dict[str, int]:
    """Return zone -> how many of the pool's `min` machines start there."""
    zones = cluster.spec.zones_of(pool)
    base, more = divmod(pool.min, len(zones))
    return {zone: base + (number < more) for number, zone in enumerate(zones)}


def scheduling(pool: Pool) -> gcp.compute.RegionInstanceTemplateSchedulingArgs:
    """Return scheduling. Machines with GPUs can't migrate to another host ("GPU machine types"); spot ones are deleted, not restarted."""
    if pool.spot:
        return gcp.compute.RegionInstanceTemplateSchedulingArgs(
            provisioning_model="SPOT",
            preemptible=True,
            automatic_restart=False,
            on_host_maintenance="TERMINATE",
            instance_termination_action="DELETE",
        )
    stays = hosts.has_gpus(str(pool.machine))
    return gcp.compute.RegionInstanceTemplateSchedulingArgs(
        provisioning_model="STANDARD",
        automatic_restart=True,
        on_host_maintenance="TERMINATE" if stays else "MIGRATE",
    )


def autoscaler_hints(pool: Pool) -> str:
    """Return what tells the cluster autoscaler about a pool's nodes before it has any (its variables in `kube-env`)."""
    machine = hosts.catalogue_entry(str(pool.machine))
    hints = {
        "node_labels": ",".join(f"{key}={value}" for key, value in sorted(pool.labels.items())),
        "node_taints": ",".join(f"{taint.key}={taint.value}:{taint.effect.value}" for taint in pool.taints),
        "os": "linux",
        "arch": machine.arch if machine and machine.arch else "amd64",
    }
    return "AUTOSCALER_ENV_VARS: " + ";".join(f"{key}={value}" for key, value in hints.items() if value) + "\n"


def _reserved(pool: Pool) -> gcp.compute.RegionInstanceTemplateReservationAffinityArgs:
    """Return the reservation to use. Without a name none is used, so that other reservations are not consumed by accident."""
    if pool.reservation is None:
        return gcp.compute.RegionInstanceTemplateReservationAffinityArgs(type="NO_RESERVATION")
    return gcp.compute.RegionInstanceTemplateReservationAffinityArgs(
        type="SPECIFIC_RESERVATION",
        specific_reservation=gcp.compute.RegionInstanceTemplateReservationAffinitySpecificReservationArgs(
            key="compute.googleapis.com/reservation-name", values=[pool.reservation]
        ),
    )
