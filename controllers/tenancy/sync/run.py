"""One round: look at directory and cluster, plan, refuse or apply. If a round is interrupted, the next one does the rest.

The caller, an operator's command or a controller in the cluster, provides access to the API and a directory.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from kubernetes.client.exceptions import ApiException

from clients import notebook
from clients.kube import Kube
from clients.objects import Key, key_of
from cluster.shared import from_known_fields
from cluster.tenancy import Tenancy
from controllers.tenancy.directory import Directory, Roster, Tenant
from controllers.tenancy.sync.guard import refusals, sizes
from controllers.tenancy.sync.kube import kube_of
from controllers.tenancy.sync.objects import ALLOWANCE, EDIT, EDITORS, OWNER_ROLE, OWNERS, makes
from controllers.tenancy.sync.plan import ChangeVerb, TenancyChange, TenancyPlan, looked_into, plan
from controllers.tenancy.sync.state import Sizes, TenancyState, space_of
from controllers.tenancy.sync.workloads import SCALED, SUSPENDED

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

LEASE = "menagerie-tenancy-sync"
"""Held by the process that runs rounds continuously."""
NOTEBOOK = "menagerie-tenancy"
"""The ConfigMap. Its page `last` has the `Sizes` of the last successful sync."""
_AT_ONCE = 8


class ApiAccess(Protocol):
    """See `clients.access.Access`."""

    def api(self, *, once: bool = False, connections: int | None = None) -> ApiClient: ...


@dataclass(frozen=True)
class SyncReview:
    """The result of a look. refused: why nothing may be changed; the plan then has no changes."""

    roster: Roster
    state: TenancyState
    plan: TenancyPlan
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Applied:
    """The result of an apply.

    changes: changes that the API accepted. failed: changes that it refused, with its answer; the rest of that namespace waits.
    """

    changes: tuple[TenancyChange, ...] = ()
    failed: tuple[tuple[TenancyChange, str], ...] = ()


class Sync:
    """A cluster and its directory. clock: Unix time."""

    def __init__(
        self, access: ApiAccess, directory: Directory, settings: Tenancy, clock: Callable[[], float] = time.time
    ) -> None:
        self._directory, self._settings, self._clock = directory, settings, clock
        self._api = access.api(connections=_AT_ONCE)
        self._kube = kube_of(self._api)

    def look(self, *, accept_loss: bool = False) -> SyncReview:
        """Read directory and cluster, and plan; change nothing.

        Errors: raises FailedError or SpecError if the directory does not answer, or not completely.
        """
        roster = self._directory.read()
        state = read_state(self._kube, self._api, roster, self._settings)
        refused = refusals(roster, state, self._settings, accept_loss=accept_loss)
        planned = (
            TenancyPlan(notices=roster.notices) if refused else plan(roster, state, self._settings, self._stamp()[:10])
        )
        return SyncReview(roster, state, planned, refused)

    def apply(self, review: SyncReview, tell: Callable[[TenancyChange], None] = lambda _: None) -> Applied:
        """Make the changes: in order within a namespace, namespaces in parallel. Remember the sizes if all succeed."""
        if review.refused:
            raise ValueError("a refused plan is never applied")
        by_tenant: dict[Tenant | None, list[TenancyChange]] = defaultdict(list)
        for change in review.plan.changes:
            by_tenant[change.tenant].append(change)
        done = [self._in_order(by_tenant.pop(None, ()), tell)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done += pool.map(lambda changes: self._in_order(changes, tell), by_tenant.values())
        made = tuple(change for each in done for change in each.changes)
        failed = tuple(failure for each in done for failure in each.failed)
        if not failed:
            self._remember(review)
        return Applied(made, failed)

    def _in_order(self, changes: Iterable[TenancyChange], tell: Callable[[TenancyChange], None]) -> Applied:
        made: list[TenancyChange] = []
        for change in changes:
            try:
                self._make(change)
            except ApiException as error:
                return Applied(tuple(made), ((change, f"{error.status} {error.reason}: {api_message(error)}"),))
            made.append(change)
            tell(change)
        return Applied(tuple(made))

    def _make(self, change: TenancyChange) -> None:
        if change.verb is ChangeVerb.PATCH:
            self._kube.patch(change.key, change.body)
            return
        if change.verb is ChangeVerb.REBIND:
            # The only deletion in a sync: a RoleBinding's role can't be changed otherwise.
            self._kube.delete(change.key)
        self._kube.apply(change.body)

    def _remember(self, review: SyncReview) -> None:
        now = sizes(review.roster)
        if now != review.state.last:
            page = {**asdict(now), "since": self._stamp()}
            notebook.change(self._api, NOTEBOOK, lambda pages: pages.update(last=page))

    def _stamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))


def read_state(kube: Kube, api: ApiClient, roster: Roster, settings: Tenancy) -> TenancyState:
    """Read the cluster with one list request per kind, independent of the number of tenants."""
    namespaces = list(kube.list("Namespace"))
    spaces = {each["metadata"]["name"]: space_of(each, settings) for each in namespaces}
    bindings = [*kube.list("RoleBinding"), *kube.list("ClusterRoleBinding")]
    ours = {EDITORS, OWNERS}
    things = [*namespaces, *(each for each in bindings if each["metadata"]["name"] in ours)]
    things += kube.list("ClusterRole", fields=f"metadata.name={OWNER_ROLE}")
    for kind in ("ResourceQuota", "LimitRange"):
        things += kube.list(kind, fields=f"metadata.name={ALLOWANCE}")
    objects: dict[Key, dict[str, object]] = {key_of(each): each for each in things}
    others = tuple(each for each in bindings if each["metadata"]["name"] not in ours)
    workloads = {
        name: tuple(each for kind in (*SCALED, *SUSPENDED) for each in kube.list(kind, name))
        for name in looked_into(roster, spaces, settings)
    }
    kinds = tuple(kind for role in kube.list("ClusterRole", fields=f"metadata.name={EDIT}") for kind in makes(role))
    return TenancyState(spaces, objects, others, workloads, remembered(api), kinds)


def remembered(api: ApiClient) -> Sizes | None:
    """Return the sizes at the last successful sync."""
    page = notebook.read(api, NOTEBOOK).get("last")
    return from_known_fields(Sizes, page) if page else None


def api_message(error: ApiException) -> str:
    """Return the message of the API server's answer."""
    text = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300]
