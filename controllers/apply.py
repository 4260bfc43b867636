"""Apply, show and remove the controllers' objects, by server-side apply. A second run changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from clients.kube import Kube
from clients.lease import NAMESPACE as LEASES
from clients.objects import Key, Object, as_json, key_of, named
from clients.rest import PATIENT_S
from cluster.tenancy import DirectorySource, Tenancy
from controllers.kinds import KINDS, TENANCY_CAPACITY, TENANCY_SYNC, ControllerKind
from controllers.manifests import KIND_LABEL, NAMESPACE, Desired, objects
from controllers.tenancy.capacity import policies
from controllers.tenancy.capacity.run import places_of
from controllers.tenancy.sync.kube import kube_of
from controllers.tenancy.sync.objects import cluster_role

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

MANAGER = "menagerie-controllers"
_ANY_TENANCY = Tenancy(directory=DirectorySource())
"""Placeholder settings: the names of the objects don't depend on them."""
_BOOKKEEPING = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class ManifestVerb(StrEnum):
    """What a request does to an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(frozen=True)
class ManifestChange:
    """One request. fields: for a change, the paths that differ; never their values, because some are secret."""

    verb: ManifestVerb
    key: Key
    fields: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """``Deployment menagerie-system/tenancy-sync``."""
        return named(self.key)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {"verb": self.verb, **as_json(self.key), "fields": list(self.fields)}


@dataclass(frozen=True)
class ControllerState:
    """A controller in the cluster. holder: of its Lease, "" if nobody holds it. troubles: why pods are not ready."""

    kind: ControllerKind
    image: str
    replicas: int
    ready: int
    rolled: bool
    holder: str = ""
    renewed: str = ""
    troubles: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What is not ready yet, "" if everything is."""
        if self.rolled and self.ready == self.replicas:
            return ""
        why = f": {'; '.join(self.troubles)}" if self.troubles else ""
        return f"{self.kind.name} has {self.ready} of {self.replicas} pods ready{why}"

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        fields = {key: getattr(self, key) for key in ("image", "replicas", "ready", "holder", "renewed")}
        return {"controller": self.kind.name, **fields, "troubles": list(self.troubles), "missing": self.missing}


class Controllers:
    """The controllers of one cluster. Errors: methods raise kubernetes' ApiException and urllib3's HTTPError."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._kube = Kube(api, MANAGER, timeout_s=PATIENT_S)

    def look(self, desired: Desired) -> tuple[ManifestChange, ...]:
        """Return what `apply` would change, according to a dry run on the API server."""
        changes = (self._change(kube, thing) for kube, thing in self._things(desired))
        return tuple(change for change in changes if change)

    def apply(
        self,
        desired: Desired,
        changes: Iterable[ManifestChange],
        tell: Callable[[ManifestChange], None] = lambda _: None,
    ) -> None:
        """Make these changes, in order. Safe to interrupt and to repeat."""
        by_key = {change.key: change for change in changes}
        for kube, thing in self._things(desired):
            if change := by_key.get(key_of(thing)):
                kube.apply(thing)
                tell(change)

    def states(self) -> tuple[ControllerState, ...]:
        """Return the controllers that the cluster has."""
        return tuple(state for kind in KINDS.values() if (state := self._state(kind)))

    def missing(self, kinds: Iterable[ControllerKind]) -> str:
        """Return what is not ready yet, "" if everything is."""
        states = {state.kind: state for state in self.states()}
        reasons = (states[kind].missing if kind in states else f"{kind.name} does not exist" for kind in kinds)
        return "; ".join(reason for reason in reasons if reason)

    def to_remove(self, kinds: tuple[ControllerKind, ...]) -> tuple[ManifestChange, ...]:
        """Return what exists of these; with the last controller, also the namespace.

        Their notebooks stay: the command reads them too.
        """
        running = {state.kind for state in self.states()}
        kept = {("ConfigMap", LEASES, notebook) for kind in kinds for notebook in kind.notebooks}
        changes = []
        for key in removable(kinds, whole=running <= set(kinds)):
            if key not in kept and self._read(self._kube, key):
                changes.append(ManifestChange(ManifestVerb.DELETE, key))
        return tuple(changes)

    def remove(
        self, changes: Iterable[ManifestChange], tell: Callable[[ManifestChange], None] = lambda _: None
    ) -> None:
        """Delete these objects. An object that has gone in the meantime is no error."""
        for change in changes:
            try:
                self._kube.delete(change.key)
            except ApiException as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            tell(change)

    def _things(self, desired: Desired) -> Iterator[tuple[Kube, Object]]:
        """The objects to apply, including those of tenancy that no controller may write: they grant rights or apply to all pods."""
        if TENANCY_SYNC in desired.kinds:
            yield kube_of(self._api), cluster_role()
        if TENANCY_CAPACITY in desired.kinds:
            places = places_of(kube_of(self._api))
            kube = kube_of(self._api, places)
            version = places["MutatingAdmissionPolicy"].group
            yield from ((kube, thing) for thing in policies.objects(desired.settings.borrowing, version))
        yield from ((self._kube, thing) for thing in objects(desired))

    def _change(self, kube: Kube, thing: Object) -> ManifestChange | None:
        key = key_of(thing)
        now = self._read(kube, key)
        if now is None:
            return ManifestChange(ManifestVerb.CREATE, key)
        fields = tuple(_differences(_without_status(now), _without_status(kube.apply(thing, dry_run=True))))
        return ManifestChange(ManifestVerb.CHANGE, key, fields) if fields else None

    def _read(self, kube: Kube, key: Key) -> Object | None:
        kind, inside, name = key
        try:
            return kube.read(kind, name, inside)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _state(self, kind: ControllerKind) -> ControllerState | None:
        deployment = self._read(self._kube, ("Deployment", NAMESPACE, kind.name))
        if deployment is None:
            return None
        status, replicas = deployment.get("status") or {}, deployment["spec"]["replicas"]
        rolled = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        rolled = rolled and status.get("updatedReplicas", 0) == replicas == status.get("replicas", 0)
        key = ("Lease", LEASES, kind.lease)
        lease = (self._read(self._kube, key) or {}).get("spec") or {} if kind.lease else {}
        pods = [each for each in self._kube.list("Pod", NAMESPACE) if _of(each) == kind.name]
        return ControllerState(
            kind,
            deployment["spec"]["template"]["spec"]["containers"][0]["image"],
            replicas,
            status.get("readyReplicas", 0),
            rolled,
            lease.get("holderIdentity") or "",
            lease.get("renewTime") or "",
            tuple(sorted({trouble for pod in pods for trouble in troubles(pod)})),
        )


def removable(kinds: tuple[ControllerKind, ...], *, whole: bool) -> tuple[Key, ...]:
    """Return the keys of everything that `manifests.objects` makes for them, the last first. whole: include what they share."""
    any_ = Desired("", {}, _ANY_TENANCY, kinds, secrets={"": ""}, bucket={"": ""}, pages={"": ""})
    keys = [key_of(each) for each in objects(any_)]
    shared = {key_of(each) for each in objects(replace(any_, kinds=()))}
    return tuple(key for key in reversed(keys) if whole or key not in shared)


def troubles(pod: Object) -> Iterator[str]:
    """Yield why a pod isn't ready, in Kubernetes' words."""
    status = pod.get("status") or {}
    name = pod["metadata"]["name"]
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"{name}: {condition.get('message') or condition.get('reason')}"
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") != "ContainerCreating":
            last = ((container.get("lastState") or {}).get("terminated") or {}).get("exitCode")
            exit_code = f", exit code {last}" if last is not None else ""
            yield f"{name}: {waiting.get('reason')}{exit_code}: {waiting.get('message', '')}".rstrip(": ")


def _of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(KIND_LABEL, ""))


def _without_status(thing: Object) -> dict[str, Any]:
    """The object without its status and the server's bookkeeping."""
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _BOOKKEEPING}
    return {**{key: value for key, value in thing.items() if key not in ("status", "metadata")}, "metadata": metadata}


def _differences(now: Any, then: Any, path: str = "") -> Iterator[str]:
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        for key in sorted(now.keys() | then.keys()):
            yield from _differences(now.get(key), then.get(key), f"{path}.{key}" if path else key)
    elif now != then:
        yield path
