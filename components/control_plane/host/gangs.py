"""gangs: creates the PodGroup of each Job that is a gang, and restarts the whole gang when a member fails.

A Job replaces only the failed pod. The other pods of an MPI job can't continue without it, and keep their hosts while
it finds none. So this program suspends the Job, which ends all of its pods, and resumes it when none is left: they are
scheduled as a gang again, and continue from their checkpoint. Each decision depends only on the Job, so this program
may stop at any point, and may run twice.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from .api import Api, ApiError, forever
from .following import Follower, plain

SETTINGS = Path("/etc/kubernetes/menagerie/host.json")
LABEL = "menagerie.dev/gang"
WITHIN = "menagerie.dev/gang-within"
# Number of members' failures that were handled; mark of a gang whose pods are being ended for a restart.
ANSWERED = "menagerie.dev/gang-failures"
RESTARTING = "menagerie.dev/gang-restarting"
LIST = f"/apis/batch/v1/jobs?labelSelector={LABEL}"
# The object was changed or deleted since it was read. The watch reports it again.
RACES = (404, 409)
THERE = 409
MERGE = "application/merge-patch+json"
# A Job's status counts failures as int32.
MOST_FAILURES = 2**31 - 1
# An Event must not delay a round for longer.
EVENT_TIMEOUT_S = 5.0


def path(job: dict[str, Any]) -> str:
    """Return the Job's path in the API."""
    return f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs/{job['metadata']['name']}"


def over(job: dict[str, Any]) -> bool:
    """Return whether the Job has ended, or is about to."""
    ends = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    conditions = job.get("status", {}).get("conditions") or []
    return "deletionTimestamp" in job["metadata"] or any(
        each["type"] in ends and each["status"] == "True" for each in conditions
    )


def pod_group(job: dict[str, Any], version: str) -> dict[str, Any] | None:
    """Return the PodGroup that the Job's pods name, None if they name none. The Job owns it. version: of the API."""
    pod = job["spec"]["template"]["spec"]
    named = pod.get("schedulingGroup") or {}
    within = (job["metadata"].get("annotations") or {}).get(WITHIN)
    if not named.get("podGroupName"):
        return None
    more: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": within}]}} if within else {}
    # The group preempts others as a whole, with its own priority class.
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
    """Return the patch for the Job, None if it needs none.

    Resume it only when no pod is left, not even on a lost host: two instances of a member would write one checkpoint.
    """
    said, status = job["metadata"].get("annotations") or {}, job.get("status", {})
    failed, suspended = status.get("failed", 0), bool(job["spec"].get("suspend"))
    if over(job):
        return None
    answered = failures(said.get(ANSWERED, "0"), job["metadata"]["name"])
    if RESTARTING in said:
        gone = not status.get("active") and not status.get("terminating")
        if suspended and not (gone and has_stopped(job)):
            return None
        # No longer suspended: somebody else resumed it.
        return {"metadata": {"annotations": {RESTARTING: None, ANSWERED: str(failed)}}, "spec": {"suspend": False}}
    if suspended or failed <= answered:
        return None
    return {"metadata": {"annotations": {RESTARTING: str(failed)}}, "spec": {"suspend": True}}


def failures(said: str, name: str) -> int:
    """Return the number in an annotation. ValueError says how the owner of the Job fixes it."""
    if re.fullmatch("[0-9]{1,10}", said) and int(said) <= MOST_FAILURES:
        return int(said)
    raise ValueError(
        f"annotation {ANSWERED} is {said[:40]!r}, no number of failures, so the gang is not restarted when a member "
        f"fails; remove it: kubectl annotate job {name} {ANSWERED}-"
    )


def event(job: dict[str, Any], reason: str, now: float) -> dict[str, Any]:
    """Return an Event for the Job's owner. Its name has a digest of the text, so all API-server hosts create one."""
    about, stamp = job["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    digest = hashlib.sha256(f"{about['uid']} {reason}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name'][:200].rstrip('-.')}.{digest}", "namespace": about["namespace"]},
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            **{key: about[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in about},
        },
        "type": "Warning",
        "reason": "GangNotKept",
        "message": reason,
        "source": {"component": "menagerie-gangs"},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


def has_stopped(job: dict[str, Any]) -> bool:
    """Return whether the controller has seen that the Job is suspended: earlier numbers are stale."""
    conditions = job.get("status", {}).get("conditions") or []
    return any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions)


class Keeper:
    """Acts on each Job that is a gang. version: group and version of PodGroups."""

    def __init__(self, api: Api, version: str) -> None:
        self._api, self._version = api, version
        self._made: set[str] = set()
        self._jobs = Follower(api, LIST, self.decide, self._listed, self._failed)

    def decide(self, job: dict[str, Any]) -> None:
        """Create its PodGroup, suspend it or resume it. Losing a race, also against another host, is success."""
        try:
            if not over(job):
                self._group(job)
        finally:
            self._change(job)

    def _change(self, job: dict[str, Any]) -> None:
        patch = change(job)
        if patch is None:
            return
        patch["metadata"]["resourceVersion"] = job["metadata"]["resourceVersion"]
        try:
            self._api.call("PATCH", path(job), patch, MERGE)
        except ApiError as error:
            if error.status not in RACES:
                raise
            return
        did = "ended, to be restarted as a whole" if patch["spec"]["suspend"] else "restarted"
        print(f"{path(job)}: {job['status'].get('failed', 0)} failures of members: {did}", flush=True)

    def _group(self, job: dict[str, Any]) -> None:
        """Create the PodGroup, and remember that it exists. After any other failure, the next round retries."""
        uid, made = job["metadata"]["uid"], pod_group(job, self._version)
        if made is None or uid in self._made:
            return
        where = f"/apis/{self._version}/namespaces/{made['metadata']['namespace']}/podgroups"
        try:
            self._api.call("POST", where, made)
        except ApiError as error:
            if error.status != THERE:
                raise
            self._is_to_stay(job, f"{where}/{made['metadata']['name']}")
        self._made.add(uid)

    def _is_to_stay(self, job: dict[str, Any], where: str) -> None:
        """Raise ValueError if the PodGroup will be deleted with an earlier Job of the same name."""
        about = self._api.call("GET", where)["metadata"]
        others = [each["uid"] for each in about.get("ownerReferences") or [] if each["uid"] != job["metadata"]["uid"]]
        if others or "deletionTimestamp" in about:
            raise ValueError(
                f"PodGroup {about['name']} belongs to an earlier Job of that name; this Job gets its own when that one "
                "is gone"
            )

    def _listed(self, uids: set[str]) -> None:
        self._made &= uids

    def _failed(self, job: dict[str, Any], reason: str) -> None:
        """Create an Event. If that fails (no etcd events, a namespace being deleted), only the journal has it."""
        where = f"/api/v1/namespaces/{job['metadata']['namespace']}/events"
        try:
            self._api.call("POST", where, event(job, reason, time.time()), timeout_s=EVENT_TIMEOUT_S)
        except (ApiError, OSError, http.client.HTTPException) as error:
            if not isinstance(error, ApiError) or error.status != THERE:
                print(f"{path(job)}: no Event: {plain(str(error))}", flush=True)

    def follow(self) -> None:
        """Handle all gangs, then changes."""
        self._jobs.follow()

    def deal(self, job: dict[str, Any]) -> bool:
        """Handle one Job. Return whether it succeeded."""
        return self._jobs.deal(job)


def main() -> None:
    version = json.loads(SETTINGS.read_text())["pod_groups"]
    forever(Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")), version).follow)


if __name__ == "__main__":
    main()
