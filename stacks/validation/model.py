"""Results of a validation: stages of clusters, and findings with their place in the spec."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from cluster.problems import Problem

Severity = Literal["error", "warning", "note"]


class Stage(StrEnum):
    """What is checked, in this order."""

    SPEC = "spec"
    PREVIEW = "preview"
    UP = "up"
    POLICIES = "policies"
    AGAIN = "second preview"
    UPDATE = "update"
    DRIFT = "drift"
    DESTROY = "destroy"


CLAIMS: dict[Stage, str] = {
    Stage.SPEC: "the spec is valid, alone and together with the others",
    Stage.PREVIEW: "the stack can be planned",
    Stage.UP: "the stack can be created, and everything created is in the state",
    Stage.POLICIES: "the created resources comply with the policies",
    Stage.AGAIN: "a second preview changes nothing",
    Stage.UPDATE: "an update to a changed spec is accepted, and loses no data",
    Stage.DRIFT: "a preview reports what was changed behind the engine's back",
    Stage.DESTROY: "everything can be deleted, and nothing is left",
}

RULES: dict[str, str] = {
    "refused": "The program fails, or the simulated cloud refuses what it declares.",
    "not-empty": "A preview right after an update would change something: the program is not deterministic.",
    "loses-data": "An update of the spec would replace or delete something that keeps data.",
    "no-effect": "A changed spec changes no resource.",
    "drift-unseen": "A preview with refresh does not report what was changed behind the engine's back.",
    "orphan": "Something exists in the cloud that is not in the stack's state.",
    "left-behind": "Something is left in the cloud after the stack was destroyed.",
    "stood-in": "A value that an operator must provide is missing; the validation used a stand-in.",
    "unproven": "simcloud has no rules for a type: it compares only its inputs with the SDK, and no change replaces it.",
    "quota": "The cluster needs more than a new account's default quota. Ask for it before `up`.",
    "not-offered": "The cluster's cloud has no provider yet.",
    "crashed": "The validation itself failed.",
}
"""IDs of findings, besides the codes of docs/reference/errors.md and the IDs of policies."""


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One finding of a stage.

    path: the value of the spec that it concerns, as far as known. resource: URN, "" if it concerns none.
    file, line, column: of that value; 0 if unknown.
    """

    rule: str
    message: str
    way_out: str = ""
    severity: Severity = "error"
    resource: str = ""
    path: tuple[str | int, ...] = ()
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = ":".join([self.file, *(str(number) for number in (self.line, self.column) if number)])
        text = f"{place}: {self.severity}[{self.rule}] {self.message}"
        return f"{text}\n    fix: {self.way_out}" if self.way_out else text

    @staticmethod
    def of(problem: Problem) -> Finding:
        """Return a problem of a spec as a finding."""
        message = "\n    ".join([problem.message, *problem.notes])
        return Finding(
            problem.code,
            message,
            problem.hint,
            problem.severity,
            file=problem.file,
            line=problem.line,
            column=problem.column,
        )

    @staticmethod
    def from_json(document: dict[str, Any]) -> Finding:
        return Finding(**{**document, "path": tuple(document["path"])})


@dataclass(frozen=True)
class StageResult:
    """summary: in a few words, what the stage observed, or why it was skipped. resources: in the cloud after stage `up`."""

    stage: Stage
    outcome: Outcome
    summary: str = ""
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    resources: int | None = None

    @staticmethod
    def from_json(document: dict[str, Any]) -> StageResult:
        return StageResult(
            Stage(document["stage"]),
            Outcome(document["outcome"]),
            document["seen"],
            document["seconds"],
            tuple(map(Finding.from_json, document["findings"])),
            document["resources"],
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "outcome": self.outcome,
            "seen": self.summary,
            "seconds": self.seconds,
            "findings": [asdict(finding) for finding in self.findings],
            "resources": self.resources,
        }


@dataclass(frozen=True)
class ClusterResult:
    """file: its cluster.yaml. cloud: "" if the spec doesn't name one."""

    cluster: str
    cloud: str
    file: str
    stages: tuple[StageResult, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(stage.outcome is not Outcome.FAILED for stage in self.stages)

    @property
    def is_accepted(self) -> bool:
        """Whether every stage ran and passed. It proves nothing about a real cloud: rules by hand and the SDKs' types accept it."""
        return all(stage.outcome is Outcome.PASSED for stage in self.stages)

    @property
    def spec_is_bad(self) -> bool:
        return any(stage.stage is Stage.SPEC and stage.outcome is Outcome.FAILED for stage in self.stages)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for stage in self.stages for finding in stage.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "ok": self.ok,
            "accepted": self.is_accepted,
            "stages": [stage.to_json() for stage in self.stages],
        }


@dataclass(frozen=True)
class Report:
    clusters: tuple[ClusterResult, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(cluster.ok for cluster in self.clusters)

    @property
    def spec_is_bad(self) -> bool:
        return any(cluster.spec_is_bad for cluster in self.clusters)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "seconds": self.seconds, "clusters": [cluster.to_json() for cluster in self.clusters]}


def skipped(stages: tuple[Stage, ...], why: str) -> tuple[StageResult, ...]:
    """Return results for stages that did not run."""
    return tuple(StageResult(stage, Outcome.SKIPPED, why) for stage in stages)


def result(
    stage: Stage, summary: str, findings: tuple[Finding, ...], seconds: float, resources: int | None = None
) -> StageResult:
    """Return the result of a stage that ran: failed if a finding is an error."""
    failed = any(finding.severity == "error" for finding in findings)
    outcome = Outcome.FAILED if failed else Outcome.PASSED
    return StageResult(stage, outcome, summary, round(seconds, 1), findings, resources)
