"""The spec's pools as the planner knows them: what pods may take of a host, what it costs, which labels it will have.

How large a host is, the nodes that are there say; of a pool without any, what was remembered of them, else the catalogue less
a share that is stated here. Pure.
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
from controllers.autoscaler.asking import MILLION, PLACE_OF, Choices
from controllers.autoscaler.groups import Group
from controllers.autoscaler.keys import CLOUD, GPU_KIND, HOSTNAME_LABEL, MACHINE_LABEL, REGION_LABEL, ZONE_LABEL
from controllers.autoscaler.seen import Node, Supply
from controllers.planner import Pool, Shape, Taint
from controllers.planner.feasibility import Ground, obstacles
from controllers.planner.resources import CPU, GPU, MEMORY, PODS, STORAGE, Resources
from controllers.planner.supply import labels as sorted_labels

_MIB_A_GIB = 1024
FIRMWARE_PERCENT = 3
"""Of a machine's memory that never reaches Linux' MemTotal, or that its kernel keeps: a guess on the large side."""
EVICTION_MIB = 100
"""The kubelet's memory.available<100Mi ("Node-pressure Eviction")."""
SYSTEM_CPU, SYSTEM_MIB = 200, 1024
"""Defaults of role kubelet (kubelet_system_cpu, kubelet_system_memory_mib); a test compares them."""
SYSTEM_DISK_PERCENT = 15
"""Of the system disk, for the system and its logs; and below 10 % free the kubelet evicts."""
_LEARNT_LABELS_NOT = (HOSTNAME_LABEL, ZONE_LABEL)


def supplies(
    cluster: Cluster,
    settings: Autoscaler,
    nodes: Iterable[Node],
    groups: Mapping[str, Group],
    daemons: Sequence[Shape] = (),
    remembered: Mapping[str, Resources] | None = None,
) -> tuple[dict[str, Supply], list[str]]:
    """Pool -> supply, and what is to be told of pools of which nothing says how large their hosts are: those are left out.

    daemons: of DaemonSets. remembered: pool -> the room of its empty hosts, as an earlier look learnt it.
    """
    there: dict[str, list[Node]] = {name: [] for name in cluster.spec.pools}
    for node in nodes:
        if node.pool in there:
            there[node.pool].append(node)
    wanted = set(settings.grown(cluster.spec.pools))
    dearest = max([MILLION, *_known_prices(cluster, settings).values()])
    found, notices = {}, []
    for name, pool in cluster.spec.pools.items():
        own = there[name]
        most = groups[name].most if name in groups else pool.max or len(cluster.hosts.get(name, ()))
        made = _pool(cluster, settings, name, pool, own, max(most, len(own)), dearest)
        room = learnt(own) or (remembered or {}).get(name) or _catalogued(cluster, pool, made, daemons)
        if room is None:
            if own or name in wanted:
                notices.append(
                    f"nothing says how large a host of pool {name} is: it has no Ready node, and {pool.machine} isn't in the "
                    "catalogue; the pool is left out until it has one (min: 1)"
                )
            continue
        room = _with_gpus(cluster, pool, room)
        found[name] = Supply(
            replace(made, room=room),
            room[GPU] > 0,
            name in wanted and name in groups,
            _note(made, name, cluster, settings),
        )
    return found, notices


def _pool(
    cluster: Cluster, settings: Autoscaler, name: str, pool: SpecPool, nodes: Sequence[Node], most: int, dearest: int
) -> Pool:
    spec = cluster.spec
    known = _common(nodes) | places.of_pool(spec.control_plane.cloud, name, pool) | {POOL_LABEL: name}
    if pool.site is None:
        known |= {REGION_LABEL: spec.control_plane.region, CLOUD: str(spec.control_plane.cloud)}
        known |= {MACHINE_LABEL: pool.machine} if pool.machine else {}
        zones = pool.zones or spec.control_plane.zones
        known |= {ZONE_LABEL: _zone(cluster, zones[0])} if len(zones) == 1 else {}
    else:
        known |= {CLOUD: "site"}
    if kind := gpu_kind(cluster, pool):
        known[GPU_KIND] = kind
    price = 0 if pool.site else _known_prices(cluster, settings).get(name, dearest)
    return Pool(
        name,
        Resources(),
        price,
        most,
        sorted_labels(known),
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
    """As hosts of the cloud label their nodes: Azure's are <region>-<number>."""
    return f"{cluster.spec.control_plane.region}-{zone}" if isinstance(zone, int) else zone


def _common(nodes: Sequence[Node]) -> dict[str, str]:
    """Labels that all Ready nodes of a pool have, so that the next one will."""
    ready = [node.labels.items() for node in nodes if node.ready and not node.starting]
    common = set(ready[0]).intersection(*ready[1:]) if ready else set()
    return {key: value for key, value in common if key not in _LEARNT_LABELS_NOT}


def learnt(nodes: Iterable[Node]) -> Resources | None:
    """What pods may take of an empty host by those that are there: the least that any of them leaves beside its daemons."""
    least: dict[str, int] = {}
    for at, node in enumerate(node for node in nodes if node.ready and not node.starting):
        own = dict(node.allocatable.amounts)
        for daemon in (each for each in node.residents if each.daemon):
            for name, amount in daemon.shape.size.amounts:
                if name in own:
                    own[name] = max(0, own[name] - amount)
        least = own if at == 0 else {name: min(amount, own.get(name, 0)) for name, amount in least.items()}
    return Resources.of(least) if least else None


def _catalogued(cluster: Cluster, pool: SpecPool, made: Pool, daemons: Sequence[Shape]) -> Resources | None:
    cloud = cluster.spec.control_plane.cloud
    known = catalogue.of(cloud).machine_types.get(pool.machine or "") if cloud in CLOUDS and not pool.site else None
    if known is None or known.type is None:
        return None
    cpus, memory = known.type.vcpus, round(known.type.memory_gb * _MIB_A_GIB)
    pods = cluster.spec.network.max_pods
    kubelet = 255 + 11 * pods
    kept = min(memory // 4, kubelet + max(SYSTEM_MIB, memory // 100)) + EVICTION_MIB + memory * FIRMWARE_PERCENT // 100
    room = {
        CPU: cpus * 1000 - _kubelets_cpu(cpus) - SYSTEM_CPU,
        MEMORY: memory - kept,
        PODS: pods,
        STORAGE: pool.disk_size * (100 - SYSTEM_DISK_PERCENT) // 100 // 2**20,
        GPU: known.type.gpus,
    }
    ground = Ground(replace(made, room=Resources.of(room)), made.labels, made.taints)
    for daemon in daemons:
        if not obstacles(daemon, ground):
            for name, amount in daemon.size.amounts:
                room[name] = max(0, room.get(name, 0) - amount)
    return Resources.of(room)


def _kubelets_cpu(cpus: int) -> int:
    """Thousandths of a CPU, as `menagerie_host.machine.kubelets_cpu` on the hosts; a test compares them."""
    shares = [60, 10, 5, 5]
    return -(-(sum(shares[:cpus]) * 2 + 5 * max(0, cpus - len(shares))) // 2)


def _with_gpus(cluster: Cluster, pool: SpecPool, room: Resources) -> Resources:
    """A node whose device plugin has not spoken yet shows no GPUs; its machine has them."""
    return Resources.of(dict(room.amounts) | {GPU: max(room[GPU], gpus_of(cluster, pool))})


def gpus_of(cluster: Cluster, pool: SpecPool) -> int:
    """How many GPUs a machine of a pool in the region has; 0 where nothing says."""
    cloud = cluster.spec.control_plane.cloud
    known = catalogue.of(cloud).machine_types.get(pool.machine or "") if cloud in CLOUDS and not pool.site else None
    return known.type.gpus if known and known.type else 0


def gpu_kind(cluster: Cluster, pool: SpecPool) -> str:
    """The kind of the pool's GPUs in small letters, "" where it has none or nothing says."""
    cloud = cluster.spec.control_plane.cloud
    if pool.site is None and cloud in CLOUDS:
        known = catalogue.of(cloud).machine_types.get(pool.machine or "")
        if known and known.series and known.series.gpu and known.type and known.type.gpus:
            return known.series.gpu.kind.lower()
    return next((value.lower() for key, value in sorted(pool.labels.items()) if key.rpartition("/")[2] == "gpu"), "")


def _known_prices(cluster: Cluster, settings: Autoscaler) -> dict[str, int]:
    """Pool in the region -> millionths of a dollar an hour, of those that have a price."""
    found = {}
    for name, pool in cluster.spec.pools.items():
        if pool.site is None and (price := prices.of_pool(cluster, name, settings.prices)) is not None:
            found[name] = round(price * MILLION)
    return found


def _boot_s(cluster: Cluster, pool: SpecPool) -> int:
    cloud = cluster.spec.control_plane.cloud
    if pool.site or cloud not in CLOUDS or (pool.machine or "") not in catalogue.of(cloud).machine_types:
        return 0
    return prices.boot_s(cloud, pool.machine or "") or 0


def _note(made: Pool, name: str, cluster: Cluster, settings: Autoscaler) -> str:
    if cluster.spec.pools[name].site is None and name not in _known_prices(cluster, settings):
        return f"no price is known of pool {name}: it counts as dear as the dearest, {made.price / MILLION:.2f} $/h"
    return ""


def choices_of(found: Mapping[str, Supply], settings: Autoscaler) -> Choices:
    """What pods may ask for by preference."""
    values: dict[str, set[str]] = {label: set() for label in PLACE_OF.values()}
    for each in found.values():
        for key, value in each.pool.labels:
            if key in values:
                values[key].add(value)
    return Choices({key: frozenset(known) for key, known in values.items()}, settings.data, settings.preference_worth)
