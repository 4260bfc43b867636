"""The whole small stack where Azure throttles, fails and loses answers, and where the engine is killed: `up` again.

One subscription and one run after another; tests look at what each said and left.
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
    """said: by what was refused in each run, "" where nothing was. orphans: what exists after it and the state lacks."""

    account: Account
    faults: Faults
    said: dict[str, str] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)

    def up(self, called: str) -> None:
        self.said[called] = until_met(self.faults, self.account.refused)
        self.orphans[called] = self.account.orphans()

    def forget(self, orphans: list[Record]) -> None:
        """As an operator who was told of them."""
        for record in orphans:
            self.account.world.remove(*record.key)


@pytest.fixture(scope="module")
def trial(koala, tmp_path_factory, opened) -> Iterator[Trial]:
    faults = Faults()
    with (
        opened(koala.cluster, tmp_path_factory.mktemp("faults"), faults) as account,
        pytest.MonkeyPatch.context() as one,
    ):
        trial = Trial(account, faults)
        # With one call at a time, what is made before a fault is the same in every run, and a call that is cut off is the
        # only one under way.
        one.setenv("PULUMI_PARALLEL", "1")
        faults.lose_answer("create", ADDRESS)
        trial.up("address lost")
        faults.throttle("create", NETWORK)
        trial.up("throttled")
        faults.fail("create", INTERFACE, nth=2)
        trial.up("failed")
        faults.lose_answer("create", SCALE_SET, meanwhile=kill_engine)
        trial.up("killed")
        one.delenv("PULUMI_PARALLEL")
        trial.pending = [each["resource"]["urn"] for each in account.deployment()["pending_operations"]]
        trial.up("told")
        trial.forget(trial.orphans["told"])
        trial.up("made")
        trial.made = Counter(record.type for record in account.world)
        faults.lose_answer("update", SCALE_SET)
        trial.account.cluster = changed(koala.cluster, network__max_pods=200)
        trial.up("update lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_in_the_words_of_azure(trial):
    words = {
        "throttled": "TooManyRequests",
        "address lost": f"the answer to create {ADDRESS} was lost",
        "failed": "internal error; try again",
        "killed": "the engine is gone",
        "told": "cannot create already existing resource",
        "update lost": f"the answer to update {SCALE_SET} was lost",
    }
    for called, said in words.items():
        assert trial.said[called], called
        assert said in trial.said[called], f"{called}: {trial.said[called]}"
    assert [called for called, said in trial.said.items() if not said] == ["made", "changed"]


def test_what_was_throttled_or_failed_leaves_nothing_that_the_state_does_not_know(trial):
    lost = trial.orphans["address lost"]
    for called in ("throttled", "failed"):
        assert trial.orphans[called] == lost, called
    for called in ("made", "update lost", "changed"):
        assert trial.orphans[called] == [], called


def test_machines_of_a_run_that_was_killed_are_not_made_a_second_time_and_are_named(trial):
    (lost,) = (record for record in trial.orphans["killed"] if record.type == SCALE_SET)
    assert trial.pending == [lost.urn]
    assert lost in trial.orphans["told"]
    assert lost.id in trial.said["told"]
    assert f"pulumi import {SCALE_SET}" in trial.said["told"]


def test_what_has_a_generated_name_is_left_over_and_found_by_the_cluster_s_tags(trial):
    (lost,) = trial.orphans["address lost"]
    assert lost.type == ADDRESS
    assert lost.outputs["tags"]["cluster"] == trial.account.cluster.name
    assert lost in trial.orphans["failed"]


def test_a_stack_that_was_made_in_six_runs_is_that_of_one(trial, koala):
    assert trial.made == Counter(record.type for record in koala.world)


def test_an_update_whose_answer_was_lost_is_made_good_by_the_next(trial):
    assert Counter(record.type for record in trial.account.world) == trial.made
    assert trial.account.preview().steps == []
