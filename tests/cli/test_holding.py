"""--wait and --without-record of verbs that lock a cluster."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import typer

from cli import holding
from cli.options import ClusterArg, DryOpt
from cluster.errors import LockedError
from operations.record import InUseError


class Locked(InUseError):
    def __init__(self, *, ends: bool = True) -> None:
        Exception.__init__(self, "lab is locked")
        self._ends = ends
        self.record: Any = type("Record", (), {"cluster": "lab", "held_by": "mia@ops-2"})

    def ends_within(self, seconds: float, pause: object = None) -> bool:
        assert 0 < seconds <= 60
        return self._ends


def verb(errors: list[Exception]) -> Any:
    @holding.holds()
    def held(cluster: ClusterArg, dry_run: DryOpt = False) -> None:
        """Hold the cluster."""
        if errors:
            raise errors.pop()

    return held


def test_the_options_come_before_those_that_every_verb_has() -> None:
    assert list(inspect.signature(verb([])).parameters) == ["cluster", "wait", "without_record", "dry_run"]


def test_without_a_wait_a_lock_refuses_at_once() -> None:
    with pytest.raises(InUseError):
        verb([Locked()])(cluster="lab")


def test_a_verb_starts_again_when_the_cluster_is_free(capsys: pytest.CaptureFixture[str]) -> None:
    errors: list[Exception] = [Locked(), Locked()]
    verb(errors)(cluster="lab", wait=60.0)
    assert errors == []
    assert capsys.readouterr().err.count("lab is locked by mia@ops-2; waiting up to") == 2


@pytest.mark.parametrize("error", [LockedError("cut short"), Locked(ends=False), typer.BadParameter("no")])
def test_wait_does_not_wait_for_what_does_not_end(error: Exception) -> None:
    with pytest.raises(type(error)):
        verb([error])(cluster="lab", wait=60.0)


def test_without_record_holds_for_one_run() -> None:
    values = []

    @holding.holds()
    def held(cluster: ClusterArg) -> None:
        values.append(holding.without_record.get())

    held(cluster="lab", without_record=True)
    held(cluster="lab")
    assert values == [True, False]
