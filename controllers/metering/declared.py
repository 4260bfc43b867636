"""What the spec declares of pools: the price of a host's hour, and from where the energy of its machines is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.pools import Pool
from cluster.provisioning import reader_secrets
from cluster.spec import Cluster
from controllers import prices
from controllers.metering.facts import EnergyFact, EnergySource, PriceFact

MICRO = 1_000_000


def prices_of(cluster: Cluster) -> Mapping[str, PriceFact]:
    """Return pool -> its price: for a site the spec's, in the region the spec's or the list price; unknown if neither has it."""
    return {name: _price(cluster, name) for name in cluster.spec.pools}


def _price(cluster: Cluster, name: str) -> PriceFact:
    pool = cluster.spec.pools[name]
    own = cluster.spec.autoscaler.prices if cluster.spec.autoscaler else {}
    if pool.site:
        dollars, source = pool.price_hour, "spec"
    else:
        dollars, source = prices.of_pool(cluster, name, own), "spec" if name in own else "list"
    return PriceFact(None) if dollars is None else PriceFact(round(dollars * MICRO), source)


def energies_of(cluster: Cluster) -> Mapping[str, EnergyFact]:
    """Return pool -> from where its machines' energy is known, its watts for the estimate, and the price of a kWh of its site."""
    readers = reader_secrets(cluster.spec.sites)
    return {name: _energy(cluster, pool, readers) for name, pool in cluster.spec.pools.items()}


def _energy(cluster: Cluster, pool: Pool, readers: Mapping[str, str]) -> EnergyFact:
    if pool.site is None:
        return EnergyFact(EnergySource.CLOUD)
    site = cluster.spec.sites.get(pool.site)
    dollars = site.price_kwh if site else None
    micro = None if dollars is None else round(dollars * MICRO)
    source = EnergySource.DECLARED if pool.watts_busy else EnergySource.NONE
    if pool.site in readers:
        source = EnergySource.BMC
    return EnergyFact(source, pool.watts_idle or 0, pool.watts_busy or 0, micro)
