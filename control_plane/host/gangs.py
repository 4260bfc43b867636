"""gangs: makes the PodGroup of each Job that is a gang, and starts the whole gang anew when a member has died.

A Job replaces the one pod that died. Of an MPI job the others can't go on without it, and while it finds no host they keep theirs.
So the Job is suspended, which ends all of its pods, and resumed when none is left: they ask for their hosts as a gang again, and go
on from their checkpoint. What is to be done is seen from the Job alone, so that this may end anywhere, and run twice.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .api import Api, ApiError, forever

SETTINGS = Path("/etc/kubernetes/menagerie/host.json")
LABEL = "menagerie.dev/gang"
WITHIN = "menagerie.dev/gang-within"
# Failures of members that were answered; that the pods of the gang are being ended to be started anew.
ANSWERED = "menagerie.dev/gang-failures"
RESTARTING = "menagerie.dev/gang-restarting"
LIST = f"/apis/batch/v1/jobs?labelSelector={LABEL}"
# Whatever was changed or taken away since it was read is looked at again when the watch tells of it.
RACES = (404, 409, 422)
MERGE = "application/merge-patch+json"


def path(job: dict[str, Any]) -> str:
    """The Job's in the API."""
    return f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs/{job['metadata']['name']}"


def over(job: dict[str, Any]) -> bool:
    """Whether it is done, given up, or about to be."""
    ends = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    found = job.get("status", {}).get("conditions") or []
    return "deletionTimestamp" in job["metadata"] or any(
        each["type"] in ends and each["status"] == "True" for each in found
    )


def pod_group(job: dict[str, Any], version: str) -> dict[str, Any] | None:
    """The PodGroup that its pods name; it goes when the Job goes. version: of the API. None where they name none."""
    pod = job["spec"]["template"]["spec"]
    named = pod.get("schedulingGroup") or {}
    within = (job["metadata"].get("annotations") or {}).get(WITHIN)
    if not named.get("podGroupName"):
        return None
    more: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": within}]}} if within else {}
    # The group puts others out as one, by a class of its own.
    more |= {"priorityClassName": pod["priorityClassName"]} if pod.get("priorityClassName") else {}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {
            "name": named["podGroupName"],
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": job["spec"]["parallelism"]}}, **more},
    }


def change(job: dict[str, Any]) -> dict[str, Any] | None:
    """What is to be merged into the Job; None where nothing is.

    It is resumed only when no pod is left, also none whose host is away: two incarnations of a member would write one checkpoint.
    """
    said, status = job["metadata"].get("annotations") or {}, job.get("status", {})
    failed, suspended = status.get("failed", 0), bool(job["spec"].get("suspend"))
    answered = int(said.get(ANSWERED, "0"))
    if over(job):
        return None
    if RESTARTING in said:
        gone = not status.get("active") and not status.get("terminating")
        if suspended and not (gone and has_stopped(job)):
            return None
        # Not suspended any more: somebody else resumed it.
        return {"metadata": {"annotations": {RESTARTING: None, ANSWERED: str(failed)}}, "spec": {"suspend": False}}
    if suspended or failed <= answered:
        return None
    return {"metadata": {"annotations": {RESTARTING: str(failed)}}, "spec": {"suspend": True}}


def has_stopped(job: dict[str, Any]) -> bool:
    """Whether the controller has seen that it is suspended: numbers of before say nothing."""
    found = job.get("status", {}).get("conditions") or []
    return any(each["type"] == "Suspended" and each["status"] == "True" for each in found)


class Keeper:
    """Acts on each Job that is a gang. version: group and version of PodGroups."""

    def __init__(self, api: Api, version: str) -> None:
        self._api, self._version = api, version
        self._made: set[str] = set()

    def decide(self, job: dict[str, Any]) -> None:
        """Make its PodGroup, suspend it or resume it. Losing a race, against the same program of another host too, is success."""
        if not over(job):
            self._group(job)
        wanted = change(job)
        if wanted is None:
            return
        wanted["metadata"]["resourceVersion"] = job["metadata"]["resourceVersion"]
        if not self._tried("PATCH", path(job), wanted, MERGE):
            return
        did = "ended, to be started anew as a whole" if wanted["spec"]["suspend"] else "started anew"
        print(f"{path(job)}: {job['status'].get('failed', 0)} failures of members: {did}", flush=True)

    def _group(self, job: dict[str, Any]) -> None:
        uid, made = job["metadata"]["uid"], pod_group(job, self._version)
        if made is None or uid in self._made:
            return
        self._tried("POST", f"/apis/{self._version}/namespaces/{made['metadata']['namespace']}/podgroups", made)
        self._made.add(uid)

    def _tried(self, method: str, where: str, body: dict[str, Any], kind: str = "application/json") -> bool:
        try:
            self._api.call(method, where, body, kind)
        except ApiError as error:
            if error.status not in RACES:
                raise
            return False
        return True

    def follow(self) -> None:
        """All gangs that are there, then what changes, until the server ends the watch."""
        listed = self._api.call("GET", LIST)
        self._made &= {job["metadata"]["uid"] for job in listed["items"]}
        for job in listed["items"]:
            self.decide(job)
        for job in self._api.watch(LIST, listed["metadata"]["resourceVersion"]):
            self.decide(job)


def main() -> None:
    version = json.loads(SETTINGS.read_text())["pod_groups"]
    forever(Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")), version).follow)


if __name__ == "__main__":
    main()
