"""gangs: makes the PodGroup of each Job that is a gang, and starts the whole gang anew when a member has died.

A Job replaces the one pod that died. Of an MPI job the others can't go on without it, and while it finds no host they keep theirs.
So the Job is suspended, which ends all of its pods, and resumed when none is left: they ask for their hosts as a gang again, and go
on from their checkpoint. What is to be done is seen from the Job alone, so that this may end anywhere, and run twice.
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
# Failures of members that were answered; that the pods of the gang are being ended to be started anew.
ANSWERED = "menagerie.dev/gang-failures"
RESTARTING = "menagerie.dev/gang-restarting"
LIST = f"/apis/batch/v1/jobs?labelSelector={LABEL}"
# Whatever was changed or taken away since it was read is looked at again when the watch tells of it.
RACES = (404, 409)
THERE = 409
MERGE = "application/merge-patch+json"
# Failures of members are an int32 in a Job's status.
MOST_FAILURES = 2**31 - 1
# Events are not worth more of a round's time.
EVENT_TIMEOUT_S = 5.0


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
    if over(job):
        return None
    answered = failures(said.get(ANSWERED, "0"), job["metadata"]["name"])
    if RESTARTING in said:
        gone = not status.get("active") and not status.get("terminating")
        if suspended and not (gone and has_stopped(job)):
            return None
        # Not suspended any more: somebody else resumed it.
        return {"metadata": {"annotations": {RESTARTING: None, ANSWERED: str(failed)}}, "spec": {"suspend": False}}
    if suspended or failed <= answered:
        return None
    return {"metadata": {"annotations": {RESTARTING: str(failed)}}, "spec": {"suspend": True}}


def failures(said: str, name: str) -> int:
    """The number of an annotation. ValueError says how the owner of the Job mends it."""
    if re.fullmatch("[0-9]{1,10}", said) and int(said) <= MOST_FAILURES:
        return int(said)
    raise ValueError(
        f"annotation {ANSWERED} is {said[:40]!r}, no number of failures, so the gang is not started anew when a member dies; "
        f"take it away: kubectl annotate job {name} {ANSWERED}-"
    )


def event(job: dict[str, Any], reason: str, now: float) -> dict[str, Any]:
    """What is wrong, where the owner of the Job sees it. Its name is of what it says: all API-server hosts make one together."""
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
    """Whether the controller has seen that it is suspended: numbers of before say nothing."""
    found = job.get("status", {}).get("conditions") or []
    return any(each["type"] == "Suspended" and each["status"] == "True" for each in found)


class Keeper:
    """Acts on each Job that is a gang. version: group and version of PodGroups."""

    def __init__(self, api: Api, version: str) -> None:
        self._api, self._version = api, version
        self._made: set[str] = set()
        self._jobs = Follower(api, LIST, self.decide, self._listed, self._told)

    def decide(self, job: dict[str, Any]) -> None:
        """Make its PodGroup, suspend it or resume it. Losing a race, against the same program of another host too, is success."""
        try:
            if not over(job):
                self._group(job)
        finally:
            self._change(job)

    def _change(self, job: dict[str, Any]) -> None:
        wanted = change(job)
        if wanted is None:
            return
        wanted["metadata"]["resourceVersion"] = job["metadata"]["resourceVersion"]
        try:
            self._api.call("PATCH", path(job), wanted, MERGE)
        except ApiError as error:
            if error.status not in RACES:
                raise
            return
        did = "ended, to be started anew as a whole" if wanted["spec"]["suspend"] else "started anew"
        print(f"{path(job)}: {job['status'].get('failed', 0)} failures of members: {did}", flush=True)

    def _group(self, job: dict[str, Any]) -> None:
        """Remembered is what the API has made, or has; after any other answer another turn asks again."""
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
        """ValueError for a PodGroup of the Job's name that goes with an earlier Job."""
        about = self._api.call("GET", where)["metadata"]
        others = [each["uid"] for each in about.get("ownerReferences") or [] if each["uid"] != job["metadata"]["uid"]]
        if others or "deletionTimestamp" in about:
            raise ValueError(
                f"PodGroup {about['name']} is of an earlier Job of that name; once it is gone, this one gets its own"
            )

    def _listed(self, uids: set[str]) -> None:
        self._made &= uids

    def _told(self, job: dict[str, Any], reason: str) -> None:
        """An Event of the Job; without the etcd of Events, or in a namespace that is going, the journal has it alone."""
        where = f"/api/v1/namespaces/{job['metadata']['namespace']}/events"
        try:
            self._api.call("POST", where, event(job, reason, time.time()), timeout_s=EVENT_TIMEOUT_S)
        except (ApiError, OSError, http.client.HTTPException) as error:
            if not isinstance(error, ApiError) or error.status != THERE:
                print(f"{path(job)}: no Event: {plain(str(error))}", flush=True)

    def follow(self) -> None:
        """All gangs that are there, then what changes."""
        self._jobs.follow()

    def deal(self, job: dict[str, Any]) -> bool:
        """One Job's turn; whether it could be dealt with."""
        return self._jobs.deal(job)


def main() -> None:
    version = json.loads(SETTINGS.read_text())["pod_groups"]
    forever(Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")), version).follow)


if __name__ == "__main__":
    main()
