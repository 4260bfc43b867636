"""Models of price data. A figure without a source, an unknown kind, or a price of 0 or less is refused.

Figures are US dollars. What a cloud bills by the month is divided by `MONTH_H`.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Self

from pydantic import Field, model_validator

from cluster.costs import CostItem, CostKind
from cluster.model import Model

MONTH_H = 730
"""Hours in a month, as the clouds' calculators count."""
ANY = "any"
"""The type of things that have none."""

Keys = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Dollars = Annotated[float, Field(gt=0)]
Kind = Annotated[CostKind, Field(strict=False)]


class Source(Model):
    """A source of figures."""

    title: str
    date: Annotated[date, Field(strict=False)]
    """Of the document; if it has none, the day it was read."""


class Price(Model):
    """Of a machine, an hour. spot: of the same machine as a spot machine, None if no source has it."""

    sources: Keys
    hour: Dollars
    spot: Dollars | None = None

    def hourly(self, item: CostItem, count: int) -> float | None:
        """Return the dollars an hour of `count` such items, None if unknown."""
        each = self.spot if item.spot else self.hour
        return None if each is None else each * count


class DiskPrice(Model):
    """Of a disk: by the GiB and month, or by sizes, of which a disk is billed as the next larger one.

    sizes: GiB -> dollars a month. iops_month: of each IOPS above `iops_free`, which the space includes; the price is the same
    up to `iops_most`, None if there is no limit.
    """

    sources: Keys
    gib_month: Dollars | None = None
    sizes: dict[Annotated[int, Field(strict=False, gt=0)], Dollars] = Field(default_factory=dict)
    iops_month: Dollars | None = None
    iops_free: int = Field(default=0, ge=0)
    iops_most: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.gib_month is None) == (not self.sizes):
            raise ValueError("a disk has a price by the GiB (gib_month) or by sizes; give one of both")
        return self

    def hourly(self, item: CostItem, count: int) -> float | None:
        """Return the dollars an hour of `count` such items, None if unknown."""
        space, rate = self._space(item.gib), self._rate(item.iops)
        return None if space is None or rate is None else (space + rate) / MONTH_H * count

    def _space(self, gib: int) -> float | None:
        if gib == 0:
            return None  # as large as its image
        if self.gib_month is not None:
            return gib * self.gib_month
        fitting = [size for size in self.sizes if size >= gib]
        return self.sizes[min(fitting)] if fitting else None

    def _rate(self, iops: int) -> float | None:
        if iops <= self.iops_free:
            return 0.0
        if self.iops_month is None or iops > (self.iops_most or iops):
            return None
        return (iops - self.iops_free) * self.iops_month


class UnitPrice(Model):
    """Of anything else, by the hour or by the month. most: what all of them cost an hour at most."""

    sources: Keys
    hour: Dollars | None = None
    month: Dollars | None = None
    most: Dollars | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.hour is None) == (self.month is None):
            raise ValueError("a price is by the hour or by the month; give one of both")
        return self

    def hourly(self, item: CostItem, count: int) -> float | None:
        """Return the dollars an hour of `count` such items."""
        each = self.hour if self.hour is not None else (self.month or 0.0) / MONTH_H
        return min(each * count, self.most or each * count)


class BootTime(Model):
    """Seconds from ordering a machine until its node is Ready, drivers included."""

    sources: Keys
    seconds: int = Field(gt=0)


class Prices(Model):
    """One cloud's file.

    regions: region -> machine type. disks: region -> type. others: region -> kind -> type, or `ANY`. by_use: kinds that cost
    nothing by the hour -> what is billed instead. boot: keys cpu (machines without GPUs) and gpu.
    """

    sources: dict[str, Source]
    regions: dict[str, dict[str, Price]]
    disks: dict[str, dict[str, DiskPrice]] = Field(default_factory=dict)
    others: dict[str, dict[Kind, dict[str, UnitPrice]]] = Field(default_factory=dict)
    by_use: dict[Kind, str] = Field(default_factory=dict)
    boot: dict[str, BootTime] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_kind_in_its_place(self) -> Self:
        for region, kinds in self.others.items():
            for kind in kinds:
                if kind in (CostKind.MACHINE, CostKind.DISK):
                    raise ValueError(f"others.{region} has {kind}; machines belong in regions, disks in disks")
                if kind in self.by_use:
                    raise ValueError(f"others.{region} has a price of {kind}, which by_use says are billed by use")
        return self

    def figures(self) -> tuple[Price | DiskPrice | UnitPrice | BootTime, ...]:
        """Return everything that needs a source."""
        machines = [figure for types in self.regions.values() for figure in types.values()]
        disks = [figure for types in self.disks.values() for figure in types.values()]
        kinds = [types for region in self.others.values() for types in region.values()]
        others = [figure for types in kinds for figure in types.values()]
        return (*machines, *disks, *others, *self.boot.values())

    def of(self, region: str, kind: CostKind, type_: str) -> Price | DiskPrice | UnitPrice | None:
        """Return the price of a kind and type in a region, None if unknown."""
        if kind is CostKind.MACHINE:
            return self.regions.get(region, {}).get(type_)
        if kind is CostKind.DISK:
            return self.disks.get(region, {}).get(type_)
        return self.others.get(region, {}).get(kind, {}).get(type_ or ANY)
