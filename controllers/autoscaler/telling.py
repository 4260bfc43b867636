"""Events on pods that say what was decided for them, not too many of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from controllers.autoscaler.run import Round
from controllers.autoscaler.seen import Waiting
from controllers.planner import Fate

AGAIN_S = 3600.0
"""Until the same is said of a pod once more, if it still is so. API servers keep Events for an hour (--event-ttl)."""
MOST = 200
"""Events of one pass: ten thousand pods of one job would say the same ten thousand times."""
COMPONENT = "menagerie-autoscaler"


class Said(NamedTuple):
    """An Event. kind: Normal or Warning."""

    pod: Waiting
    reason: str
    text: str
    kind: str = "Normal"


def said(one: Round) -> Iterator[Said]:
    """What a round has to say of pods, what is wrong first."""
    pods = {pod.name: pod for pod in one.world.waiting}
    for pod in pods.values():
        if pod.complaints:
            yield Said(pod, "BadRequestOfMachines", "; ".join(pod.complaints), "Warning")
    for name, verdict in one.made.verdicts.items():
        if name in pods and verdict.fate is Fate.NEVER:
            yield Said(pods[name], "NoMachineEver", verdict.reason, "Warning")
    for name, verdict in one.made.verdicts.items():
        if name in pods and verdict.fate is Fate.NEW:
            yield Said(pods[name], "MachineOrdered", verdict.reason)


class Teller:
    """Remembers what it said in this process. clock: seconds that only grow."""

    def __init__(self, api: Callable[[], client.ApiClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._told: dict[tuple[str, str], float] = {}

    def tell(self, one: Round) -> tuple[int, int]:
        """(Events that were written, those that were left for later). What the API refuses is left out."""
        now = self._clock()
        self._told = {key: at for key, at in self._told.items() if now - at < AGAIN_S}
        core, written, left = client.CoreV1Api(self._api()), 0, 0
        for each in said(one):
            key = (each.pod.uid, each.reason)
            if key in self._told:
                continue
            if written >= MOST:
                left += 1
                continue
            namespace = each.pod.name.partition("/")[0]
            try:
                core.create_namespaced_event(namespace, event(each), _request_timeout=API_TIMEOUT_S)
            except (ApiException, urllib3.exceptions.HTTPError):
                continue  # its namespace ends, or the API does not answer: an Event is no reason to stop
            self._told[key] = now
            written += 1
        return written, left


def event(one: Said) -> client.CoreV1Event:
    namespace, _, name = one.pod.name.partition("/")
    now = datetime.now(UTC)
    return client.CoreV1Event(
        metadata=client.V1ObjectMeta(name=f"{name[:200]}.{uuid.uuid4().hex[:16]}", namespace=namespace),
        involved_object=client.V1ObjectReference(
            api_version="v1", kind="Pod", name=name, namespace=namespace, uid=one.pod.uid
        ),
        reason=one.reason,
        message=one.text[:1000],
        type=one.kind,
        first_timestamp=now,
        last_timestamp=now,
        count=1,
        source=client.V1EventSource(component=COMPONENT),
    )
