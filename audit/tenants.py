"""What the API tells of tenants: that none can fill the etcds alone, and that nobody's Job keeps the gangs of others waiting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from audit.evidence import Evidence
from audit.model import Finding
from audit.rights import Object, listed
from cluster import counts
from cluster.tenancy import TENANT_LABEL

LONGEST_S = 600.0
"""That a gang may be without its PodGroup: a program that was down lists all Jobs when it is back."""
_OVER = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")


def namespaces_have_counts(evidence: Evidence) -> Iterator[Finding]:
    """Of every kind that has a default, in every namespace of a person or a team."""
    found, missing = listed(evidence, "namespaces", "resource quotas")
    if missing:
        yield Finding("API", None, missing)
        return
    spaces, quotas = found
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


def gangs_have_groups(evidence: Evidence) -> Iterator[Finding]:
    """A PodGroup for each Job that is a gang and not over, ten minutes after it was made."""
    found, missing = listed(evidence, "gangs")
    waiting = [job for job in found[0] if not _over(job)] if not missing else []
    groups, no_groups = listed(evidence, "pod groups")
    if missing or (waiting and no_groups):
        yield Finding("API", None, missing or no_groups)
        return
    there = {_key(each) for each in (groups[0] if groups else ())}
    for job in waiting:
        spec = job["spec"]["template"]["spec"]
        named = (spec.get("schedulingGroup") or {}).get("podGroupName")
        if named and evidence.now - _made_s(job) > LONGEST_S:
            has = (job["metadata"]["namespace"], named) in there
            where = f"Job {job['metadata']['namespace']}/{job['metadata']['name']}"
            yield Finding(
                where,
                has,
                "has its PodGroup" if has else "has no PodGroup: kubectl describe says why, or the journal of gangs",
            )


def _over(job: Object) -> bool:
    found = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in _OVER and each["status"] == "True" for each in found)


def _key(thing: Object) -> tuple[str, str]:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def _made_s(job: Object) -> float:
    return datetime.fromisoformat(job["metadata"]["creationTimestamp"]).timestamp()
