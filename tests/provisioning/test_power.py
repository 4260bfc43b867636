"""What a machine draws, by BMCs of several ages and makers, and what no BMC may be believed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.provisioning.bmc import Bmc
from operations.provisioning.redfish import BmcError, BmcErrorKind
from tests.provisioning.fake import MAC, SYSTEM, Service, link, serving

CHASSIS, OTHER = "/redfish/v1/Chassis/1", "/redfish/v1/Systems/2"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path) as server:
        yield server


def watts(service: Service) -> int:
    with service.client() as redfish:
        return Bmc(redfish, MAC).watts()


def environment(service: Service, reading: Any, chassis: str = CHASSIS) -> None:
    path = f"{chassis}/EnvironmentMetrics"
    service.things.setdefault(chassis, {})["EnvironmentMetrics"] = link(path)
    service.things[path] = {"PowerWatts": {"Reading": reading}}


def controls(service: Service, *entries: dict[str, Any], chassis: str = CHASSIS) -> None:
    service.things.setdefault(chassis, {})["Power"] = link(f"{chassis}/Power")
    service.things[f"{chassis}/Power"] = {"PowerControl": list(entries)}


def test_the_environment_of_its_chassis_says_it(service: Service) -> None:
    environment(service, 5123.6)
    controls(service, {"PowerConsumedWatts": 1})
    assert watts(service) == 5124


def test_an_older_bmc_says_it_by_the_first_entry_of_power(service: Service) -> None:
    controls(service, {"PowerConsumedWatts": 412}, {"Name": "CPU", "PowerConsumedWatts": 120})
    assert watts(service) == 412


@pytest.mark.parametrize("reading", [None, "412", True, -3, 1e9, float("inf")])
def test_a_reading_that_is_no_power_is_replaced_by_the_older_one(service: Service, reading: Any) -> None:
    environment(service, reading)
    controls(service, {"PowerConsumedWatts": 400})
    assert watts(service) == 400


def test_a_chassis_inside_another_one_is_not_counted_twice(service: Service) -> None:
    inner = "/redfish/v1/Chassis/HGX"
    service.things[SYSTEM]["Links"]["Chassis"] = [link(CHASSIS), link(inner)]
    environment(service, 6000)
    environment(service, 4000, inner)
    service.things[inner]["Links"] = {"ContainedBy": link(CHASSIS)}
    assert watts(service) == 6000


def test_chassis_next_to_each_other_are_added(service: Service) -> None:
    beside = "/redfish/v1/Chassis/2"
    service.things[SYSTEM]["Links"]["Chassis"] = [link(CHASSIS), link(beside)]
    environment(service, 600)
    environment(service, 400, beside)
    assert watts(service) == 1000


def test_a_chassis_of_several_machines_says_nothing_of_one_unless_an_entry_names_it(service: Service) -> None:
    service.things[CHASSIS]["Links"] = {"ComputerSystems": [link(SYSTEM), link(OTHER)]}
    environment(service, 2000)
    controls(service, {"PowerConsumedWatts": 2000})
    with pytest.raises(BmcError, match="power of its chassis, which has several machines"):
        watts(service)
    named = [{"PowerConsumedWatts": number, "RelatedItem": [link(of)]} for number, of in ((900, OTHER), (1100, SYSTEM))]
    controls(service, {"PowerConsumedWatts": 2000}, *named)
    assert watts(service) == 1100


@pytest.mark.parametrize("entries", [[], [{"PowerConsumedWatts": None}], ["no entry"]])
def test_a_bmc_that_does_not_say_it_is_named_with_the_way_out(service: Service, entries: list[Any]) -> None:
    controls(service, *entries)
    with pytest.raises(
        BmcError, match=r"127\.9\.254\.1 has no reading of the power of its chassis; declare watts_idle"
    ) as error:
        watts(service)
    assert error.value.kind is BmcErrorKind.MISSING


def test_a_machine_without_a_chassis_is_named(service: Service) -> None:
    service.things[SYSTEM]["Links"]["Chassis"] = []
    with pytest.raises(BmcError, match="names no chassis"):
        watts(service)
