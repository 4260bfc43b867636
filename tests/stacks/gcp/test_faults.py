"""The whole small stack when Google throttles, fails and loses answers, and when the engine is killed: then `up` again.

One project and a sequence of runs; tests check what each reported and left behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from cluster.load import load_cluster
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.world import Record, World
from stacks.automation import ClusterStack
from stacks.errors import StackError
from tests.stacks.engines import kill_engine, until_met
from tests.stacks.gcp.conftest import ROOT, changed, opened, ready

SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
BUCKET = "gcp:storage/bucket:Bucket"
BINDING = "gcp:secretmanager/secretIamBinding:SecretIamBinding"
GROUP = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"


@dataclass
class Trial:
    """errors: of each `up` that failed. changes: of each that completed. orphans: what existed after it but was not in the
    state."""

    stack: ClusterStack
    world: World
    faults: Faults
    errors: dict[str, str] = field(default_factory=dict)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    created: list[Record] = field(default_factory=list)

    def up(self, name: str) -> None:
        error_ = until_met(self.faults, lambda: self._up(name))
        if error_ is not None:
            self.errors[name] = error_
        self.orphans[name] = self.world.orphans(self.stack.deployment())

    def _up(self, name: str) -> str | None:
        try:
            summary, _ = self.stack.up()
        except StackError as error:
            return " ".join(str(error).split())
        self.changes[name] = dict(summary.changes)
        return None


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    cluster, faults = ready(load_cluster(ROOT / "examples" / "gcp-small" / "cluster.yaml")), Faults()
    with (
        opened(cluster, tmp_path_factory.mktemp("faults"), faults) as (stack, world, current),
        pytest.MonkeyPatch.context() as patch,
    ):
        trial = Trial(stack, world, faults)
        # With one call at a time, the same resources exist before a fault in every run, and an interrupted call is the only
        # one in progress.
        patch.setenv("PULUMI_PARALLEL", "1")
        faults.throttle("create", SUBNETWORK)
        trial.up("throttled")
        faults.fail("create", BUCKET, nth=2)
        trial.up("failed")
        faults.lose_answer("create", BINDING, meanwhile=kill_engine)
        trial.up("killed")
        patch.delenv("PULUMI_PARALLEL")
        faults.lose_answer("create", GROUP)
        trial.up("group lost")
        trial.up("refused")
        for record in trial.orphans["refused"]:
            # As an operator would after the report.
            world.remove(*record.key)
        trial.up("created")
        trial.created = list(world)
        image = "projects/own/global/images/family/own-debian"
        current[0] = changed(cluster, {"control_plane.image": image, "control_plane.operators": ["10.250.0.0/24"]})
        faults.lose_answer("update", GROUP)
        trial.up("update lost")
        faults.lose_answer("delete", TEMPLATE)
        trial.up("deletion lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_with_a_reason(trial: Trial) -> None:
    words = {
        "throttled": "rateLimitExceeded",
        "failed": "internal error; try again",
        "group lost": f"the answer to create {GROUP} was lost",
        "refused": "already exists",
        "update lost": f"the answer to update {GROUP} was lost",
        "deletion lost": f"the answer to delete {TEMPLATE} was lost",
    }
    assert list(trial.changes) == ["created", "changed"], trial.errors
    assert set(trial.errors) == {*words, "killed"}
    for name, message in words.items():
        assert message in trial.errors[name], name


def test_throttled_failed_and_lost_updates_leave_no_orphans(
    trial: Trial,
) -> None:
    for name in ("throttled", "failed", "created", "update lost", "deletion lost", "changed"):
        assert trial.orphans[name] == [], name


def test_an_interrupted_grant_is_repeated_without_a_duplicate(trial: Trial) -> None:
    assert {record.type for record in trial.orphans["killed"]} == {BINDING}
    assert BINDING not in {record.type for record in trial.orphans["group lost"]}


def test_a_group_whose_answer_was_lost_is_not_created_twice_and_is_named_with_the_way_out(trial: Trial) -> None:
    (lost,) = trial.orphans["group lost"]
    assert trial.orphans["refused"] == [lost]
    assert lost.type == GROUP
    assert f"pulumi import {GROUP} <name> {lost.id}" in trial.errors["refused"]


def test_a_stack_created_in_six_runs_is_complete_and_has_no_duplicates(trial: Trial) -> None:
    assert set(Counter(record.urn for record in trial.created).values()) == {1}
    assert set(Counter(record.urn for record in trial.world).values()) == {1}
    declared = {
        resource["urn"] for resource in trial.stack.deployment()["resources"] if resource["type"].startswith("gcp:")
    }
    assert {record.urn for record in trial.world} == declared


def test_an_update_continues_where_it_stopped(trial: Trial) -> None:
    assert set(trial.changes["changed"]) <= {"same", "delete", "update"}
    assert len(trial.world.of_type(GROUP)) == 1
    assert len(trial.world.of_type(TEMPLATE)) == 2
