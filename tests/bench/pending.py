"""Pending pods, generated from a seed: what a cluster of researchers might request in a bad hour. Pure.

Sizes and prices of hosts come from the catalogue and from `controllers.prices`. Requests are invented, in the proportions of
a batch cluster: many small preprocessing pods, fewer pods with GPUs, most of which use whole hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from cluster import catalogue
from cluster.spec import Cloud
from controllers import prices
from controllers.planner import (
    Gang,
    Operator,
    Place,
    Pod,
    PoolSupply,
    Requirement,
    Shape,
    Snapshot,
    Spot,
    Taint,
    Toleration,
)
from controllers.planner.resources import CPU, GPU, MEMORY, PODS, STORAGE, Resources
from controllers.planner.supply import labels

SEED, PODS_WANTED, GANGS = 7, 30_500, 90
NOW_S = 1_795_000_000
GPU_LABEL, REGION_LABEL, RACK_LABEL = "openai.org/gpu", "topology.kubernetes.io/region", "openai.org/rack"
_PODS_A_HOST, _DISK_MIB = 110, 400 * 1024

TYPES = (
    (Cloud.AWS, "us-east-1", "m7i.4xlarge"),
    (Cloud.AWS, "us-east-1", "m7i.16xlarge"),
    (Cloud.AWS, "us-east-1", "c7i.16xlarge"),
    (Cloud.AWS, "us-east-1", "r7i.8xlarge"),
    (Cloud.AWS, "us-east-1", "g5.12xlarge"),
    (Cloud.AWS, "us-east-1", "g5.48xlarge"),
    (Cloud.AWS, "us-east-1", "p4d.24xlarge"),
    (Cloud.AWS, "us-east-1", "p5.48xlarge"),
    (Cloud.AZURE, "eastus", "Standard_D64s_v5"),
    (Cloud.AZURE, "eastus", "Standard_NC96ads_A100_v4"),
    (Cloud.AZURE, "eastus", "Standard_NC40ads_H100_v5"),
    (Cloud.GCP, "us-central1", "n2-highmem-32"),
    (Cloud.GCP, "us-central1", "g2-standard-48"),
    (Cloud.GCP, "us-central1", "a2-highgpu-8g"),
)
_RACKED = ("p4d.24xlarge", "p5.48xlarge", "a2-highgpu-8g")


def pools() -> tuple[PoolSupply, ...]:
    """Return a pool of each of the 14 types. Types for whole-host training are in racks of 32."""
    return tuple(_pool(cloud, region, name) for cloud, region, name in TYPES)


def _pool(cloud: Cloud, region: str, name: str) -> PoolSupply:
    series, machine = catalogue.of(cloud).machine_types[name][2:]
    price = prices.of(cloud, region, name)
    assert series and machine and price
    kind = series.gpu.kind.lower() if series.gpu and machine.gpus else ""
    # Reserved for the kubelet and daemons: a few hundred millicores (6 % of the first core and so on), and 5 % of the memory.
    room = {CPU: machine.vcpus * 1000 - 500, MEMORY: round(machine.memory_gb * 1024 * 0.95)}
    room |= {PODS: _PODS_A_HOST, STORAGE: _DISK_MIB, GPU: machine.gpus}
    own_labels = {REGION_LABEL: region, "openai.org/cloud": str(cloud)} | ({GPU_LABEL: kind} if kind else {})
    racks = tuple(Place(f"r{at}", labels({RACK_LABEL: f"{name}-r{at}"}), 32) for at in range(1, 9))
    return PoolSupply(
        name.lower().replace("_", "-"),
        Resources.of(room),
        round(price.hour * 1e6),
        most=256 if name in _RACKED else 5000,
        labels=labels(own_labels),
        taints=(Taint(GPU_LABEL, kind),) if kind else (),
        boot_s=prices.boot_s(cloud, name) or 0,
        places=racks if name in _RACKED else (),
    )


def shapes(random: Random) -> list[tuple[Shape, int]]:
    """Return shapes of single pods, each with its weight."""
    weighted = []
    for _ in range(20):
        cores = random.choice((500, 1000, 2000, 3000, 4000, 6000, 8000, 12000, 16000))
        mib = cores * random.choice((1, 2, 4, 6, 8)) * 1024 // 1000 + random.choice((0, 256, 700))
        weighted.append((_shape(random, cores, mib), random.choice((20, 40, 60))))
    for kinds in (("a10g",), ("l4",), ("a10g", "l4"), ("a100",), ("h100",), ("a100", "h100")):
        for count in (1, 2, 4):
            if (kinds, count) in ((("h100",), 2), (("h100",), 4)):
                continue
            cores = count * random.choice((4000, 7000, 10000))
            weighted.append((_shape(random, cores, cores * 6 * 1024 // 1000, count, kinds), random.choice((2, 3, 5))))
    return weighted


def _shape(random: Random, cpu: int, memory: int, gpus: int = 0, kinds: tuple[str, ...] = ()) -> Shape:
    needs = [Requirement(GPU_LABEL, Operator.IN, kinds)] if kinds else []
    if not kinds and random.random() < 0.2:
        needs.append(Requirement(REGION_LABEL, Operator.IN, (random.choice(("us-east-1", "eastus", "us-central1")),)))
    disk = random.choice((0, 2, 10)) * 1024
    return Shape(
        Resources.of({CPU: cpu, MEMORY: memory, GPU: gpus, STORAGE: disk}),
        needs=(tuple(needs),) if needs else (),
        tolerations=tuple(Toleration(GPU_LABEL, kind) for kind in kinds),
        spot=Spot.NEVER if gpus else Spot.ANY,
    )


def snapshot(seed: int = SEED, pods: int = PODS_WANTED, gangs: int = GANGS) -> Snapshot:
    """Return a snapshot with about `pods` pods plus those of `gangs` gangs, half of which must be within one rack."""
    random = Random(seed)
    weighted = shapes(random)
    weights = [weight for _, weight in weighted]
    single = [
        Pod(f"pod-{at}", shape, NOW_S - random.randrange(7200))
        for at, (shape, _) in enumerate(random.choices(weighted, weights, k=pods))
    ]
    jobs = list(_gangs(random, gangs))
    members = [pod for _, ranks in jobs for pod in ranks]
    return Snapshot(NOW_S, pools(), (), (*single, *members), tuple(gang for gang, _ in jobs))


def _gangs(random: Random, count: int) -> Iterator[tuple[Gang, list[Pod]]]:
    for at in range(count):
        kind, cpu, memory = random.choice((("a100", 80_000, 600), ("h100", 160_000, 1600), ("a100", 40_000, 300)))
        gpus = 4 if cpu == 40_000 else 8
        shape = _shape(random, cpu, memory * 1024, gpus, (kind,))
        size = random.choice((2, 4, 4, 8, 8, 16))
        gang = Gang(f"job-{at}", size, RACK_LABEL if at % 2 else None)
        since = NOW_S - random.randrange(7200)
        yield gang, [Pod(f"job-{at}-{rank}", shape, since, gang=gang.name) for rank in range(size)]
