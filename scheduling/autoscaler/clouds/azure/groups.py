"""The scale sets that `stacks/azure/workers.py` makes: one a pool, in the group of resources of workers, known by tags.

They are of uniform orchestration: a machine is a number of its scale set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from scheduling.autoscaler.clouds import common
from scheduling.autoscaler.clouds.azure.identity import AzureBearers
from scheduling.autoscaler.clouds.bearer import Api, RefusedError
from scheduling.autoscaler.clouds.common import Names
from scheduling.autoscaler.clouds.http import Http, LostError
from scheduling.autoscaler.groups import Group, GroupError, Machine

_URL = "https://management.azure.com"
_VERSION = "2024-07-01"
_MOST_PAGES = 1000
_TRIES = 3
_POOL_TAG = "k8s.io_cluster-autoscaler_node-template_label_" + POOL_LABEL.replace("_", "~2").replace("/", "_")
_REMEMBERED_S = 900.0
_WANTING = ("quota", "allocation", "capacity", "skunotavailable", "operationnotallowed", "overconstrained")
"""In codes of refusals to grow: "Resolve errors for resource quotas", "Resolve errors for SKU not available", "Troubleshoot
allocation failures". Of a core quota Azure says OperationNotAllowed."""


@dataclass(frozen=True)
class ScaleSet:
    """path: begins with a slash. sku: as Azure told it; capacity is in it."""

    name: str
    path: str
    sku: Mapping[str, Any]
    provisioning: str

    @property
    def size(self) -> int:
        return int(self.sku["capacity"])


@dataclass(frozen=True)
class Instance:
    """id: its number. provider: its id in a Node's spec, in small letters. error: why it could not be made."""

    id: str
    provider: str
    zone: str
    state: Literal["booting", "running", "leaving"]
    since: datetime | None
    error: str


class AzureGroups:
    """See `scheduling.autoscaler.groups.Groups`. A machine's id is its number in the scale set."""

    def __init__(
        self,
        cluster: Cluster,
        http: Http,
        names: Names,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._clock = clock
        self._bearers = AzureBearers(http, environment)
        url = environment.get("ARM_ENDPOINT", _URL).rstrip("/")
        self._api = Api(http, self._bearers, "Azure", url, "docs/azure-role-autoscaler.json")
        self._refused: dict[str, tuple[float, str]] = {}

    def read(self) -> Mapping[str, Group]:
        found = self._find()
        # Azure's spelling of a resource's id differs between its APIs, and means one.
        names = {provider.lower(): name for provider, name in self._names().items()}
        return {pool: self._group(pool, scale_set, names) for pool, scale_set in found.items()}

    def grow(self, pool: str, size: int) -> None:
        scale_set = self._of(pool)
        if size <= scale_set.size:
            return
        common.refuse_above(pool, size, self._cluster.spec.pools[pool].max)
        try:
            self._api.ask("PATCH", f"{scale_set.path}?{_version()}", {"sku": {**scale_set.sku, "capacity": size}})
        except RefusedError as error:
            if any(word in error.code.lower() for word in _WANTING):
                self._refused[pool] = (self._clock(), str(error))
            raise
        self._refused.pop(pool, None)

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        scale_set = self._of(pool)
        going = self._there(scale_set, ids)
        common.refuse_below(pool, scale_set.size - len(going), self._cluster.spec.pools[pool].min)
        for last in range(_TRIES):
            if not going:
                return
            try:
                self._api.ask("POST", f"{scale_set.path}/delete?{_version()}", {"instanceIds": going}, again=False)
                return
            except LostError:
                if last == _TRIES - 1:
                    raise
                going = self._there(scale_set, ids)

    def _there(self, scale_set: ScaleSet, ids: Sequence[str]) -> list[str]:
        return [each.id for each in self._instances(scale_set) if each.id in set(ids) and each.state != "leaving"]

    def _find(self) -> dict[str, ScaleSet]:
        wanted = {"menagerie": "true", "cluster": self._cluster.name}
        # A cluster's pools are in a group of resources of this name, which no other cluster's can have.
        group = quote(f"{self._cluster.name}_workers")
        path = f"/subscriptions/{self._bearers.subscription()}/resourceGroups/{group}"
        found: list[tuple[str, str, ScaleSet]] = []
        for each in self._pages(f"{path}/providers/Microsoft.Compute/virtualMachineScaleSets?{_version()}"):
            tags = each.get("tags") or {}
            pool = tags.get(_POOL_TAG, "")
            if all(tags.get(key) == value for key, value in wanted.items()) and tags.get("role") == f"pool-{pool}":
                state = each.get("properties", {}).get("provisioningState", "")
                found.append((pool, each["name"], ScaleSet(each["name"], each["id"], each["sku"], state)))
        return common.exactly_one(self._cluster, common.in_region(self._cluster), found)

    def _of(self, pool: str) -> ScaleSet:
        return common.known(self._find(), pool)

    def _pages(self, path: str) -> Iterator[Any]:
        """All of a list, or GroupError. A next page is asked for at Azure alone: the token goes with the question."""
        for _ in range(_MOST_PAGES):
            page = self._api.ask("GET", path) or {}
            yield from page.get("value", ())
            link = page.get("nextLink") or ""
            if not link:
                return
            if not link.startswith(f"{self._api.url}/") or link == self._api.url + path:
                raise GroupError(f"Azure names no next page of {path.partition('?')[0]} that can be read: {link}")
            path = link.removeprefix(self._api.url)
        raise GroupError(f"Azure's list of {path.partition('?')[0]} has no end; none is believed")

    def _instances(self, scale_set: ScaleSet) -> list[Instance]:
        path = f"{scale_set.path}/virtualMachines?{_version()}&$expand=instanceView"
        return [_instance(each) for each in self._pages(path)]

    def _group(self, pool: str, scale_set: ScaleSet, names: Mapping[str, str]) -> Group:
        spec, instances = self._cluster.spec.pools[pool], self._instances(scale_set)
        machines = tuple(
            Machine(each.id, names.get(each.provider, ""), each.state, each.zone, each.since) for each in instances
        )
        trouble = self._trouble(pool, scale_set, instances)
        return Group(pool, scale_set.size, spec.min, spec.max, machines, trouble)

    def _trouble(self, pool: str, scale_set: ScaleSet, instances: Sequence[Instance]) -> str:
        errors = [each.error for each in instances if each.error]
        here = sum(each.state != "leaving" for each in instances)
        if scale_set.provisioning == "Failed" and here < scale_set.size:
            view = self._api.ask("GET", f"{scale_set.path}/instanceView?{_version()}") or {}
            errors += [_text(each) for each in view.get("statuses", ()) if each.get("level") == "Error"]
        at, refusal = self._refused.get(pool, (0.0, ""))
        if refusal and self._clock() - at < _REMEMBERED_S:
            errors.append(refusal)
        return "; ".join(dict.fromkeys(errors))


def _instance(told: Mapping[str, Any]) -> Instance:
    properties = told.get("properties", {})
    statuses = properties.get("instanceView", {}).get("statuses", ())
    provisioning = properties.get("provisioningState", "")
    codes = {each.get("code", "") for each in statuses}
    error = next((_text(each) for each in statuses if each.get("level") == "Error"), "")
    state: Literal["booting", "running", "leaving"] = "running"
    if provisioning == "Deleting" or codes & {"PowerState/deallocating", "PowerState/deallocated"}:
        state = "leaving"
    elif provisioning in ("Creating", "Failed") or codes & {"PowerState/starting"}:
        state = "booting"
    number, created = str(told["instanceId"]), properties.get("timeCreated")
    return Instance(
        number,
        f"azure://{told['id']}".lower(),
        next(iter(told.get("zones") or ()), ""),
        state,
        datetime.fromisoformat(created) if created else None,
        error if state == "booting" else "",
    )


def _text(status: Mapping[str, Any]) -> str:
    """``ProvisioningState/failed/AllocationFailed`` and its message."""
    return f"{status.get('code', '').rpartition('/')[2]}: {status.get('message', '')}"


def _version() -> str:
    return f"api-version={_VERSION}"
