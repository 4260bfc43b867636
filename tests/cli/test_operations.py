"""`status CLUSTER operations` and `unlock`: output, questions and refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli import exits
from cluster.load import load_cluster
from cluster.spec import Cluster
from operations.record import one_operation, store, take
from operations.record.holder import Holder
from operations.record.model import Record, now
from tests.cli.terminal import Menagerie

LAB = Path(__file__).parents[2] / "inventories" / "lab" / "cluster.yaml"


@pytest.fixture
def lab(menagerie: Menagerie) -> Cluster:
    return load_cluster(LAB)


@pytest.fixture
def left(lab: Cluster) -> Record:
    """The record that a dead process left, with one step done."""
    dead = Holder.this().model_copy(update={"who": "mia@ops-2", "pid": 4711, "started": 1})
    record = Record(
        id="4f1c2a9b", run="r", cluster="lab", verb="etcd restore", about="main", repeatable=False, holder=dead,
        since=now(), heartbeat=now(),
    )  # fmt: skip
    take.take(store.local_store("lab"), record, print).done("stopped", member="etcd-main-1")
    return record


def test_on_an_idle_cluster_past_operations_are_shown(menagerie: Menagerie, lab: Cluster) -> None:
    with one_operation(lab, None, "up", "--limit worker-1"):
        pass
    ran = menagerie("status", "lab", "operations")
    assert ran.code == 0
    first, second = ran.out.splitlines()
    assert first.startswith("no operation is running (")
    assert "up --limit worker-1" in second
    assert re.search(r"  done  \d+ s$", second)


def test_an_interrupted_operation_is_shown_with_the_commands_that_end_it(menagerie: Menagerie, left: Record) -> None:
    out = menagerie("status", "lab", "operations").out
    assert out.startswith("interrupted run of mia@ops-2 (pid 4711, since ")
    assert "done: stopped member=etcd-main-1" in out
    assert "to continue it: ./menagerie etcd restore lab main\n" in out
    assert "./menagerie unlock lab --operation 4f1c2a9b" in out
    document = menagerie("status", "lab", "operations", "--json").json
    assert (document["state"], document["current"]["steps"][0]["facts"]) == ("cut short", {"member": "etcd-main-1"})


def test_unlock_asks_and_releases(menagerie: Menagerie, left: Record) -> None:
    refused = menagerie("unlock", "lab", "--operation", "4f1c2a9b")
    assert refused.code == exits.BAD_INPUT
    assert "--yes" in refused.err
    declined = menagerie("unlock", "lab", "--operation", "4f1c2a9b", typed="n\n")
    assert declined.code == exits.FAILED
    assert "interrupted run of mia@ops-2" in declined.out
    freed = menagerie("unlock", "lab", "--operation", "4f1c2a9b", typed="y\n")
    assert (freed.code, freed.out.splitlines()[-1]) == (
        0,
        'lab is released; "etcd restore main" of mia@ops-2 had completed: stopped',
    )
    again = menagerie("unlock", "lab", "--operation", "4f1c2a9b", "--json", "--yes")
    assert (again.code, again.json["error"]["code"]) == (exits.BAD_INPUT, "not-held")


def test_a_dry_run_of_unlock_has_the_same_refusals_and_releases_nothing(menagerie: Menagerie, left: Record) -> None:
    dry = menagerie("unlock", "lab", "--operation", "4f1c2a9b", "--dry-run")
    assert (dry.code, dry.out) == (0, 'would release lab; "etcd restore main" of mia@ops-2 had completed: stopped\n')
    assert menagerie("unlock", "lab", "--operation", "0", "--dry-run").code == exits.BAD_INPUT
    assert menagerie("status", "lab", "operations").out.startswith("interrupted run of ")


def test_a_waiting_operation_continues_when_the_cluster_is_free(menagerie: Menagerie, lab: Cluster) -> None:
    from operations.record import InUseError

    def soon(seconds: float) -> None:
        assert 0 < seconds <= 5
        held.__exit__(None, None, None)

    held = one_operation(lab, None, "up")
    held.__enter__()
    with pytest.raises(InUseError) as refused, one_operation(lab, None, "reboot"):
        pass
    assert refused.value.ends_within(60, soon)
    with one_operation(lab, None, "reboot"):
        pass


def test_a_live_operation_is_unlocked_only_with_take_over(menagerie: Menagerie, lab: Cluster) -> None:
    with pytest.raises(Exception, match="unlocked by"), one_operation(lab, None, "etcd restore", "main") as held:
        given = ("unlock", "lab", "--operation", held.record.id, "--yes", "--json")
        refused = menagerie(*given)
        assert (refused.code, refused.json["error"]["code"]) == (exits.LOCKED, "locked")
        assert menagerie("status", "lab", "operations").out.startswith("held by ")
        assert menagerie(*given, "--take-over").code == 0
        held.done("stopped")
