"""What counted things cost an hour at list prices, as far as prices are known. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cluster.catalogue import CLOUDS
from cluster.costs import CostItem, CostKind
from cluster.spec import Cluster
from controllers.prices import of_cloud
from controllers.prices.model import Prices

NEVER_COUNTED = ("traffic", "requests", "logs", "what volumes, backups and buckets hold")
"""What a plan cannot show, in any cloud."""


@dataclass(frozen=True)
class EstimateLine:
    """price: dollars an hour for the least and the most of an item; None without one. years: of the sources of its price."""

    item: CostItem
    price: tuple[float, float] | None = None
    years: tuple[int, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """by_use: kinds that cost nothing by the hour -> what is billed instead. years: of the sources of its prices, oldest and
    newest; None without any. priced_regions: regions with prices."""

    region: str
    lines: tuple[EstimateLine, ...]
    by_use: dict[CostKind, str]
    years: tuple[int, int] | None
    priced_regions: tuple[str, ...]

    @property
    def least(self) -> float:
        return sum(line.price[0] for line in self.lines if line.price)

    @property
    def most(self) -> float:
        return sum(line.price[1] for line in self.lines if line.price)

    @property
    def without_price(self) -> tuple[CostItem, ...]:
        """The items whose price is unknown, unless their kind is billed by use."""
        return tuple(line.item for line in self.lines if not line.price and line.item.kind not in self.by_use)

    def price_of(self, item: CostItem) -> tuple[float, float] | None:
        """Return the dollars an hour of an item, for its least and its most; None if unknown."""
        return next((line.price for line in self.lines if line.item == item), None)

    def of(self, kind: CostKind) -> tuple[float, float]:
        """Return what all items of a kind cost an hour."""
        prices = [line.price for line in self.lines if line.item.kind is kind and line.price]
        return sum(least for least, _ in prices), sum(most for _, most in prices)

    def to_json(self) -> dict[str, Any]:
        """Return the sums, and what is not in them."""
        return {
            "region": self.region,
            "currency": "USD",
            "least": round(self.least, 6),
            "most": round(self.most, 6),
            "years": self.years,
            "without_price": [{"kind": item.kind, "what": item.what} for item in self.without_price],
            "by_use": self.by_use,
            "never_counted": NEVER_COUNTED,
        }


def estimate(cluster: Cluster, items: Iterable[CostItem]) -> Estimate | None:
    """Return what a cluster's items cost an hour; None for a lab."""
    plane, counted = cluster.spec.control_plane, tuple(items)
    if plane.cloud not in CLOUDS:
        return None
    known = of_cloud(plane.cloud)
    lines = tuple(_line(known, plane.region, item) for item in counted)
    by_use = {kind: text for kind, text in known.by_use.items() if any(item.kind is kind for item in counted)}
    priced = tuple(sorted({*known.regions, *known.disks, *known.others}))
    return Estimate(plane.region, lines, by_use, _years(lines), priced)


def _line(known: Prices, region: str, item: CostItem) -> EstimateLine:
    price = known.of(region, item.kind, item.type)
    least, most = (price.hourly(item, count) if price else None for count in (item.least, item.most))
    if price is None or least is None or most is None:
        return EstimateLine(item)
    return EstimateLine(item, (least, most), tuple(known.sources[key].date.year for key in price.sources))


def _years(lines: Iterable[EstimateLine]) -> tuple[int, int] | None:
    years = [year for line in lines for year in line.years]
    return (min(years), max(years)) if years else None
