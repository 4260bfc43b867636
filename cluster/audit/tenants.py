"""Decisions about tenants from the API: nobody can fill the etcds alone, and no Job blocks other people's gangs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from cluster import counts
from cluster.audit.evidence import Evidence
from cluster.audit.lists import Decision, Object, by_lists
from cluster.audit.model import Finding
from cluster.tenancy import TENANT_LABEL

LONGEST_S = 600.0
"""How long a gang may have no PodGroup. A controller that was down lists all Jobs when it is back."""
_OVER = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")


@by_lists("namespaces", "resource quotas")
def namespaces_have_counts(evidence: Evidence, spaces: Iterable[Object], quotas: Iterable[Object]) -> Iterator[Finding]:
    """Check that namespaces of people and teams have a count for every kind that has a default."""
    hard: dict[str, set[str]] = {}
    for entry in quotas:
        hard.setdefault(entry["metadata"]["namespace"], set()).update((entry.get("spec") or {}).get("hard") or ())
    for entry in spaces:
        name, kind = entry["metadata"]["name"], (entry["metadata"].get("labels") or {}).get(TENANT_LABEL)
        if kind:
            required = counts.TEAMS if kind == "team" else counts.PEOPLE
            bare = [count for count in required if not {count, count.removeprefix("count/")} & hard.get(name, set())]
            yield Finding(
                f"namespace {name}", not bare, f"no limit for {', '.join(bare)}" if bare else "has all counts"
            )


@by_lists("gangs")
def gangs_have_groups(evidence: Evidence, jobs: Iterable[Object]) -> Iterator[Finding]:
    """Check that each unfinished Job that is a gang has a PodGroup ten minutes after its creation."""
    unfinished = [job for job in jobs if not _over(job)]
    # A cluster without gangs need not support PodGroups.
    return _have_groups(unfinished)(evidence) if unfinished else iter(())


def _have_groups(jobs: Iterable[Object]) -> Decision:
    @by_lists("pod groups")
    def decide(evidence: Evidence, groups: Iterable[Object]) -> Iterator[Finding]:
        there = {_key(each) for each in groups}
        for job in jobs:
            spec = job["spec"]["template"]["spec"]
            named = (spec.get("schedulingGroup") or {}).get("podGroupName")
            if named and evidence.now - _made_s(job) > LONGEST_S:
                has = (job["metadata"]["namespace"], named) in there
                where = f"Job {job['metadata']['namespace']}/{job['metadata']['name']}"
                lacks = "has no PodGroup; see kubectl describe and the log of gangs for the reason"
                yield Finding(where, has, "has its PodGroup" if has else lacks)

    return decide


def _over(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in _OVER and each["status"] == "True" for each in conditions)


def _key(thing: Object) -> tuple[str, str]:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def _made_s(job: Object) -> float:
    return datetime.fromisoformat(job["metadata"]["creationTimestamp"]).timestamp()
