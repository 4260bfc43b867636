"""What machines cost and how long they take to boot, as data with sources and dates.

One YAML file a cloud beside this one, for a handful of its machine types in one region. List prices, to start from: an
operator's own are other ones. A price whose source can't be named isn't here, and then `of` knows none.
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
    """Where figures come from."""

    title: str
    date: Annotated[date, Field(strict=False)]
    """Of the document; of reading it where it has none."""


class Price(Model):
    """US dollars an hour. spot: of the same machine when it may be taken away, None where no source has it."""

    sources: Keys
    hour: float = Field(gt=0)
    spot: float | None = Field(default=None, gt=0)


class Boot(Model):
    """Seconds from ordering a machine to a node that is Ready, drivers included."""

    sources: Keys
    seconds: int = Field(gt=0)


class Prices(Model):
    """One cloud's file. boot: by cpu and gpu, of machines without GPUs and with them."""

    sources: dict[str, Source]
    regions: dict[str, dict[str, Price]]
    boot: dict[str, Boot] = Field(default_factory=dict)


def file_of(cloud: Cloud) -> Path:
    return Path(__file__).parent / f"{cloud}.yaml"


@cache
def of_cloud(cloud: Cloud) -> Prices:
    """All that is known of a cloud. ValueError when its file isn't exactly as above."""
    document = parse(file_of(cloud).read_text(encoding="utf-8"), file_of(cloud).name)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return Prices.model_validate(document.data)


def of(cloud: Cloud, region: str, machine: str) -> Price | None:
    """The price of a machine type in a region, None where it isn't known."""
    return of_cloud(cloud).regions.get(region, {}).get(machine)


def of_pool(cluster: Cluster, name: str, own: Mapping[str, float]) -> float | None:
    """Dollars an hour of a machine of a pool in the region: the operator's own (pool -> dollars), else the list's; None where
    neither is known. KeyError for a pool that the spec does not have."""
    if name in own:
        return own[name]
    pool, plane = cluster.spec.pools[name], cluster.spec.control_plane
    listed = of(plane.cloud, plane.region, pool.machine or "") if plane.cloud in CLOUDS else None
    return (listed.spot if pool.spot else listed.hour) if listed else None


def boot_s(cloud: Cloud, machine: str) -> int | None:
    """Seconds until such a machine is a Ready node, None where it isn't known."""
    known = catalogue.of(cloud).machine_types[machine].type
    kind = "gpu" if known is not None and known.gpus else "cpu"
    boot = of_cloud(cloud).boot.get(kind)
    return boot.seconds if boot else None
