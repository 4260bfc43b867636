"""The stages of one cluster: each does one thing to its account and reports what it observed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.spec import Cluster
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.world import Record
from stacks import policies
from stacks.policies.data import kept_by
from stacks.policies.model import Resource
from stacks.steps import Recording, ResourceStep, name_of
from stacks.validation import changes, quotas, standins
from stacks.validation.account import Account, Program, opened
from stacks.validation.drift import drifted
from stacks.validation.model import Finding, Severity, Stage, StageResult, result, skipped
from stacks.validation.offers import strict
from stacks.validation.sections import section_of

Begin = Callable[[Stage, str], None]
"""Called with a stage and "" when it starts, and then with what the engine does in it."""


@dataclass(frozen=True)
class Observation:
    """What a stage observed, in a few words, and its findings. resources: in the cloud, if the stage created them."""

    text: str
    findings: Iterable[Finding] = ()
    resources: int | None = None


def preview(account: Account) -> Observation:
    """Plan everything from scratch."""
    for name, value in standins.configuration(account.cluster).items():
        account.stack.set_secret(name, value)
    if place := standins.PLACES.get(account.cluster.spec.control_plane.cloud):
        account.stack.configure(*place)
    recording = account.preview(refresh=False)
    return Observation(f"{len(recording.steps)} resources planned", _refused(recording))


def up(account: Account) -> Observation:
    """Create everything."""
    recording = account.up()
    over_quota = quotas.findings(account.cluster, account.world)
    findings = [*_refused(recording), *_orphans(account), *_unproven(account), *over_quota]
    count = len(account.world)
    return Observation(f"{count} resources in the cloud, {len(recording.steps)} in all", findings, count)


def keep_policies(account: Account) -> Observation:
    """Check all policies against the created resources."""
    findings = [
        Finding(
            violation.rule,
            violation.message,
            violation.way_out,
            violation.severity,
            violation.resource.urn,
            violation.path or section_of(violation.resource.urn),
        )
        for violation in policies.check(account.cluster, account.resources)
    ]
    return Observation(f"{len(policies.RULES)} rules over {len(account.resources)} resources", findings)


def again(account: Account) -> Observation:
    """Plan once more: nothing should change."""
    recording = account.preview()
    findings = [
        _of(
            step.urn,
            "not-empty",
            f"{_named(step)} would be changed again{_because_of(step)}",
            "make the value a function of the spec alone: no clock, no random number, no set order; "
            "or write it as the provider returns it",
        )
        for step in _first_steps(recording.steps)
    ]
    return Observation("nothing to change" if not findings else "not empty", [*_refused(recording), *findings])


def update(account: Account) -> Observation:
    """Change the spec as operators do, and observe what the engine does."""
    before, resources = account.cluster, account.resources
    change = changes.changed(before)
    account.cluster = change.cluster
    recording = account.up()
    if recording.complaints:
        # An update stops at the first protected resource; a preview reports all of them.
        recording += account.preview(refresh=False)
        account.cluster = before
    others = Recording(complaints=[complaint for complaint in recording.complaints if not complaint.is_of_protection])
    findings = [*_losses(recording, resources), *_refused(others), *_orphans(account)]
    if not recording.steps and not findings:
        what = f"no resource depends on any of: {'; '.join(change.whats)}"
        findings.append(_of("", "no-effect", what, "let the program read these parts of the spec", "warning"))
    touched = {step.urn for step in recording.steps}
    replaced = {step.urn for step in recording.steps if step.loses}
    text = f"{'; '.join(change.whats)}: {len(touched)} resources change, {len(replaced)} of them by replacement or deletion"
    return Observation(text, findings)


def _losses(recording: Recording, resources: Iterable[Resource]) -> Iterator[Finding]:
    """Yield resources with data that were replaced or deleted, or would have been without protection."""
    losing_steps = {step.urn: step for step in reversed(recording.steps) if step.loses}
    refused = {complaint.urn for complaint in recording.complaints if complaint.is_of_protection}
    for resource in resources:
        kept = kept_by(resource)
        if kept is None or resource.urn not in {*losing_steps, *refused}:
            continue
        forced = _because_of(losing_steps[resource.urn]) if resource.urn in losing_steps else ""
        yield _of(
            resource.urn,
            "loses-data",
            f"{resource.type} {resource.name} would be replaced or deleted{forced}; {kept} would be lost",
            "make the change in place, or let the program ignore it (ignore_changes)",
        )


def drift(account: Account) -> Observation:
    """Change the cloud behind the engine's back: a preview must report it."""
    protected = {resource.urn for resource in account.resources if resource.protect}
    with drifted(account.world, account.owned(), protected) as drifts:
        recording = account.preview()
    reported = {step.urn for step in recording.steps}
    unreported = [
        _of(
            change.urn,
            "drift-unseen",
            f"{change} was changed behind the engine's back, but a preview does not report it",
            "do not ignore changes to it (ignore_changes)",
        )
        for change in drifts
        if change.urn not in reported
    ]
    return Observation(
        f"{len(drifts) - len(unreported)} of {len(drifts)} changes reported", [*_refused(recording), *unreported]
    )


def destroy(account: Account) -> Observation:
    """Delete everything.

    Does so like `destroy --with-data`: first removes the protection, in the state and in the cloud.
    """
    protected = len(account.stack.protected())
    release = account.remove_protection()
    recording = account.destroy()
    left = [
        _left(record, "left-behind", "still exists after the stack was destroyed", "let the stack own it")
        for record in account.world
    ]
    text = f"{len(recording.steps)} deleted, {protected} of them protected before"
    return Observation(text, [*_refused(release + recording), *left])


STAGES: tuple[tuple[Stage, Callable[[Account], Observation]], ...] = (
    (Stage.PREVIEW, preview),
    (Stage.UP, up),
    (Stage.POLICIES, keep_policies),
    (Stage.AGAIN, again),
    (Stage.UPDATE, update),
    (Stage.DRIFT, drift),
    (Stage.DESTROY, destroy),
)
_NEEDED = frozenset({Stage.PREVIEW, Stage.UP})
"""These create the stack. Without them the other stages are meaningless."""


def validate(
    cluster: Cluster,
    program: Program,
    pulumi: Path,
    folder: Path,
    offers: Offers | None = None,
    begin: Begin = lambda stage, detail: None,
) -> tuple[StageResult, ...]:
    """Run every stage except the spec's. folder: holds the engine's state; the caller removes it. pulumi: path of the CLI.

    The stack is created in a strict account (`stacks.validation.offers`), which is generous from then on: so it works in a
    new account, and nothing that it changes relies on what only a new one has.
    """
    done: list[StageResult] = []
    generous = offers or Offers()
    with opened(standins.complete(cluster), program, pulumi, folder, strict(generous)) as account:
        for index, (stage, run) in enumerate(STAGES):
            account.offers = strict(generous) if stage in _NEEDED else generous
            done.append(_run(stage, run, account, begin))
            if stage is Stage.PREVIEW:
                done[-1] = replace(done[-1], findings=(*done[-1].findings, *standins.findings(cluster)))
            if stage in _NEEDED and any(finding.rule == "refused" for finding in done[-1].findings):
                rest = tuple(later for later, _ in STAGES[index + 1 :])
                return (*done, *skipped(rest, f"{stage} failed"))
    return tuple(done)


def _run(stage: Stage, run: Callable[[Account], Observation], account: Account, begin: Begin) -> StageResult:
    started = time.monotonic()
    begin(stage, "")
    account.report = lambda detail: begin(stage, detail)
    observation = run(account)
    return result(
        stage, observation.text, tuple(observation.findings), time.monotonic() - started, observation.resources
    )


def _of(urn: str, rule: str, message: str, way_out: str, severity: Severity = "error") -> Finding:
    return Finding(rule, message, way_out, severity, urn, section_of(urn))


def _refused(recording: Recording) -> Iterator[Finding]:
    for complaint in recording.complaints:
        name = f"{name_of(complaint.urn)}: " if complaint.urn else ""
        yield _of(complaint.urn, "refused", f"{name}{complaint.text}", "")


def _orphans(account: Account) -> Iterator[Finding]:
    for record in account.orphans():
        yield _left(record, "orphan", "exists, but is not in the stack's state", "let the stack own it")


def _left(record: Record, rule: str, what: str, way_out: str) -> Finding:
    return _of(record.urn, rule, f"{record.type} {record.id} {what}", way_out)


def _unproven(account: Account) -> Iterator[Finding]:
    for type_, urns in sorted(account.world.unproven.items()):
        message = (
            f"simcloud has no rules for {type_} ({len(urns)} resources): only its inputs were compared with the SDK"
        )
        yield _of("", "unproven", message, "", "note")


def _first_steps(steps: Iterable[ResourceStep]) -> list[ResourceStep]:
    """Return the first step of each resource; a replacement has three."""
    first: dict[str, ResourceStep] = {}
    for step in steps:
        first.setdefault(step.urn, step)
    return list(first.values())


def _named(step: ResourceStep) -> str:
    return f"{step.type} {step.name}"


def _because_of(step: ResourceStep) -> str:
    return f" (by {', '.join(step.properties)})" if step.properties else ""
