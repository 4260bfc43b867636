"""What machines cost and how long they take to boot, as data with sources and dates.

There is one YAML file per cloud next to this module, for a few machine types in one region. They have list prices as a starting
point; an operator's own prices differ. A price without a source is left out, and `of` returns None for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cluster import catalogue
from cluster.catalogue import CLOUDS
from cluster.document import parse
from cluster.model import Model
from cluster.spec import Cloud, Cluster

Keys = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Source(Model):
    """A source of figures."""

    title: str
    date: Annotated[date, Field(strict=False)]
    """Of the document; if it has none, the day it was read."""


class Price(Model):
    """US dollars an hour. spot: of the same machine as a spot machine, None if no source has it."""

    sources: Keys
    hour: float = Field(gt=0)
    spot: float | None = Field(default=None, gt=0)


class BootTime(Model):
    """Seconds from ordering a machine until its node is Ready, drivers included."""

    sources: Keys
    seconds: int = Field(gt=0)


class Prices(Model):
    """One cloud's file. boot: keys cpu (machines without GPUs) and gpu."""

    sources: dict[str, Source]
    regions: dict[str, dict[str, Price]]
    boot: dict[str, BootTime] = Field(default_factory=dict)


def file_of(cloud: Cloud) -> Path:
    return Path(__file__).parent / f"{cloud}.yaml"


@cache
def of_cloud(cloud: Cloud) -> Prices:
    """Return all data about a cloud. Errors: raises ValueError if its file doesn't match the models above."""
    document = parse(file_of(cloud).read_text(encoding="utf-8"), file_of(cloud).name)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return Prices.model_validate(document.data)


def of(cloud: Cloud, region: str, machine: str) -> Price | None:
    """Return the price of a machine type in a region, None if unknown."""
    return of_cloud(cloud).regions.get(region, {}).get(machine)


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
