"""The command `python -m sandbox.lab`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from sandbox.lab import hosts, networks, plan, services, state
from sandbox.lab.__main__ import app
from sandbox.lab.errors import LabError
from sandbox.lab.plan import LabSpec

AddHost = Callable[..., None]
SPEC = LabSpec("lab", "10.77.0.0/24", {}, "10.77.0.10", (), "/image", "", "", "")


@pytest.fixture
def lab(add_host: AddHost, monkeypatch: pytest.MonkeyPatch) -> None:
    add_host("api-1")
    state.write(state.folder("datacentre.json"), asdict(SPEC))
    monkeypatch.setattr(services, "answering", lambda: {"registry": True, "mirror": False})
    monkeypatch.setattr(networks, "is_up", lambda spec: True)


def _output(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception:
        raise result.exception
    return result.stdout


def test_a_host_is_listed_with_its_port_for_tcpdump(lab: None) -> None:
    (line,) = (line for line in _output().splitlines() if "api-1" in line)
    assert plan.port("api-1", "cloud") in line
    assert "dead" in line
    assert f"/run/netns/{networks.netns('router')} tcpdump" in _output()


def test_each_service_is_listed_separately(lab: None) -> None:
    listing = json.loads(_output("--json"))
    assert listing["services"] == {"networks": True, "registry": True, "mirror": False, "store": False}
    assert listing["hosts"][0]["port"] == plan.port("api-1", "cloud")


def test_without_a_lab_the_listing_says_how_to_get_one(add_host: AddHost) -> None:
    with pytest.raises(LabError, match="make lab"):
        _output()


def test_a_command_replaces_this_process_and_so_gets_the_terminal(lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[list[str]] = []
    monkeypatch.setattr(hosts, "leader", lambda name: 4242)
    monkeypatch.setattr(os, "execvp", lambda program, argv: executed.append([program, *argv]))
    _output("run", "api-1", "journalctl", "-f", "--help")
    nsenter = ["nsenter", "--target", "4242", "--all"]
    assert executed == [["nsenter", *nsenter, "journalctl", "-f", "--help"]]


def test_a_misspelt_host_is_not_reported_as_dead(lab: None) -> None:
    with pytest.raises(LabError, match="did you mean api-1"):
        _output("kill", "api-9")
