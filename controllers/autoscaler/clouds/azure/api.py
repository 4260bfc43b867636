"""The few operations on scale sets that the autoscaler needs, through azure-mgmt-compute.

Operations are not awaited: a scale set grows for minutes, and the next pass reads the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError
from azure.mgmt.compute import ComputeManagementClient

from clients import clouds
from clients.clouds import TRIES, CallError, LoginError, one_line
from clients.clouds.azure_login import Credential, subscription
from clients.clouds.azure_policies import LONGEST_PAUSE_S, OneServer, Retries
from controllers.autoscaler.clouds.common import LostError, pages, throttled
from controllers.autoscaler.groups import GroupError

_FORBIDDEN, _THROTTLED = 403, 429
_ADVICE = (
    "in a pod, give its service account a workload identity (AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE); "
    "on a machine of Azure give it a managed identity; elsewhere run `az login`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET and "
    "ARM_TENANT_ID; the role is in docs/azure-role-autoscaler.json"
)
T = TypeVar("T")


class AzureRefusedError(GroupError):
    """Azure refused a request. word: Azure's error code."""

    def __init__(self, request_line: str, word: str, message: str, status: int) -> None:
        self.word = word
        advice = "; the rights are in docs/azure-role-autoscaler.json" if status == _FORBIDDEN else ""
        super().__init__(f"Azure refuses {request_line}: {word or f'HTTP {status}'}: {message}{advice}")


@dataclass(frozen=True)
class ScaleSet:
    """A scale set. sku: as Azure returns it, capacity included."""

    name: str
    sku: Mapping[str, Any]
    tags: Mapping[str, str]
    provisioning: str

    @property
    def size(self) -> int:
        capacity = self.sku.get("capacity")
        if capacity is None:
            raise GroupError(f"Azure's answer has no size for scale set {self.name}; it is not used")
        return int(capacity)


@dataclass(frozen=True)
class Instance:
    """A machine. id: its number. provider: the provider id of its Node, in lower case. error: why it could not be created."""

    id: str
    provider: str
    zone: str
    state: Literal["booting", "running", "leaving"]
    since: datetime | None
    error: str


class ScaleSets:
    """The scale sets of a resource group. Looks for credentials at the first request. Errors: every method raises GroupError."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._client: ComputeManagementClient | None = None

    def every(self) -> list[ScaleSet]:
        """Return all scale sets of the resource group."""
        return self._ask(
            lambda client: [
                ScaleSet(each["name"], each.sku or {}, each.tags or {}, each.provisioning_state or "")
                for each in _every("scale sets", client.virtual_machine_scale_sets.list(self._group))
            ]
        )

    def instances(self, name: str) -> list[Instance]:
        """Return all machines of a scale set."""
        return self._ask(
            lambda client: [
                _instance(each)
                for each in _every(
                    f"machines of {name}",
                    client.virtual_machine_scale_set_vms.list(self._group, name, expand="instanceView"),
                )
            ]
        )

    def errors(self, name: str) -> list[str]:
        """Return the errors in the scale set's instance view."""
        view = self._ask(lambda client: client.virtual_machine_scale_sets.get_instance_view(self._group, name))
        return [_text(each) for each in view.statuses or () if each.level == "Error"]

    def resize(self, scale_set: ScaleSet, size: int) -> None:
        body = {"sku": {**scale_set.sku, "capacity": size}}
        self._ask(
            # Setting a size is idempotent.
            lambda client: client.virtual_machine_scale_sets.begin_update(
                self._group, scale_set.name, body, polling=False, retry_on_methods=["PATCH"]
            )
        )

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete machines. Never retried here. Errors: raises LostError if the result is unknown."""
        body = {"instanceIds": list(ids)}
        self._ask(
            lambda client: client.virtual_machine_scale_sets.begin_delete_instances(
                self._group, name, body, polling=False, retry_total=0
            )
        )

    def _ask(self, call: Callable[[ComputeManagementClient], T]) -> T:
        """Send a request. If Azure rejects the token, get a new one and retry once: azure-identity would return the old one until it expires."""
        try:
            return self._once(call)
        except ClientAuthenticationError:
            self._client = None
        try:
            return self._once(call)
        except ClientAuthenticationError as error:
            raise _refused(error) from None

    def _once(self, call: Callable[[ComputeManagementClient], T]) -> T:
        try:
            return self._sent(call)
        except (CallError, LoginError) as error:
            raise GroupError(str(error)) from None

    def _sent(self, call: Callable[[ComputeManagementClient], T]) -> T:
        if self._client is None:
            self._client = ComputeManagementClient(
                Credential(_ADVICE),
                subscription(),
                retry_policy=Retries(retry_total=TRIES - 1, retry_backoff_max=LONGEST_PAUSE_S),
                per_call_policies=[OneServer()],
                connection_timeout=clouds.CONNECT_S,
                read_timeout=clouds.READ_S,
            )
        try:
            return call(self._client)
        except ClientAuthenticationError:
            raise
        except (DecodeError, KeyError, TypeError, ValueError) as error:
            raise GroupError(f"Azure's answer can't be read: {one_line(error)}; it is not used") from None
        except HttpResponseError as error:
            raise _refused(error) from None
        except AzureError as error:
            raise LostError("Azure", error) from None


def _every(what: str, listed: Any) -> Iterator[Any]:
    each = listed.by_page()
    for page in pages(f"Azure's list of {what}", each, lambda _: each.continuation_token):
        yield from page


def _refused(error: HttpResponseError) -> GroupError:
    status = error.status_code or 0
    details = error.error
    code, message = (details.code or "", details.message or "") if details else ("", one_line(error.message))
    if status == _THROTTLED:
        return throttled("Azure", f"{code}: {message}")
    if status >= 500:
        return LostError("Azure", f"HTTP {status} {code}: {message}")
    request: Any = error.response.request if error.response is not None else None
    request_line = f"{request.method} {urlsplit(request.url).path}" if request is not None else "a request"
    return AzureRefusedError(request_line, code, message, status)


def _instance(vm: Any) -> Instance:
    statuses = (vm.instance_view.statuses if vm.instance_view else None) or ()
    codes = {each.code for each in statuses}
    error = next((_text(each) for each in statuses if each.level == "Error"), "")
    state: Literal["booting", "running", "leaving"] = "running"
    if vm.provisioning_state == "Deleting" or codes & {"PowerState/deallocating", "PowerState/deallocated"}:
        state = "leaving"
    elif vm.provisioning_state in ("Creating", "Failed") or codes & {"PowerState/starting"}:
        state = "booting"
    return Instance(
        str(vm["instanceId"]),
        f"azure://{vm['id']}".lower(),
        next(iter(vm.zones or ()), ""),
        state,
        vm.time_created,
        error if state == "booting" else "",
    )


def _text(status: Any) -> str:
    """Return a status in words: of ``ProvisioningState/failed/AllocationFailed`` the last part, and the message."""
    return f"{(status.code or '').rpartition('/')[2]}: {status.message or ''}"
