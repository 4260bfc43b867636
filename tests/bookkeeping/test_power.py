"""Readings of machines' power: in the background, each when it is due, from BMCs that are slow, silent or wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import FailedError, RefusedError
from cluster.spec import Cluster as Spec
from controllers.bookkeeping import power
from controllers.bookkeeping.power import EVERY_S, Power, Reading
from controllers.metering import day as days
from controllers.metering.facts import EnergySource
from controllers.metering.journal import DAY_S
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError, BmcErrorKind
from tests.bookkeeping.surroundings import World, keeper, rounds
from tests.metering.lives import DAY, HOUR, START
from tests.metering.test_declared import BMCS, PROVISIONING
from tests.provisioning.fake import ADDRESS, MAC, Service, link, serving
from tests.waiting import until


@pytest.fixture
def spec(build: Callable[..., Spec]) -> Spec:
    """The lab's workers with BMCs whose power may be read."""
    return with_bmcs(build, ADDRESS)


def with_bmcs(build: Callable[..., Spec], address: Any, port: int = 443) -> Spec:
    tenancy = {"tenancy": {"directory": {"file": "people.yaml"}}, "metering": {}}
    site = {"provisioning": {**PROVISIONING, "bmc": {**BMCS, "port": port}}, "price_kwh": 0.5}
    built = build({**tenancy, "sites": {"onprem": site}})
    hosts = tuple(host.model_copy(update={"mac": MAC, "bmc": address}) for host in built.hosts["workers"])
    return built.model_copy(update={"hosts": {"workers": hosts}})


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ended(readings: Power, machines: tuple[SiteMachine, ...]) -> list[Reading]:
    """Start what is due, wait for it, and return it."""
    taken = list(readings.turn(machines))
    until(lambda: all(future.done() for future in readings._running.values()), "readings do not end", 30, 0.01)
    return [*taken, *readings.turn(machines)]


def test_each_machine_is_read_every_ten_minutes_and_not_all_at_once(spec: Spec) -> None:
    clock, asked = Clock(), list[str]()
    machines = power.machines_of(spec)
    readings = Power(lambda machine: asked.append(machine.name) or 400, clock)
    assert len(machines) == 3
    assert [each.name for each in ended(readings, machines)] == ["worker-1"]
    clock.now += 1
    assert sorted(each.name for each in ended(readings, machines)) == ["worker-2", "worker-3"]
    clock.now += EVERY_S - 2
    assert ended(readings, machines) == []
    clock.now += 2
    assert {each.watts for each in ended(readings, machines)} == {400}
    assert sorted(asked) == sorted([machine.name for machine in machines] * 2)


def test_a_slow_bmc_keeps_no_round_and_no_other_one_waiting_and_its_age_is_known(spec: Spec) -> None:
    clock, may = Clock(), threading.Event()
    machines = power.machines_of(spec)

    def read(machine: SiteMachine) -> int:
        if machine.name == "worker-1":
            may.wait(30)
        return 300

    readings = Power(read, clock)
    clock.now += 10
    list(readings.turn(machines))
    clock.now += 1
    list(readings.turn(machines))
    until(lambda: readings._running["worker-3"].done(), "the others are not read", 30, 0.01)
    assert "worker-1" not in {each.name for each in readings.turn(machines)}
    may.set()
    until(lambda: readings._running["worker-1"].done(), "it is not read", 30, 0.01)
    clock.now += 50
    assert [(each.name, each.age_s) for each in readings.turn(machines)] == [("worker-1", 50.0)]


def test_silent_and_wrong_bmcs_are_logged_once_and_counted_and_when_they_are_back(
    spec: Spec, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = Clock()
    errors: dict[str, Exception] = {
        "worker-1": BmcError(BmcErrorKind.UNREACHABLE, "BMC 127.9.254.1 does not respond"),
        "worker-2": KeyError("Reading"),
    }
    machines = power.machines_of(spec)

    def read(machine: SiteMachine) -> int:
        if error := errors.get(machine.name):
            raise error
        return 300

    readings = Power(read, clock)
    for _ in range(2):
        clock.now += 1
        ended(readings, machines)
        clock.now += EVERY_S
        assert {each.name: each.watts for each in ended(readings, machines)} == {
            "worker-1": None,
            "worker-2": None,
            "worker-3": 300,
        }
    assert readings.silent == 2
    assert [record.getMessage() for record in caplog.records if record.name == power.__name__] == [
        "no reading of the power of worker-1: BMC 127.9.254.1 does not respond",
        "no reading of the power of worker-2: its BMC's answer can't be read: KeyError('Reading')",
    ]
    errors.clear()
    clock.now += EVERY_S
    ended(readings, machines)
    assert readings.silent == 0
    assert "the power of worker-1 is read again" in caplog.text


def test_rounds_write_readings_into_the_journal_and_the_day_has_their_energy(world: World, spec: Spec) -> None:
    book = keeper(world, spec)
    watts = {"worker-1": 1000, "worker-2": 2000, "worker-3": 3000}

    class Now(Power):
        """Reads at once, at every turn."""

        def turn(self, machines: Any) -> Any:
            return [Reading(machine.name, watts[machine.name], 0.0) for machine in machines]

    book.power = Now(lambda _: 0)
    (made,) = rounds(world, spec, book, START + DAY_S + 2 * HOUR, 600)
    assert made.all_missing == ()
    rows = [amounts for _, amounts in made.rows()]
    assert sum(amounts["energy_uj"] for amounts in rows) == 6000 * DAY_S * 1_000_000
    assert sum(amounts["estimated_uj"] + amounts["unmetered_us"] for amounts in rows) == 0
    assert sum(amounts["energy_cost_micro"] for amounts in rows) == 144 * 500_000
    assert made.document["energy"]["declared"]["workers"][0][1:] == ["bmc", 0, 0, 500_000]
    assert world.store().again(made).to_bytes() == made.to_bytes()


def test_a_machine_that_the_spec_loses_has_no_power_from_then_on(world: World, spec: Spec) -> None:
    book = keeper(world, spec)

    class Once(Power):
        def turn(self, machines: Any) -> Any:
            return [Reading(machine.name, 500, 0.0) for machine in machines]

    book.power = Once(lambda _: 0)
    book.once(spec)
    fewer = spec.model_copy(update={"hosts": {"workers": spec.hosts["workers"][:2]}})
    world.cluster.write("/api/v1/nodes", {"metadata": {"name": "worker-3"}}, gone=True)
    world.wait(60)
    book.once(fewer)
    world.wait(60)
    book.once(fewer)
    assert book._book
    assert "worker-3" not in {id for _, id in book._book.known}


def test_without_a_bmc_or_a_reader_nothing_is_read(build: Callable[..., Spec], spec: Spec) -> None:
    assert power.machines_of(with_bmcs(build, None)) == ()
    assert power.machines_of(build()) == ()
    assert power.opened(spec, Path("/nowhere"), {}) is None


def test_logins_are_delivered_as_files_by_site_and_read_from_them(spec: Spec, tmp_path: Path) -> None:
    files = power.logins({"onprem": "bmc-reader"}, lambda name: f"reader:{name}")
    assert files == {"bmc-onprem": "reader:bmc-reader"}
    with pytest.raises(FailedError, match="a login of BMCs can't be read"):
        power.read_logins(spec, tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert power.read_logins(spec, tmp_path) == {"onprem": "reader:bmc-reader"}
    with pytest.raises(RefusedError, match="isn't user:password; store it again: ./menagerie secret lab bmc-reader"):
        power.opened(spec, tmp_path, {"onprem": "nonsense"})


def test_a_real_redfish_service_is_read_over_verified_tls(build: Callable[..., Spec], tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        environment(service, 4321)
        spec = with_bmcs(build, ADDRESS, service.port)
        (tmp_path / "pins.txt").write_text(f"{ADDRESS} sha256:{service.pin}\n")
        readings = power.opened(spec, tmp_path, {"onprem": "menagerie:se:cret"})
        assert readings
        (first, *_) = ended(readings, power.machines_of(spec)[:1])
        assert (first.name, first.watts) == ("worker-1", 4321)
        readings.close()


def environment(service: Service, watts: float) -> None:
    path = "/redfish/v1/Chassis/1/EnvironmentMetrics"
    service.things["/redfish/v1/Chassis/1"]["EnvironmentMetrics"] = link(path)
    service.things[path] = {"PowerWatts": {"Reading": watts}}


def test_the_sources_of_energy_have_words_for_bills() -> None:
    from cli.views.bill.amounts import NO_ENERGY

    assert set(NO_ENERGY) == {EnergySource.CLOUD, EnergySource.NONE}
    assert days.bounds(DAY)[0] == START
