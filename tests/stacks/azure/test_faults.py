"""The whole small stack when Azure throttles, fails and loses answers, and when the engine is killed: then `up` again.

One subscription and a sequence of runs; tests check what each reported and left behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sandbox.simcloud.faults import Faults
from sandbox.simcloud.world import Record
from tests.stacks.azure.conftest import Account, changed
from tests.stacks.engines import kill_engine, until_met

ADDRESS = "azure-native:network:PublicIPAddress"
INTERFACE = "azure-native:network:NetworkInterface"
NETWORK = "azure-native:network:VirtualNetwork"
SCALE_SET = "azure-native:compute:VirtualMachineScaleSet"


@dataclass
class Trial:
    """errors: the error of each run, "" if there was none. orphans: what exists after it but is not in the state."""

    account: Account
    faults: Faults
    errors: dict[str, str] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    created: Counter[str] = field(default_factory=Counter)

    def up(self, name: str) -> None:
        self.errors[name] = until_met(self.faults, self.account.refused)
        self.orphans[name] = self.account.orphans()

    def forget(self, orphans: list[Record]) -> None:
        """Remove them, as an operator would after the report."""
        for record in orphans:
            self.account.world.remove(*record.key)


@pytest.fixture(scope="module")
def trial(koala, tmp_path_factory, opened) -> Iterator[Trial]:
    faults = Faults()
    with (
        opened(koala.cluster, tmp_path_factory.mktemp("faults"), faults) as account,
        pytest.MonkeyPatch.context() as patch,
    ):
        trial = Trial(account, faults)
        # With one call at a time, the same resources exist before a fault in every run, and an interrupted call is the only
        # one in progress.
        patch.setenv("PULUMI_PARALLEL", "1")
        faults.lose_answer("create", ADDRESS)
        trial.up("address lost")
        faults.throttle("create", NETWORK)
        trial.up("throttled")
        faults.fail("create", INTERFACE, nth=2)
        trial.up("failed")
        faults.lose_answer("create", SCALE_SET, meanwhile=kill_engine)
        trial.up("killed")
        patch.delenv("PULUMI_PARALLEL")
        trial.pending = [operation["resource"]["urn"] for operation in account.deployment()["pending_operations"]]
        trial.up("refused")
        trial.forget(trial.orphans["refused"])
        trial.up("created")
        trial.created = Counter(record.type for record in account.world)
        faults.lose_answer("update", SCALE_SET)
        trial.account.cluster = changed(koala.cluster, network__max_pods=200)
        trial.up("update lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_with_the_message_of_azure(trial):
    words = {
        "throttled": "TooManyRequests",
        "address lost": f"the answer to create {ADDRESS} was lost",
        "failed": "internal error; try again",
        "killed": "the engine died",
        "refused": "cannot create already existing resource",
        "update lost": f"the answer to update {SCALE_SET} was lost",
    }
    for name, message in words.items():
        assert trial.errors[name], name
        assert message in trial.errors[name], f"{name}: {trial.errors[name]}"
    assert [name for name, message in trial.errors.items() if not message] == ["created", "changed"]


def test_throttled_and_failed_runs_leave_no_orphans(trial):
    lost = trial.orphans["address lost"]
    for name in ("throttled", "failed"):
        assert trial.orphans[name] == lost, name
    for name in ("created", "update lost", "changed"):
        assert trial.orphans[name] == [], name


def test_machines_of_a_killed_run_are_not_created_twice_and_are_named(trial):
    (lost,) = (record for record in trial.orphans["killed"] if record.type == SCALE_SET)
    assert trial.pending == [lost.urn]
    assert lost in trial.orphans["refused"]
    assert lost.id in trial.errors["refused"]
    assert f"pulumi import {SCALE_SET}" in trial.errors["refused"]


def test_a_leftover_with_a_generated_name_is_found_by_the_clusters_tags(trial):
    (lost,) = trial.orphans["address lost"]
    assert lost.type == ADDRESS
    assert lost.outputs["tags"]["cluster"] == trial.account.cluster.name
    assert lost in trial.orphans["failed"]


def test_a_stack_created_in_six_runs_equals_one_created_in_a_single_run(trial, koala):
    assert trial.created == Counter(record.type for record in koala.world)


def test_the_next_update_repairs_one_whose_answer_was_lost(trial):
    assert Counter(record.type for record in trial.account.world) == trial.created
    assert trial.account.preview().steps == []
