"""What the ledger takes from the spec: prices of hours and of energy, and from where the energy of each pool is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.spec import Cluster
from controllers.metering import declared
from controllers.metering.facts import EnergyFact, EnergySource, PriceFact

TENANCY = {"tenancy": {"directory": {"file": "people.yaml"}}}
BMCS = {"credentials": {"secret": "bmc"}, "reader": {"secret": "bmc-reader"}, "pins": "pins.txt"}
PROVISIONING: dict[str, Any] = {
    "server": "http://10.8.255.5/menagerie",
    "mirror": "http://10.8.255.5/debian",
    "disk": {},
    "authorized_keys": [],
    "ntp": ["10.8.255.1"],
    "nameservers": ["10.8.255.1"],
}


def test_prices_are_the_specs_the_list_price_or_unknown(build: Callable[..., Cluster]) -> None:
    priced = build({**TENANCY, "pools": {"workers": {"price_hour": 0.25}}})
    assert declared.prices_of(priced)["workers"] == PriceFact(250_000, "spec")
    assert declared.prices_of(build(TENANCY))["workers"] == PriceFact(None)
    region = {"pools": {"batch": {"machine": "lab", "min": 0, "max": 2}}}
    assert declared.prices_of(build({**TENANCY, **region}))["batch"] == PriceFact(None)
    own = {"autoscaler": {"prices": {"batch": 1.5}}}
    assert declared.prices_of(build({**TENANCY, **region, **own}))["batch"] == PriceFact(1_500_000, "spec")


def energy(build: Callable[..., Cluster], pool: dict[str, Any], site: dict[str, Any]) -> EnergyFact:
    """Return what is known of the lab's pool at a site, with changes of the pool and of the site."""
    built = build({**TENANCY, "pools": {"workers": pool}, "sites": {"onprem": site}})
    return declared.energies_of(built)["workers"]


def test_energy_is_known_from_bmcs_or_from_declared_watts_or_not_at_all(build: Callable[..., Cluster]) -> None:
    watts = {"watts_idle": 900, "watts_busy": 5200}
    without = {"provisioning": {**PROVISIONING, "bmc": {**BMCS, "reader": None}}}
    assert energy(build, {}, without) == EnergyFact(EnergySource.NONE)
    assert energy(build, watts, without) == EnergyFact(EnergySource.DECLARED, 900, 5200)
    site = {"provisioning": {**PROVISIONING, "bmc": BMCS}, "price_kwh": 0.14}
    assert energy(build, {}, site) == EnergyFact(EnergySource.BMC, 0, 0, 140_000)
    assert energy(build, watts, site) == EnergyFact(EnergySource.BMC, 900, 5200, 140_000)


def test_no_energy_is_known_of_machines_in_the_region(build: Callable[..., Cluster]) -> None:
    built = build({**TENANCY, "pools": {"batch": {"machine": "lab", "min": 0, "max": 2}}})
    assert declared.energies_of(built)["batch"] == EnergyFact(EnergySource.CLOUD)
