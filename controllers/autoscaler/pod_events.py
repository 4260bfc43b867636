"""Writes Events on pods that report what was decided for them, limited in number."""

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
from controllers.autoscaler.world import Waiting
from controllers.planner import Fate

AGAIN_S = 3600.0
"""Until the same Event is repeated for a pod, if it still applies. API servers keep Events for an hour (--event-ttl)."""
MOST = 200
"""Events per pass: ten thousand pods of one job would otherwise produce ten thousand equal Events."""
COMPONENT = "menagerie-autoscaler"


class PodEvent(NamedTuple):
    """An Event. kind: Normal or Warning."""

    pod: Waiting
    reason: str
    text: str
    kind: str = "Normal"


def pod_events(round_: Round) -> Iterator[PodEvent]:
    """Yield the Events of a round, problems first."""
    pods = {pod.name: pod for pod in round_.world.waiting}
    for pod in pods.values():
        if pod.complaints:
            yield PodEvent(pod, "BadRequestOfMachines", "; ".join(pod.complaints), "Warning")
    for name, verdict in round_.decided.verdicts.items():
        if name in pods and verdict.fate is Fate.NEVER:
            yield PodEvent(pods[name], "NoMachineEver", verdict.reason, "Warning")
    for name, verdict in round_.decided.verdicts.items():
        if name in pods and verdict.fate is Fate.NEW:
            yield PodEvent(pods[name], "MachineOrdered", verdict.reason)


class EventWriter:
    """Writes Events, and remembers those that this process has written. clock: monotonic seconds."""

    def __init__(self, api: Callable[[], client.ApiClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._written: dict[tuple[str, str], float] = {}

    def tell(self, round_: Round) -> tuple[int, int]:
        """Write the Events of a round. Return (number written, number postponed). Events that the API refuses are skipped."""
        now = self._clock()
        self._written = {key: at for key, at in self._written.items() if now - at < AGAIN_S}
        core, written, postponed = client.CoreV1Api(self._api()), 0, 0
        for each in pod_events(round_):
            key = (each.pod.uid, each.reason)
            if key in self._written:
                continue
            if written >= MOST:
                postponed += 1
                continue
            namespace = each.pod.name.partition("/")[0]
            try:
                core.create_namespaced_event(namespace, event(each), _request_timeout=API_TIMEOUT_S)
            except (ApiException, urllib3.exceptions.HTTPError):
                continue  # the namespace is being deleted, or the API does not answer: an Event is not worth a failure
            self._written[key] = now
            written += 1
        return written, postponed


def event(said_event: PodEvent) -> client.CoreV1Event:
    namespace, _, name = said_event.pod.name.partition("/")
    now = datetime.now(UTC)
    return client.CoreV1Event(
        metadata=client.V1ObjectMeta(name=f"{name[:200]}.{uuid.uuid4().hex[:16]}", namespace=namespace),
        involved_object=client.V1ObjectReference(
            api_version="v1", kind="Pod", name=name, namespace=namespace, uid=said_event.pod.uid
        ),
        reason=said_event.reason,
        message=said_event.text[:1000],
        type=said_event.kind,
        first_timestamp=now,
        last_timestamp=now,
        count=1,
        source=client.V1EventSource(component=COMPONENT),
    )
