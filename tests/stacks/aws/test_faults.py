"""The whole small stack when AWS throttles, fails and loses answers, and when the engine is killed: then `up` again.
One account and a sequence of runs; tests check what each reported and left behind.
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
    """runs: what each `up` did and reported. orphans: what exists after it but is not in the state. created: the number of
    resources per declared URN after an `up` has completed."""

    account: Account
    faults: Faults
    runs: dict[str, Recording] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    created: Counter[str] = field(default_factory=Counter)

    def up(self, name: str) -> None:
        self.runs[name] = until_met(self.faults, self.account.up)
        self.orphans[name] = self.account.orphans()

    def forget(self, orphans: list[Record]) -> None:
        """Remove them, as an operator would after the report."""
        for record in orphans:
            self.account.world.remove(*record.key)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    cluster, faults = loaded(SMALL), Faults()
    with (
        account_of(cluster, tmp_path_factory.mktemp("faults"), faults) as account,
        pytest.MonkeyPatch.context() as patch,
    ):
        trial = Trial(account, faults)
        # With one call at a time, the same resources exist before a fault in every run, and an interrupted call is the only
        # one in progress.
        patch.setenv("PULUMI_PARALLEL", "1")
        faults.lose_answer("create", VPC)
        trial.up("VPC lost")
        trial.forget(trial.orphans["VPC lost"])
        faults.throttle("create", SUBNET)
        trial.up("throttled")
        faults.fail("create", GROUP, nth=2)
        trial.up("failed")
        faults.lose_answer("create", POLICY, meanwhile=kill_engine)
        trial.up("killed")
        patch.delenv("PULUMI_PARALLEL")
        faults.lose_answer("create", INSTANCE)
        trial.up("member lost")
        trial.up("refused")
        trial.forget(trial.orphans["refused"])
        trial.up("created")
        trial.created = Counter(record.urn for record in account.world)
        account.cluster = changed(cluster, CHANGES)
        faults.lose_answer("update", SCALING)
        trial.up("update lost")
        faults.lose_answer("delete", SECRET)
        trial.up("deletion lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_with_the_message_of_aws(trial):
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
    for name, message in words.items():
        assert trial.runs[name].complaints, name
        assert message in str(trial.runs[name].complaints), name
    assert [name for name, run in trial.runs.items() if not run.complaints] == ["created", "changed"]


def test_throttled_failed_and_killed_runs_leave_no_orphans(trial):
    for name in ("throttled", "failed", "created", "update lost", "deletion lost", "changed"):
        assert trial.orphans[name] == [], name
    # The bucket's policy is put, and put again: the next run brings it into the state.
    assert {record.type for record in trial.orphans["killed"]} == {POLICY}


def test_a_stack_created_in_seven_runs_is_complete_and_has_no_duplicates(trial):
    declared = {resource["urn"] for resource in trial.account.stack.deployment()["resources"] if resource.get("id")}
    assert set(trial.created.values()) == {1}
    assert {urn for urn in declared if "$aws:" in urn and "-payload-" not in urn} <= set(trial.created)


def test_a_machine_whose_answer_was_lost_is_not_created_twice_and_is_named(trial):
    (lost,) = trial.orphans["member lost"]
    assert trial.orphans["refused"] == [lost]
    assert lost.type == INSTANCE and lost.id in str(trial.runs["refused"].complaints)


def test_a_leftover_without_name_or_address_is_found_by_the_cluster_tag(trial):
    (lost,) = trial.orphans["VPC lost"]
    assert lost.type == VPC
    assert lost.outputs["tagsAll"]["cluster"] == trial.account.cluster.name


def test_an_update_continues_where_it_stopped_and_repeats_nothing(trial):
    """Each run first reads the actual state."""
    done = {name: {(step.type, step.operation) for step in run.steps} for name, run in trial.runs.items()}
    assert (SCALING, "update") in done["update lost"] and (SCALING, "update") not in done["deletion lost"]
    assert {(SECRET, "delete"), (VERSION, "delete")} <= done["deletion lost"]
    assert done["changed"] <= {(SECRET, "delete"), (VERSION, "delete")}
    assert set(Counter(record.urn for record in trial.account.world).values()) == {1}
