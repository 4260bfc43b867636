"""The whole small stack where Google throttles, fails and loses answers, and where the engine is killed: `up` again.

One project and one run after another; tests look at what each said and left.
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
    """said: what each `up` that failed said. changes: of each that came to its end. orphans: what existed after it and
    the state did not know."""

    stack: ClusterStack
    world: World
    faults: Faults
    said: dict[str, str] = field(default_factory=dict)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    orphans: dict[str, list[Record]] = field(default_factory=dict)
    made: list[Record] = field(default_factory=list)

    def up(self, called: str) -> None:
        said = until_met(self.faults, lambda: self._up(called))
        if said is not None:
            self.said[called] = said
        self.orphans[called] = self.world.orphans(self.stack.deployment())

    def _up(self, called: str) -> str | None:
        try:
            summary, _ = self.stack.up()
        except StackError as error:
            return " ".join(str(error).split())
        self.changes[called] = dict(summary.changes)
        return None


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    cluster, faults = ready(load_cluster(ROOT / "examples" / "gcp-small" / "cluster.yaml")), Faults()
    with (
        opened(cluster, tmp_path_factory.mktemp("faults"), faults) as (stack, world, current),
        pytest.MonkeyPatch.context() as one,
    ):
        trial = Trial(stack, world, faults)
        # With one call at a time, what is made before a fault is the same in every run, and a call that is cut off is the
        # only one under way.
        one.setenv("PULUMI_PARALLEL", "1")
        faults.throttle("create", SUBNETWORK)
        trial.up("throttled")
        faults.fail("create", BUCKET, nth=2)
        trial.up("failed")
        faults.lose_answer("create", BINDING, meanwhile=kill_engine)
        trial.up("killed")
        one.delenv("PULUMI_PARALLEL")
        faults.lose_answer("create", GROUP)
        trial.up("group lost")
        trial.up("refused")
        for record in trial.orphans["refused"]:
            # As an operator who was told of it.
            world.remove(*record.key)
        trial.up("made")
        trial.made = list(world)
        image = "projects/own/global/images/family/own-debian"
        current[0] = changed(cluster, {"control_plane.image": image, "control_plane.operators": ["10.250.0.0/24"]})
        faults.lose_answer("update", GROUP)
        trial.up("update lost")
        faults.lose_answer("delete", TEMPLATE)
        trial.up("deletion lost")
        trial.up("changed")
        yield trial


def test_every_fault_stops_its_run_and_says_why(trial: Trial) -> None:
    words = {
        "throttled": "rateLimitExceeded",
        "failed": "internal error; try again",
        "group lost": f"the answer to create {GROUP} was lost",
        "refused": "already exists",
        "update lost": f"the answer to update {GROUP} was lost",
        "deletion lost": f"the answer to delete {TEMPLATE} was lost",
    }
    assert list(trial.changes) == ["made", "changed"], trial.said
    assert set(trial.said) == {*words, "killed"}
    for called, said in words.items():
        assert said in trial.said[called], called


def test_what_was_throttled_failed_or_lost_in_an_update_leaves_nothing_that_the_state_does_not_know(
    trial: Trial,
) -> None:
    for called in ("throttled", "failed", "made", "update lost", "deletion lost", "changed"):
        assert trial.orphans[called] == [], called


def test_a_right_whose_giving_was_cut_off_is_given_again_and_is_one(trial: Trial) -> None:
    assert {record.type for record in trial.orphans["killed"]} == {BINDING}
    assert BINDING not in {record.type for record in trial.orphans["group lost"]}


def test_a_group_whose_answer_was_lost_is_not_made_a_second_time_and_is_named_with_the_way_out(trial: Trial) -> None:
    (lost,) = trial.orphans["group lost"]
    assert trial.orphans["refused"] == [lost]
    assert lost.type == GROUP
    assert f"pulumi import {GROUP} <name> {lost.id}" in trial.said["refused"]


def test_a_stack_that_was_made_in_six_runs_has_nothing_twice_and_nothing_too_few(trial: Trial) -> None:
    assert set(Counter(record.urn for record in trial.made).values()) == {1}
    assert set(Counter(record.urn for record in trial.world).values()) == {1}
    declared = {each["urn"] for each in trial.stack.deployment()["resources"] if each["type"].startswith("gcp:")}
    assert {record.urn for record in trial.world} == declared


def test_an_update_goes_on_where_it_stopped(trial: Trial) -> None:
    assert set(trial.changes["changed"]) <= {"same", "delete", "update"}
    assert len(trial.world.of_type(GROUP)) == 1
    assert len(trial.world.of_type(TEMPLATE)) == 2
