"""The whole small stack where AWS throttles, fails and loses answers, and where the engine is killed: `up` again.

One account and one run after another; tests look at what each said and left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from sandbox.simcloud.faults import Faults
from sandbox.simcloud.world import Record
from stacks.steps import Recording
from stacks.validation.account import Account
from tests.stacks.aws.conftest import SMALL, account_of, changed, loaded
from tests.stacks.aws.tokens import GROUP, INSTANCE, SCALING, SECRET, SUBNET, VERSION, VPC
from tests.stacks.engines import kill_engine, until_met

POLICY = "aws:s3/bucketPolicy:BucketPolicy"
CHANGES: Mapping[str, Mapping[str, object]] = {
    "pools": {"cpu": {"max": 30}},
    "etcd": {"main": {"heartbeat_interval": "200ms"}},
}


@dataclass
class Trial:
    """runs: what each `up` did and said. orphans: what exists after it and the state does not know. made: how many things
    there are of each that the program declares, once an `up` came to its end."""

    account: Account
    faults: Faults
    runs: dict[str, Recording] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)

    def up(self, called: str) -> None:
        self.runs[called] = until_met(self.faults, self.account.up)
        self.orphans[called] = self.account.orphans()

    def forget(self, orphans: list[Record]) -> None:
        """As an operator who was told of them."""
        for record in orphans:
            self.account.world.remove(*record.key)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    cluster, faults = loaded(SMALL), Faults()
    with account_of(cluster, tmp_path_factory.mktemp("faults"), faults) as account, pytest.MonkeyPatch.context() as one:
        trial = Trial(account, faults)
        # With one call at a time, what is made before a fault is the same in every run, and a call that is cut off is the
        # only one under way.
        one.setenv("PULUMI_PARALLEL", "1")
        faults.lose_answer("create", VPC)
        trial.up("VPC lost")
        trial.forget(trial.orphans["VPC lost"])
        faults.throttle("create", SUBNET)
        trial.up("throttled")
        faults.fail("create", GROUP, nth=2)
        trial.up("failed")
        faults.lose_answer("create", POLICY, meanwhile=kill_engine)
        trial.up("killed")
        one.delenv("PULUMI_PARALLEL")
        faults.lose_answer("create", INSTANCE)
        trial.up("member lost")
        trial.up("refused")
        trial.forget(trial.orphans["refused"])
        trial.up("made")
        trial.made = Counter(record.urn for record in account.world)
        account.cluster = changed(cluster, CHANGES)
        faults.lose_answer("update", SCALING)
        trial.up("update lost")
        faults.lose_answer("delete", SECRET)
        trial.up("deletion lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_in_the_words_of_aws(trial):
    words = {
        "VPC lost": f"the answer to create {VPC} was lost",
        "throttled": "RequestLimitExceeded",
        "failed": "internal error; try again",
        "killed": "",
        "member lost": f"the answer to create {INSTANCE} was lost",
        "refused": "InvalidIPAddress.InUse",
        "update lost": f"the answer to update {SCALING} was lost",
        "deletion lost": f"the answer to delete {SECRET} was lost",
    }
    for called, said in words.items():
        assert trial.runs[called].complaints, called
        assert said in str(trial.runs[called].complaints), called
    assert [called for called, run in trial.runs.items() if not run.complaints] == ["made", "changed"]


def test_what_was_throttled_failed_or_killed_leaves_nothing_that_the_state_does_not_know(trial):
    for called in ("throttled", "failed", "made", "update lost", "deletion lost", "changed"):
        assert trial.orphans[called] == [], called
    # The bucket's policy is put, and put again: the state learns of it from the next run.
    assert {record.type for record in trial.orphans["killed"]} == {POLICY}


def test_a_stack_that_was_made_in_seven_runs_has_nothing_twice_and_nothing_too_few(trial):
    declared = {resource["urn"] for resource in trial.account.stack.deployment()["resources"] if resource.get("id")}
    assert set(trial.made.values()) == {1}
    assert {urn for urn in declared if "$aws:" in urn and "-payload-" not in urn} <= set(trial.made)


def test_a_machine_whose_answer_was_lost_is_not_made_a_second_time_and_is_named(trial):
    (lost,) = trial.orphans["member lost"]
    assert trial.orphans["refused"] == [lost]
    assert lost.type == INSTANCE and lost.id in str(trial.runs["refused"].complaints)


def test_what_no_name_and_no_address_tells_apart_is_left_over_and_found_by_the_cluster_s_tag(trial):
    (lost,) = trial.orphans["VPC lost"]
    assert lost.type == VPC
    assert lost.outputs["tagsAll"]["cluster"] == trial.account.cluster.name


def test_an_update_goes_on_where_it_stopped_and_does_not_do_a_thing_twice(trial):
    """Each run looks first at how the world is."""
    done = {called: {(step.type, step.operation) for step in run.steps} for called, run in trial.runs.items()}
    assert (SCALING, "update") in done["update lost"] and (SCALING, "update") not in done["deletion lost"]
    assert {(SECRET, "delete"), (VERSION, "delete")} <= done["deletion lost"]
    assert done["changed"] <= {(SECRET, "delete"), (VERSION, "delete")}
    assert set(Counter(record.urn for record in trial.account.world).values()) == {1}
