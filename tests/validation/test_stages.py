"""Every stage, tested with a program that has the fault it must find, under the real engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cluster.spec import Cluster
from sandbox.simcloud.rules import Offers
from stacks import policies
from stacks.validation import stages
from stacks.validation.account import Program, opened
from stacks.validation.model import Finding, Outcome, Stage, StageResult
from tests.validation import programs

Results = dict[Stage, StageResult]
Validate = Callable[[Program], Results]


@pytest.fixture(scope="session")
def validate(lemur: Cluster, pulumi: Path, tmp_path_factory: pytest.TempPathFactory) -> Validate:
    def run(program: Program) -> Results:
        with pytest.MonkeyPatch.context() as patch:
            # The other policies are tested elsewhere, and would require these small stacks to be larger.
            patch.setattr(policies, "RULES", policies.data.RULES)
            results = stages.validate(lemur, program, pulumi, tmp_path_factory.mktemp("state"))
        return {result.stage: result for result in results}

    return run


@pytest.fixture(scope="session")
def right(validate: Validate, hostile: Callable[[], AbstractContextManager[dict[str, str]]]) -> Results:
    """Results in a hostile environment."""
    with hostile() as before:
        results = validate(programs.right)
        assert dict(os.environ) == before
    return results


@pytest.fixture(scope="session")
def careless(validate: Validate) -> Results:
    return validate(programs.careless)


def errors(result: StageResult) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity == "error"]


def named(findings: list[Finding]) -> set[tuple[str, str]]:
    """Return rule and resource of each finding."""
    return {(finding.rule, finding.resource.rpartition("::")[2]) for finding in findings}


def test_a_correct_program_passes_every_stage_in_a_hostile_environment(right: Results) -> None:
    assert list(right) == [stage for stage in Stage if stage is not Stage.SPEC]
    assert {result.outcome for result in right.values()} == {Outcome.PASSED}, right
    assert right[Stage.PREVIEW].summary == "7 resources planned"
    assert right[Stage.UP].summary == "4 resources in the cloud, 7 in all"
    assert "1 resources change, 0 of them by replacement" in right[Stage.UPDATE].summary
    assert "7 deleted, 1 of them protected before" in right[Stage.DESTROY].summary


def test_types_without_rules_in_simcloud_are_a_note_of_up(right: Results) -> None:
    by_rule = {finding.rule: finding for finding in right[Stage.UP].findings}
    assert by_rule.get("unproven", Finding("", "", severity="note")).severity == "note"


def test_drift_of_every_type_with_a_label_and_a_deletion_are_reported(right: Results) -> None:
    assert right[Stage.DRIFT].summary == "3 of 3 changes reported"


def test_a_value_that_differs_each_time_fails_the_second_preview(careless: Results) -> None:
    result = careless[Stage.AGAIN]
    assert (result.outcome, named(errors(result))) == (Outcome.FAILED, {("not-empty", "restless")})
    assert "(by description)" in result.findings[0].message


def test_a_disk_that_an_update_replaces_is_a_loss_located_at_etcd(careless: Results) -> None:
    (loss,) = (finding for finding in careless[Stage.UPDATE].findings if finding.rule == "loses-data")
    assert loss.resource.endswith("::replaced")
    assert "(by size); a disk would be lost" in loss.message
    assert loss.path == ("etcd",)


def test_a_resource_that_an_update_forgets_is_an_orphan_and_left_behind_at_the_end(careless: Results) -> None:
    assert ("orphan", "forgotten") in named(errors(careless[Stage.UPDATE]))
    assert ("left-behind", "forgotten") in named(errors(careless[Stage.DESTROY]))


def test_drift_that_the_program_ignores_is_unseen(careless: Results) -> None:
    assert named(errors(careless[Stage.DRIFT])) == {("drift-unseen", "blind")}


def test_policies_check_the_created_resources(careless: Results) -> None:
    assert named(errors(careless[Stage.POLICIES])) == {("data-protected", "replaced")}


def test_every_protected_resource_that_would_be_replaced_is_reported(
    lemur: Cluster, pulumi: Path, tmp_path: Path
) -> None:
    with opened(lemur, programs.replacing_what_is_protected, pulumi, tmp_path, Offers()) as account:
        stages.up(account)
        findings = list(stages.update(account).findings)
    assert named(findings) == {("loses-data", f"data-{number}") for number in range(3)}


def test_a_refused_creation_fails_up_with_the_clouds_message_and_ends_the_run(validate: Validate) -> None:
    results = validate(programs.refused)
    (refusal,) = errors(results[Stage.UP])
    assert (refusal.rule, refusal.resource.rpartition("::")[2]) == ("refused", "outside")
    assert "InvalidSubnet.Range" in refusal.message
    assert {results[stage].outcome for stage in list(results)[2:]} == {Outcome.SKIPPED}


def test_a_program_that_raises_fails_the_preview_with_one_error_and_its_place(validate: Validate) -> None:
    results = validate(programs.broken)
    (refusal,) = errors(results[Stage.PREVIEW])
    assert refusal.message.startswith("no idea what to do with lemur (")
    assert "programs.py:" in refusal.message
    assert "Traceback" not in refusal.message
    assert refusal.path == ("control_plane", "cloud")
    assert results[Stage.UP].summary == "preview failed"
