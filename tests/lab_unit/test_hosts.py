from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from sandbox.lab import hosts, mounts, networks, processes, seed
from sandbox.lab.errors import LabError
from sandbox.lab.hosts import HostSpec
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

SPEC = LabSpec("lab", "10.77.0.0/24", {}, "10.77.0.10", (), "/image", "", "", "")
AddHost = Callable[..., None]


@pytest.fixture
def boots(add_host: AddHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A created host has no disk and no network, and a console that records its boot."""

    def start(daemon: Daemon) -> None:
        log = processes.log_path(daemon.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as console:
            console.write("booted\n")

    monkeypatch.setattr(processes, "start", start)
    for module, names in ((mounts, ["overlay"]), (networks, ["plug_in", "unplug"]), (seed, ["write", "write_cloud"])):
        for name in names:
            monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(hosts, "_wait_for", lambda spec: None)


def test_the_console_of_a_recreated_host_starts_empty(boots: None) -> None:
    for _ in range(2):
        hosts.create(HostSpec("api-1", "cloud", "cloud", "10.77.0.11"), SPEC)
    assert hosts.console("api-1").read_text() == "booted\n"


def test_killing_an_unknown_host_suggests_the_nearest_name(add_host: AddHost) -> None:
    add_host("api-1", "worker-1")
    with pytest.raises(LabError, match="no host api-9; did you mean api-1"):
        hosts.kill("api-9")
    hosts.kill("api-1")


def test_an_unknown_name_without_a_near_match_gets_the_listing_command(add_host: AddHost) -> None:
    with pytest.raises(LabError, match="no host xyz; `.venv/bin/python -m sandbox.lab` lists"):
        hosts.kill("xyz")


def test_a_command_on_a_dead_host_is_refused_with_the_way_out(add_host: AddHost) -> None:
    add_host("api-1")
    with pytest.raises(LabError, match=r"api-1 is not running.*menagerie up"):
        hosts.run("api-1", ["true"])


def test_a_dead_host_is_gone_but_its_spec_is_known(add_host: AddHost) -> None:
    add_host("api-1")
    spec = hosts.find("api-1")
    assert spec is not None
    assert (hosts.read("api-1"), spec.address) == (None, "10.77.0.11")
    assert hosts.find("api-2") is None


def test_a_command_that_times_out_is_an_error_without_a_traceback(
    add_host: AddHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(argv: list[str], timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(argv, timeout)

    add_host("api-1")
    monkeypatch.setattr(hosts, "leader", lambda name: 4242)
    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(LabError, match="journalctl did not finish within 1 s on api-1"):
        hosts.run("api-1", ["journalctl", "-f"], timeout=1)
