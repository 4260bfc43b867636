"""The spec's pools as the planner knows them: room of a host for pods, cost, and labels. Pure.

The size of a host is read from existing nodes. For a pool without nodes it is the remembered size, else that of the catalogue
minus the shares below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cluster import catalogue, places
from cluster.autoscaler import Autoscaler
from cluster.catalogue import CLOUDS
from cluster.pools import POOL_LABEL, TaintEffect
from cluster.pools import Pool as SpecPool
from cluster.spec import Cluster
from controllers import prices
from controllers.autoscaler.groups import Group
from controllers.autoscaler.keys import CLOUD, GPU_KIND, HOSTNAME_LABEL, MACHINE_LABEL, REGION_LABEL, ZONE_LABEL
from controllers.autoscaler.pod_requests import MILLION, PLACE_OF, Choices
from controllers.autoscaler.world import Node, Supply
from controllers.planner import PoolSupply, Shape, Taint
from controllers.planner.feasibility import Ground, obstacles
from controllers.planner.resources import CPU, GPU, MEMORY, PODS, STORAGE, Resources
from controllers.planner.supply import labels as sorted_labels

_MIB_A_GIB = 1024
FIRMWARE_PERCENT = 3
"""Share of a machine's memory that is missing from Linux' MemTotal or that the kernel keeps: a high estimate."""
EVICTION_MIB = 100
"""The kubelet evicts at memory.available<100Mi ("Node-pressure Eviction")."""
SYSTEM_CPU, SYSTEM_MIB = 200, 1024
"""Defaults of role kubelet (kubelet_system_cpu, kubelet_system_memory_mib); a test compares them."""
SYSTEM_DISK_PERCENT = 15
"""Share of the system disk for the system and its logs, and for the 10 % below which the kubelet evicts."""
_LEARNT_LABELS_NOT = (HOSTNAME_LABEL, ZONE_LABEL)


def supplies(
    cluster: Cluster,
    settings: Autoscaler,
    nodes: Iterable[Node],
    groups: Mapping[str, Group],
    daemons: Sequence[Shape] = (),
    remembered: Mapping[str, Resources] | None = None,
) -> tuple[dict[str, Supply], list[str]]:
    """Return (pool -> supply, notices). A pool whose size of host is unknown is left out, with a notice.

    daemons: shapes of DaemonSets' pods. remembered: pool -> room of an empty host, as observed earlier.
    """
    by_pool: dict[str, list[Node]] = {name: [] for name in cluster.spec.pools}
    for node in nodes:
        if node.pool in by_pool:
            by_pool[node.pool].append(node)
    growing = set(settings.grown(cluster.spec.pools))
    dearest = max([MILLION, *_known_prices(cluster, settings).values()])
    pool_supplies, notices = {}, []
    for name, pool in cluster.spec.pools.items():
        own = by_pool[name]
        most = groups[name].most if name in groups else pool.max or len(cluster.hosts.get(name, ()))
        described = _pool(cluster, settings, name, pool, own, max(most, len(own)), dearest)
        room = learnt(own) or (remembered or {}).get(name) or _catalogued(cluster, pool, described, daemons)
        if room is None:
            if own or name in growing:
                notices.append(
                    f"the size of a host of pool {name} is unknown: it has no Ready node, and {pool.machine} isn't in the "
                    "catalogue; the pool is left out until it has a Ready node (set min: 1)"
                )
            continue
        room = _with_gpus(cluster, pool, room)
        pool_supplies[name] = Supply(
            replace(described, room=room),
            room[GPU] > 0,
            name in growing and name in groups,
            _note(described, name, cluster, settings),
        )
    return pool_supplies, notices


def _pool(
    cluster: Cluster, settings: Autoscaler, name: str, pool: SpecPool, nodes: Sequence[Node], most: int, dearest: int
) -> PoolSupply:
    spec = cluster.spec
    labels = _common(nodes) | places.of_pool(spec.control_plane.cloud, name, pool) | {POOL_LABEL: name}
    if pool.site is None:
        labels |= {REGION_LABEL: spec.control_plane.region, CLOUD: str(spec.control_plane.cloud)}
        labels |= {MACHINE_LABEL: pool.machine} if pool.machine else {}
        zones = pool.zones or spec.control_plane.zones
        labels |= {ZONE_LABEL: _zone(cluster, zones[0])} if len(zones) == 1 else {}
    else:
        labels |= {CLOUD: "site"}
    if kind := gpu_kind(cluster, pool):
        labels[GPU_KIND] = kind
    price = 0 if pool.site else _known_prices(cluster, settings).get(name, dearest)
    return PoolSupply(
        name,
        Resources(),
        price,
        most,
        sorted_labels(labels),
        tuple(
            Taint(each.key, each.value, str(each.effect))
            for each in pool.taints
            if each.effect is not TaintEffect.PREFER_NO_SCHEDULE
        ),
        spot=pool.spot,
        interruptions=settings.interruptions.get(name, 0.0),
        boot_s=_boot_s(cluster, pool),
    )


def _zone(cluster: Cluster, zone: int | str) -> str:
    """Return a zone as the cloud's hosts label their nodes; Azure's are <region>-<number>."""
    return f"{cluster.spec.control_plane.region}-{zone}" if isinstance(zone, int) else zone


def _common(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the labels that all Ready nodes of a pool have, and that the next one is therefore expected to have."""
    ready = [node.labels.items() for node in nodes if node.ready and not node.starting]
    common = set(ready[0]).intersection(*ready[1:]) if ready else set()
    return {key: value for key, value in common if key not in _LEARNT_LABELS_NOT}


def learnt(nodes: Iterable[Node]) -> Resources | None:
    """Return the room of an empty host, from existing nodes: the least that any of them leaves besides its daemons."""
    least: dict[str, int] = {}
    for at, node in enumerate(node for node in nodes if node.ready and not node.starting):
        own = dict(node.allocatable.amounts)
        for daemon in (each for each in node.residents if each.daemon):
            for name, amount in daemon.shape.size.amounts:
                if name in own:
                    own[name] = max(0, own[name] - amount)
        least = own if at == 0 else {name: min(amount, own.get(name, 0)) for name, amount in least.items()}
    return Resources.of(least) if least else None


def _catalogued(cluster: Cluster, pool: SpecPool, planned: PoolSupply, daemons: Sequence[Shape]) -> Resources | None:
    cloud = cluster.spec.control_plane.cloud
    machine = catalogue.of(cloud).machine_types.get(pool.machine or "") if cloud in CLOUDS and not pool.site else None
    if machine is None or machine.type is None:
        return None
    cpus, memory = machine.type.vcpus, round(machine.type.memory_gb * _MIB_A_GIB)
    pods = cluster.spec.network.max_pods
    kubelet = 255 + 11 * pods
    kept = min(memory // 4, kubelet + max(SYSTEM_MIB, memory // 100)) + EVICTION_MIB + memory * FIRMWARE_PERCENT // 100
    room = {
        CPU: cpus * 1000 - _kubelets_cpu(cpus) - SYSTEM_CPU,
        MEMORY: memory - kept,
        PODS: pods,
        STORAGE: pool.disk_size * (100 - SYSTEM_DISK_PERCENT) // 100 // 2**20,
        GPU: machine.type.gpus,
    }
    ground = Ground(replace(planned, room=Resources.of(room)), planned.labels, planned.taints)
    for daemon in daemons:
        if not obstacles(daemon, ground):
            for name, amount in daemon.size.amounts:
                room[name] = max(0, room.get(name, 0) - amount)
    return Resources.of(room)


def _kubelets_cpu(cpus: int) -> int:
    """Return thousandths of a CPU, like `menagerie_host.machine.kubelets_cpu` on the hosts; a test compares them."""
    shares = [60, 10, 5, 5]
    return -(-(sum(shares[:cpus]) * 2 + 5 * max(0, cpus - len(shares))) // 2)


def _with_gpus(cluster: Cluster, pool: SpecPool, room: Resources) -> Resources:
    """Return the room with the machine's GPUs, which a node lacks until its device plugin has registered them."""
    return Resources.of(dict(room.amounts) | {GPU: max(room[GPU], gpus_of(cluster, pool))})


def gpus_of(cluster: Cluster, pool: SpecPool) -> int:
    """Return the number of GPUs of a machine of a pool in the region, 0 if unknown."""
    cloud = cluster.spec.control_plane.cloud
    machine = catalogue.of(cloud).machine_types.get(pool.machine or "") if cloud in CLOUDS and not pool.site else None
    return machine.type.gpus if machine and machine.type else 0


def gpu_kind(cluster: Cluster, pool: SpecPool) -> str:
    """Return the kind of the pool's GPUs in lower case, "" if it has none or the kind is unknown."""
    cloud = cluster.spec.control_plane.cloud
    if pool.site is None and cloud in CLOUDS:
        machine = catalogue.of(cloud).machine_types.get(pool.machine or "")
        if machine and machine.series and machine.series.gpu and machine.type and machine.type.gpus:
            return machine.series.gpu.kind.lower()
    return next((value.lower() for key, value in sorted(pool.labels.items()) if key.rpartition("/")[2] == "gpu"), "")


def _known_prices(cluster: Cluster, settings: Autoscaler) -> dict[str, int]:
    """Return pool in the region -> millionths of a dollar an hour, for pools with a known price."""
    by_pool = {}
    for name, pool in cluster.spec.pools.items():
        if pool.site is None and (price := prices.of_pool(cluster, name, settings.prices)) is not None:
            by_pool[name] = round(price * MILLION)
    return by_pool


def _boot_s(cluster: Cluster, pool: SpecPool) -> int:
    cloud = cluster.spec.control_plane.cloud
    if pool.site or cloud not in CLOUDS or (pool.machine or "") not in catalogue.of(cloud).machine_types:
        return 0
    return prices.boot_s(cloud, pool.machine or "") or 0


def _note(planned: PoolSupply, name: str, cluster: Cluster, settings: Autoscaler) -> str:
    if cluster.spec.pools[name].site is None and name not in _known_prices(cluster, settings):
        return (
            f"the price of pool {name} is unknown, and assumed to be {planned.price / MILLION:.2f} $/h, that of the most expensive "
            f"pool or 1; write it as autoscaler.prices: {{{name}: <$/h>}}"
        )
    return ""


def choices_of(supplies_by_pool: Mapping[str, Supply], settings: Autoscaler) -> Choices:
    """Return what pods may request by preference."""
    values: dict[str, set[str]] = {label: set() for label in PLACE_OF.values()}
    for each in supplies_by_pool.values():
        for key, value in each.pool.labels:
            if key in values:
                values[key].add(value)
    return Choices(
        {key: frozenset(values_) for key, values_ in values.items()}, settings.data, settings.preference_worth
    )
