"""What clouds charge for a cluster by the hour and how long machines take to boot, as data with sources and dates.

There is one YAML file per cloud next to this module, for machine types, disks and other fixed things in one region. They have
list prices as a starting point; an operator's own prices differ. A price without a source is left out, and is None here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cluster import catalogue
from cluster.catalogue import CLOUDS
from cluster.costs import CostKind
from cluster.document import parse
from cluster.spec import Cloud, Cluster
from controllers.prices.model import Price, Prices

__all__ = ["Price", "Prices", "boot_s", "file_of", "load", "of", "of_cloud", "of_pool"]


def file_of(cloud: Cloud) -> Path:
    return Path(__file__).parent / f"{cloud}.yaml"


@cache
def of_cloud(cloud: Cloud) -> Prices:
    """Return all data about a cloud."""
    return load(file_of(cloud).read_text(encoding="utf-8"), file_of(cloud).name)


def load(text: str, file: str) -> Prices:
    """Parse price data. Errors: raises ValueError for anything that doesn't match `controllers.prices.model`."""
    document = parse(text, file)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return Prices.model_validate(document.data)


def of(cloud: Cloud, region: str, machine: str) -> Price | None:
    """Return the price of a machine type in a region, None if unknown."""
    price = of_cloud(cloud).of(region, CostKind.MACHINE, machine)
    return price if isinstance(price, Price) else None


def of_pool(cluster: Cluster, name: str, own: Mapping[str, float]) -> float | None:
    """Return the dollars an hour of one machine of a pool in the region, None if unknown.

    own: the operator's prices, pool -> dollars; they precede list prices. Errors: raises KeyError if the spec has no such pool.
    """
    if name in own:
        return own[name]
    pool, plane = cluster.spec.pools[name], cluster.spec.control_plane
    listed = of(plane.cloud, plane.region, pool.machine or "") if plane.cloud in CLOUDS else None
    return (listed.spot if pool.spot else listed.hour) if listed else None


def boot_s(cloud: Cloud, machine: str) -> int | None:
    """Return the seconds until such a machine is a Ready node, None if unknown."""
    machine_type = catalogue.of(cloud).machine_types[machine].type
    kind = "gpu" if machine_type is not None and machine_type.gpus else "cpu"
    boot = of_cloud(cloud).boot.get(kind)
    return boot.seconds if boot else None
