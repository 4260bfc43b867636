"""The controllers' objects brought about, shown and taken away. Applied on the server's side: a second run changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from clients.kube import Key, Kube, Object, Place, as_json, key_of, named
from clients.lease import NAMESPACE as LEASES
from cluster.tenancy import DirectorySource, Tenancy
from controllers.kinds import KINDS, RBAC, TENANCY_CAPACITY, TENANCY_SYNC, Kind
from controllers.manifests import KIND_LABEL, NAMESPACE, Wanted, objects
from controllers.tenancy.capacity import policies
from controllers.tenancy.capacity.run import places_of
from controllers.tenancy.sync.kube import PLACES, kube_of
from controllers.tenancy.sync.objects import cluster_role

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

MANAGER = "menagerie-controllers"
_MORE = {
    "ConfigMap": Place("v1", "configmaps"),
    "Secret": Place("v1", "secrets"),
    "ServiceAccount": Place("v1", "serviceaccounts"),
    "Role": Place(f"{RBAC}/v1", "roles"),
    "Lease": Place("coordination.k8s.io/v1", "leases"),
    "PodDisruptionBudget": Place("policy/v1", "poddisruptionbudgets"),
}
_NO_MATTER = Tenancy(directory=DirectorySource())
"""Names of objects don't depend on it."""
_UNSAID = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class Verb(StrEnum):
    """What is done to an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """One request. fields: of a change, the paths that differ; never what stands there, for some of it is secret."""

    verb: Verb
    key: Key
    fields: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """``Deployment menagerie-system/tenancy-sync``."""
        return named(self.key)

    def to_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {"verb": self.verb, **as_json(self.key), "fields": list(self.fields)}


@dataclass(frozen=True)
class State:
    """A controller in the cluster. holder: who has its Lease, "" for nobody. troubles: what keeps pods from being ready."""

    kind: Kind
    image: str
    replicas: int
    ready: int
    rolled: bool
    holder: str = ""
    renewed: str = ""
    troubles: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What is not there yet, "" when all is."""
        if self.rolled and self.ready == self.replicas:
            return ""
        why = f": {'; '.join(self.troubles)}" if self.troubles else ""
        return f"{self.kind.name} has {self.ready} of {self.replicas} pods ready{why}"

    def to_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
        found = {key: getattr(self, key) for key in ("image", "replicas", "ready", "holder", "renewed")}
        return {"controller": self.kind.name, **found, "troubles": list(self.troubles), "missing": self.missing}


class Controllers:
    """A cluster's. Methods raise kubernetes' ApiException and urllib3's HTTPError."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._kube = Kube(api, MANAGER, {**PLACES, **_MORE})

    def look(self, wanted: Wanted) -> tuple[Change, ...]:
        """What `apply` would change: the API server's own answer to a dry run."""
        changes = (self._change(kube, thing) for kube, thing in self._things(wanted))
        return tuple(change for change in changes if change)

    def apply(self, wanted: Wanted, changes: Iterable[Change], tell: Callable[[Change], None] = lambda _: None) -> None:
        """Make these changes, in order. Safe to cut and to repeat."""
        by_key = {change.key: change for change in changes}
        for kube, thing in self._things(wanted):
            if change := by_key.get(key_of(thing)):
                kube.apply(thing)
                tell(change)

    def states(self) -> tuple[State, ...]:
        """The controllers that the cluster has."""
        return tuple(state for kind in KINDS.values() if (state := self._state(kind)))

    def missing(self, kinds: Iterable[Kind]) -> str:
        """What is not ready yet, "" when all is."""
        there = {state.kind: state for state in self.states()}
        told = (there[kind].missing if kind in there else f"{kind.name} is not there" for kind in kinds)
        return "; ".join(each for each in told if each)

    def to_remove(self, kinds: tuple[Kind, ...]) -> tuple[Change, ...]:
        """What is there of these; with the last of them the namespace. What they remember of the cluster stays, for the command."""
        running = {state.kind for state in self.states()}
        kept = {("ConfigMap", LEASES, notebook) for kind in kinds for notebook in kind.notebooks}
        found = []
        for key in removable(kinds, whole=running <= set(kinds)):
            if key not in kept and self._read(self._kube, key):
                found.append(Change(Verb.DELETE, key))
        return tuple(found)

    def remove(self, changes: Iterable[Change], tell: Callable[[Change], None] = lambda _: None) -> None:
        """Delete; what is gone by itself meanwhile is no error."""
        for change in changes:
            try:
                self._kube.delete(change.key)
            except ApiException as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            tell(change)

    def _things(self, wanted: Wanted) -> Iterator[tuple[Kube, Object]]:
        """With what of tenancy's own no controller may write: it gives rights, or rules over all pods."""
        if TENANCY_SYNC in wanted.kinds:
            yield kube_of(self._api), cluster_role()
        if TENANCY_CAPACITY in wanted.kinds:
            places = places_of(kube_of(self._api))
            kube = kube_of(self._api, places)
            version = places["MutatingAdmissionPolicy"].group
            yield from ((kube, thing) for thing in policies.objects(wanted.settings.borrowing, version))
        yield from ((self._kube, thing) for thing in objects(wanted))

    def _change(self, kube: Kube, thing: Object) -> Change | None:
        key = key_of(thing)
        now = self._read(kube, key)
        if now is None:
            return Change(Verb.CREATE, key)
        fields = tuple(_differences(_said(now), _said(kube.apply(thing, dry_run=True))))
        return Change(Verb.CHANGE, key, fields) if fields else None

    def _read(self, kube: Kube, key: Key) -> Object | None:
        kind, inside, name = key
        try:
            return kube.read(kind, name, inside)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _state(self, kind: Kind) -> State | None:
        found = self._read(self._kube, ("Deployment", NAMESPACE, kind.name))
        if found is None:
            return None
        status, wanted = found.get("status") or {}, found["spec"]["replicas"]
        rolled = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        rolled = rolled and status.get("updatedReplicas", 0) == wanted == status.get("replicas", 0)
        lease = (self._read(self._kube, ("Lease", LEASES, kind.lease)) or {}).get("spec") or {}
        pods = [each for each in self._kube.list("Pod", NAMESPACE) if _of(each) == kind.name]
        return State(
            kind,
            found["spec"]["template"]["spec"]["containers"][0]["image"],
            wanted,
            status.get("readyReplicas", 0),
            rolled,
            lease.get("holderIdentity") or "",
            lease.get("renewTime") or "",
            tuple(sorted({trouble for pod in pods for trouble in troubles(pod)})),
        )


def removable(kinds: tuple[Kind, ...], *, whole: bool) -> tuple[Key, ...]:
    """All that `manifests.objects` makes for them, the last first. whole: with what they share."""
    made = [key_of(each) for each in objects(Wanted("", {}, _NO_MATTER, kinds, secrets={"": ""}))]
    shared = {key_of(each) for each in objects(Wanted("", {}, _NO_MATTER, kinds[:0], secrets={"": ""}))}
    return tuple(key for key in reversed(made) if whole or key not in shared)


def troubles(pod: Object) -> Iterator[str]:
    """Why it isn't ready, in Kubernetes' words."""
    status = pod.get("status") or {}
    name = pod["metadata"]["name"]
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"{name}: {condition.get('message') or condition.get('reason')}"
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") != "ContainerCreating":
            last = ((container.get("lastState") or {}).get("terminated") or {}).get("exitCode")
            ended = f", ended with {last}" if last is not None else ""
            yield f"{name}: {waiting.get('reason')}{ended}: {waiting.get('message', '')}".rstrip(": ")


def _of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(KIND_LABEL, ""))


def _said(thing: Object) -> dict[str, Any]:
    """What somebody wanted of it: neither the server's bookkeeping nor its status."""
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _UNSAID}
    return {**{key: value for key, value in thing.items() if key not in ("status", "metadata")}, "metadata": metadata}


def _differences(now: Any, then: Any, path: str = "") -> Iterator[str]:
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        for key in sorted(now.keys() | then.keys()):
            yield from _differences(now.get(key), then.get(key), f"{path}.{key}" if path else key)
    elif now != then:
        yield path
