"""What the API tells of tenants: that none can fill the etcds alone, and that nobody's Job keeps the gangs of others waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from cluster import counts
from cluster.audit.evidence import Evidence
from cluster.audit.lists import Decision, Object, by_lists
from cluster.audit.model import Finding
from cluster.tenancy import TENANT_LABEL

LONGEST_S = 600.0
"""That a gang may be without its PodGroup: a program that was down lists all Jobs when it is back."""
_OVER = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")


@by_lists("namespaces", "resource quotas")
def namespaces_have_counts(evidence: Evidence, spaces: Iterable[Object], quotas: Iterable[Object]) -> Iterator[Finding]:
    """Of every kind that has a default, in every namespace of a person or a team."""
    hard: dict[str, set[str]] = {}
    for each in quotas:
        hard.setdefault(each["metadata"]["namespace"], set()).update((each.get("spec") or {}).get("hard") or ())
    for each in spaces:
        name, kind = each["metadata"]["name"], (each["metadata"].get("labels") or {}).get(TENANT_LABEL)
        if kind:
            wanted = counts.TEAMS if kind == "team" else counts.PEOPLE
            bare = [one for one in wanted if not {one, one.removeprefix("count/")} & hard.get(name, set())]
            yield Finding(
                f"namespace {name}", not bare, f"no limit for {', '.join(bare)}" if bare else "has all counts"
            )


@by_lists("gangs")
def gangs_have_groups(evidence: Evidence, jobs: Iterable[Object]) -> Iterator[Finding]:
    """A PodGroup for each Job that is a gang and not over, ten minutes after it was made."""
    waiting = [job for job in jobs if not _over(job)]
    # A cluster without gangs need not know what a PodGroup is.
    return _have_groups(waiting)(evidence) if waiting else iter(())


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
                lacks = "has no PodGroup: kubectl describe says why, or the journal of gangs"
                yield Finding(where, has, "has its PodGroup" if has else lacks)

    return decide


def _over(job: Object) -> bool:
    found = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in _OVER and each["status"] == "True" for each in found)


def _key(thing: Object) -> tuple[str, str]:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def _made_s(job: Object) -> float:
    return datetime.fromisoformat(job["metadata"]["creationTimestamp"]).timestamp()
