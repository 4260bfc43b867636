"""What a plan's resources cost an hour, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cluster.costs import CostItem
from cluster.spec import Cluster
from controllers.prices.estimate import NEVER_COUNTED, Estimate, estimate
from operations.plan import StackPlan


def dollars(least: float, most: float) -> str:
    """Return an amount or a range: cents, and up to four digits for less than ten cents."""
    first, last = _amount(least), _amount(most)
    return first if first == last else f"{first}–{last}"


def _amount(value: float) -> str:
    if value >= 0.1 or value == 0:
        return f"{value:,.2f}"
    return f"{value:.4f}".rstrip("0") if value >= 0.0001 else "<0.0001"


def sums(total: Estimate) -> Iterator[str]:
    """Yield lines: the sum of what has a price, and what is not in it; none without resources."""
    if not total.lines:
        return
    if total.region not in total.priced_regions:
        yield f"no list price is known in {total.region}, only in {', '.join(total.priced_regions)}"
        return
    if total.years:
        first, last = total.years
        when = str(last) if first == last else f"{first} to {last}"
        yield f"{dollars(total.least, total.most)} $ an hour in all, at list prices of {when} in {total.region}"
    if total.without_price:
        yield f"without a known price: {', '.join(dict.fromkeys(map(_named, total.without_price)))}"
    by_use = [f"{kind} ({what})" for kind, what in total.by_use.items()]
    yield f"billed by use, not in the sum: {', '.join((*by_use, *NEVER_COUNTED))}"


def _named(item: CostItem) -> str:
    return f"{item.kind} ({item.what})" if item.what else item.kind


def with_prices(takes: Mapping[str, Any], plan: StackPlan, cluster: Cluster) -> dict[str, Any]:
    """Return a plan's resources as JSON with what each costs an hour, None if unknown, and the sums; a lab's as they are."""
    before, after = estimate(cluster, plan.before), estimate(cluster, plan.after)
    if before is None or after is None:
        return dict(takes)
    totals = {"before": before, "after": after}
    priced = {
        when: [{**item, "dollars_an_hour": price} for item, price in zip(takes[when], _prices(total), strict=True)]
        for when, total in totals.items()
    }
    return {**takes, **priced, "dollars_an_hour": {when: total.to_json() for when, total in totals.items()}}


def _prices(total: Estimate) -> Iterator[dict[str, float] | None]:
    for line in total.lines:
        yield dict(zip(("least", "most"), (round(each, 6) for each in line.price), strict=True)) if line.price else None
