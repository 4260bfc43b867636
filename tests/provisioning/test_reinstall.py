"""Repair never reinstalls automatically if any machine on the network could act as the installation server."""

from __future__ import annotations

from typing import Any

import pytest

from operations.repair.actuators import HandsError
from operations.repair.means import with_bmc
from operations.repair.reinstall import Reinstaller
from tests.provisioning.support import cluster


class TouchedError(Exception):
    """A BMC was contacted."""


def begun(**replaced: str) -> None:
    made = cluster(**replaced)

    def connect(_: object) -> Any:
        raise TouchedError

    reinstaller = Reinstaller(made, None, with_bmc(made), connect)  # type: ignore[arg-type]
    reinstaller("lynx-gpu-1", lambda _: None)


def test_a_machine_with_an_unverified_network_boot_is_left_alone_and_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("operations.repair.reinstall.plan", lambda *_, **__: pytest.fail("an installation was begun"))
    with pytest.raises(HandsError) as raised:
        begun()
    assert "sjc1 has no provisioning.first_stage" in str(raised.value)
    assert "./menagerie machines install lynx --limit lynx-gpu-1 --again" in str(raised.value)


def test_a_machine_whose_first_program_is_the_operator_s_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(*_: object, **__: object) -> None:
        raise TouchedError

    monkeypatch.setattr("operations.repair.reinstall.plan", plan)
    with pytest.raises(TouchedError):
        begun(server="https://10.9.255.5/menagerie", first_stage="secure-boot")
