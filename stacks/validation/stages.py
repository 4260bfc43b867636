"""The stages of one cluster: each does one thing to its account and says what it saw."""

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
from stacks.steps import Recording, Step, name_of
from stacks.validation import changes, standins
from stacks.validation.account import Account, Program, opened
from stacks.validation.drift import drifted
from stacks.validation.model import Finding, Severity, Stage, StageResult, result, skipped
from stacks.validation.sections import section_of

Begin = Callable[[Stage, str], None]
"""Is told of a stage that begins, with "", and what the engine does in it."""


@dataclass(frozen=True)
class Seen:
    """What a stage saw, in a few words, and what it found. resources: in the cloud, where the stage made them."""

    text: str
    findings: Iterable[Finding] = ()
    resources: int | None = None


def preview(account: Account) -> Seen:
    """Plan everything from nothing."""
    for name, value in standins.configuration(account.cluster).items():
        account.stack.set_secret(name, value)
    if place := standins.PLACES.get(account.cluster.spec.control_plane.cloud):
        account.stack.configure(*place)
    recording = account.preview(refresh=False)
    return Seen(f"{len(recording.steps)} resources planned", _refused(recording))


def up(account: Account) -> Seen:
    """Make everything."""
    recording = account.up()
    findings = [*_refused(recording), *_orphans(account), *_unproven(account)]
    made = len(account.world)
    return Seen(f"{made} resources in the cloud, {len(recording.steps)} in all", findings, made)


def keep_policies(account: Account) -> Seen:
    """Ask every policy about what was made."""
    found = [
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
    return Seen(f"{len(policies.RULES)} rules over {len(account.resources)} resources", found)


def again(account: Account) -> Seen:
    """Plan once more: there is nothing to do."""
    recording = account.preview()
    findings = [
        _of(
            step.urn,
            "not-empty",
            f"{_named(step)} would be changed again{_by(step)}",
            "make the value a function of the spec alone: no clock, no random number, no order of a set; "
            "or write it as the provider gives it back",
        )
        for step in _one_each(recording.steps)
    ]
    return Seen("nothing to change" if not findings else "not empty", [*_refused(recording), *findings])


def update(account: Account) -> Seen:
    """Change the spec as operators do, and see what the engine does about it."""
    before, made = account.cluster, account.resources
    change = changes.changed(before)
    account.cluster = change.cluster
    recording = account.up()
    if recording.complaints:
        # An update ends at the first thing that is protected, a preview tells all of them.
        recording += account.preview(refresh=False)
        account.cluster = before
    others = Recording(complaints=[one for one in recording.complaints if not one.is_of_protection])
    findings = [*_losses(recording, made), *_refused(others), *_orphans(account)]
    if not recording.steps and not findings:
        what = f"no resource follows from any of: {'; '.join(change.whats)}"
        findings.append(_of("", "no-effect", what, "let the program read these parts of the spec", "warning"))
    touched = {step.urn for step in recording.steps}
    replaced = {step.urn for step in recording.steps if step.loses}
    text = f"{'; '.join(change.whats)}: {len(touched)} resources change, {len(replaced)} by replacement or deletion"
    return Seen(text, findings)


def _losses(recording: Recording, made: Iterable[Resource]) -> Iterator[Finding]:
    """What keeps data and was replaced or deleted, or would have been if it weren't protected."""
    by = {step.urn: step for step in reversed(recording.steps) if step.loses}
    refused = {complaint.urn for complaint in recording.complaints if complaint.is_of_protection}
    for resource in made:
        kept = kept_by(resource)
        if kept is None or resource.urn not in {*by, *refused}:
            continue
        forced = _by(by[resource.urn]) if resource.urn in by else ""
        yield _of(
            resource.urn,
            "loses-data",
            f"{resource.type} {resource.name} would be replaced or deleted{forced}, and {kept} be lost",
            "make the change in place, or let the program ignore it (ignore_changes)",
        )


def drift(account: Account) -> Seen:
    """Change the cloud behind the engine's back: a preview says so."""
    protected = {resource.urn for resource in account.resources if resource.protect}
    with drifted(account.world, account.owned(), protected) as drifts:
        recording = account.preview()
    reported = {step.urn for step in recording.steps}
    unseen = [
        _of(
            one.urn,
            "drift-unseen",
            f"{one} was changed behind the engine's back, and a preview does not say so",
            "do not ignore changes of it (ignore_changes)",
        )
        for one in drifts
        if one.urn not in reported
    ]
    return Seen(f"{len(drifts) - len(unseen)} of {len(drifts)} changes reported", [*_refused(recording), *unseen])


def destroy(account: Account) -> Seen:
    """Delete everything.

    As `destroy --with-data` does it: first the protection is let go of, in the state and in the cloud.
    """
    protected = len(account.stack.protected())
    letting_go = account.let_go()
    recording = account.destroy()
    left = [
        _left(record, "left-behind", "is still there after the stack was destroyed", "let the stack own it")
        for record in account.world
    ]
    text = f"{len(recording.steps)} deleted, {protected} of them protected before"
    return Seen(text, [*_refused(letting_go + recording), *left])


STAGES: tuple[tuple[Stage, Callable[[Account], Seen]], ...] = (
    (Stage.PREVIEW, preview),
    (Stage.UP, up),
    (Stage.POLICIES, keep_policies),
    (Stage.AGAIN, again),
    (Stage.UPDATE, update),
    (Stage.DRIFT, drift),
    (Stage.DESTROY, destroy),
)
_NEEDED = frozenset({Stage.PREVIEW, Stage.UP})
"""Without these the others mean nothing."""


def validate(
    cluster: Cluster,
    program: Program,
    pulumi: Path,
    folder: Path,
    offers: Offers | None = None,
    begin: Begin = lambda stage, detail: None,
) -> tuple[StageResult, ...]:
    """Every stage but the spec's. folder: takes the engine's state; the caller removes it. pulumi: path of the CLI."""
    done: list[StageResult] = []
    with opened(standins.complete(cluster), program, pulumi, folder, offers or Offers()) as account:
        for index, (stage, run) in enumerate(STAGES):
            done.append(_tried(stage, run, account, begin))
            if stage is Stage.PREVIEW:
                done[-1] = replace(done[-1], findings=(*done[-1].findings, *standins.told(cluster)))
            if stage in _NEEDED and any(finding.rule == "refused" for finding in done[-1].findings):
                rest = tuple(later for later, _ in STAGES[index + 1 :])
                return (*done, *skipped(rest, f"{stage} failed"))
    return tuple(done)


def _tried(stage: Stage, run: Callable[[Account], Seen], account: Account, begin: Begin) -> StageResult:
    started = time.monotonic()
    begin(stage, "")
    account.report = lambda detail: begin(stage, detail)
    seen = run(account)
    return result(stage, seen.text, tuple(seen.findings), time.monotonic() - started, seen.resources)


def _of(urn: str, rule: str, message: str, way_out: str, severity: Severity = "error") -> Finding:
    return Finding(rule, message, way_out, severity, urn, section_of(urn))


def _refused(recording: Recording) -> Iterator[Finding]:
    for complaint in recording.complaints:
        name = f"{name_of(complaint.urn)}: " if complaint.urn else ""
        yield _of(complaint.urn, "refused", f"{name}{complaint.text}", "")


def _orphans(account: Account) -> Iterator[Finding]:
    for record in account.orphans():
        yield _left(record, "orphan", "exists, and the stack's state does not know of it", "let the stack own it")


def _left(record: Record, rule: str, what: str, way_out: str) -> Finding:
    return _of(record.urn, rule, f"{record.type} {record.id} {what}", way_out)


def _unproven(account: Account) -> Iterator[Finding]:
    for type_, urns in sorted(account.world.unproven.items()):
        message = f"simcloud has no rules for {type_} ({len(urns)} resources): it was taken as it was declared"
        yield _of("", "unproven", message, "", "note")


def _one_each(steps: Iterable[Step]) -> list[Step]:
    """The first step of each resource; a replacement has three."""
    first: dict[str, Step] = {}
    for step in steps:
        first.setdefault(step.urn, step)
    return list(first.values())


def _named(step: Step) -> str:
    return f"{step.type} {step.name}"


def _by(step: Step) -> str:
    return f" (by {', '.join(step.properties)})" if step.properties else ""
