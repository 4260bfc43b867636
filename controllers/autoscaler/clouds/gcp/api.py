"""The few Compute Engine methods that the autoscaler needs, through google-cloud-compute.

Operations are not awaited: a group grows for minutes, and the next pass reads the result. Requests that change a group carry a
`requestId`, so that Google executes a repeated request only once.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import requests
from google.api_core.exceptions import Forbidden, GoogleAPICallError, RetryError, ServerError, TooManyRequests
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError
from google.cloud import compute_v1
from google.protobuf.json_format import ParseError

from clients import clouds
from clients.clouds import LoginError, one_line
from clients.clouds.gcp_login import find
from controllers.autoscaler.clouds.common import LostError, pages, throttled
from controllers.autoscaler.groups import GroupError

_PAGE = 500
_AGAIN_S = 30
"""Seconds for which a request is retried."""
_TOO_FAST = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_BOOTING = frozenset({"CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING", "VERIFYING"})
_LEAVING = frozenset({"DELETING", "ABANDONING", "STOPPING", "SUSPENDING"})
_GOING = frozenset({"STOPPING", "STOPPED", "TERMINATED", "SUSPENDING", "SUSPENDED"})
"""Values of currentAction and instanceStatus; see "ManagedInstance"."""
_ADVICE = (
    "on machines and in pods of Google Cloud, give the machine's or the pod's service account the role of "
    "docs/gcp-role-autoscaler.yaml; elsewhere run `gcloud auth application-default login`, or set "
    "GOOGLE_APPLICATION_CREDENTIALS to the file of a key"
)
T = TypeVar("T")


@dataclass(frozen=True)
class Zonal:
    """One group of a pool. size: targetSize. template: see `short`."""

    zone: str
    name: str
    size: int
    template: str


@dataclass(frozen=True)
class Member:
    """One machine of a group. error: why the last attempt to create it failed."""

    name: str
    state: Literal["booting", "running", "leaving"]
    error: str


def _may_repeat(error: BaseException) -> bool:
    again = (TooManyRequests, ServerError, requests.ConnectionError, requests.Timeout)
    return isinstance(error, again) or _is_too_fast(error)


class Compute:
    """Client of Compute Engine. Looks for credentials at the first request. Errors: every method raises GroupError."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._project = ""
        again = Retry(predicate=_may_repeat, initial=1, maximum=8, multiplier=2, timeout=_AGAIN_S)
        self._limits: dict[str, Any] = {"timeout": clouds.READ_S, "retry": again}
        self._managers: Any = None
        self._templates: Any = None

    @property
    def project(self) -> str:
        self._connect()
        return self._project

    def templates(self) -> dict[str, dict[str, str]]:
        """Return link of a template in the region (see `short`) -> labels of its machines."""
        request = {"project": self.project, "region": self._region, "max_results": _PAGE}
        return self._ask(
            lambda: {
                short(each.self_link): dict(each.properties.labels)
                for each in _every("templates", self._templates.list(request, **self._limits), "items")
            }
        )

    def groups(self, zone: str) -> list[Zonal]:
        """Return all groups in a zone."""
        request = {"project": self.project, "zone": zone, "max_results": _PAGE}
        return self._ask(
            lambda: [
                Zonal(
                    zone,
                    each.name,
                    each.target_size,
                    short(each.instance_template or each.versions[0].instance_template),
                )
                for each in _every(f"groups in {zone}", self._managers.list(request, **self._limits), "items")
            ]
        )

    def members(self, zonal: Zonal) -> list[Member]:
        """Return all machines of a group."""
        request = {**self._of(zonal), "max_results": _PAGE}
        return self._ask(
            lambda: [
                _member(each)
                for each in _every(
                    f"machines of {zonal.name}",
                    self._managers.list_managed_instances(request, **self._limits),
                    "managed_instances",
                )
            ]
        )

    def resize(self, zonal: Zonal, size: int) -> None:
        request = {**self._of(zonal), "size": size, "request_id": str(uuid.uuid4())}
        self._change(lambda: self._managers.resize_unary(request, **self._limits))

    def delete(self, zonal: Zonal, names: Sequence[str]) -> None:
        """Delete machines, and lower the group's size by as many. Names that are gone are skipped."""
        body = {
            "instances": [f"zones/{zonal.zone}/instances/{name}" for name in names],
            "skip_instances_on_validation_error": True,
        }
        request = {
            **self._of(zonal),
            "instance_group_managers_delete_instances_request_resource": body,
            "request_id": str(uuid.uuid4()),
        }
        self._change(lambda: self._managers.delete_instances_unary(request, **self._limits))

    def _of(self, zonal: Zonal) -> dict[str, object]:
        return {"project": self.project, "zone": zonal.zone, "instance_group_manager": zonal.name}

    def _connect(self) -> None:
        if self._managers is None:
            try:
                credentials, self._project = find(_ADVICE)
            except LoginError as error:
                raise GroupError(str(error)) from None
            self._templates = compute_v1.RegionInstanceTemplatesClient(credentials=credentials)
            self._managers = compute_v1.InstanceGroupManagersClient(credentials=credentials)

    def _change(self, call: Callable[[], compute_v1.Operation]) -> None:
        """Send a change. Its operation may already have failed in the first answer."""
        errors = self._ask(call).error.errors
        if errors:
            raise GroupError("; ".join(f"Google Cloud: {each.code}: {each.message}" for each in errors))

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except RetryError as error:
            raise _read(error.cause or error) from None
        except (GoogleAPICallError, GoogleAuthError, requests.RequestException) as error:
            raise _read(error) from None
        except (ParseError, AttributeError, IndexError) as error:
            raise GroupError(f"Google Cloud's answer can't be read: {one_line(error)}; it is not used") from None


def short(link: str) -> str:
    """Return a link without its server, because several servers are in use."""
    return re.sub(r"^.*?/projects/", "projects/", link)


def _every(what: str, listed: Any, key: str) -> Iterator[Any]:
    """Yield all items of a list. Errors: raises GroupError, also if Google reports that it left something out."""
    for page in pages(f"Google Cloud's list of {what}", listed.pages, lambda each: each.next_page_token):
        # Lists of machines have no warnings.
        warned = getattr(page, "warning", None)
        warning = warned.code if warned else ""
        if warning not in ("", "NO_RESULTS_ON_PAGE"):
            raise GroupError(f"Google Cloud left out part of its list of {what} ({warning}); the list is not used")
        yield from getattr(page, key)


def _read(error: BaseException) -> GroupError:
    if isinstance(error, TooManyRequests) or _is_too_fast(error):
        return throttled("Google Cloud", error)
    if isinstance(error, GoogleAuthError):
        return GroupError(f"there is no token for Google Cloud: {one_line(error)}; {_ADVICE}")
    if isinstance(error, GoogleAPICallError) and not isinstance(error, ServerError):
        code = next(iter(_reasons(error)), error.code)
        advice = "; the rights are in docs/gcp-role-autoscaler.yaml" if isinstance(error, Forbidden) else ""
        return GroupError(f"Google Cloud refuses a request: {code}: {one_line(error.message)}{advice}")
    return LostError("Google Cloud", error)


def _is_too_fast(error: BaseException) -> bool:
    """Whether Google throttles, which it may also report with 403."""
    return isinstance(error, Forbidden) and not _TOO_FAST.isdisjoint(_reasons(error))


def _reasons(error: GoogleAPICallError) -> list[str]:
    return [each["reason"] for each in error.errors if isinstance(each, dict) and each.get("reason")]


def _member(instance: compute_v1.ManagedInstance) -> Member:
    errors = instance.last_attempt.errors.errors
    error = "; ".join(dict.fromkeys(f"{each.code}: {each.message}" for each in errors))
    action, status = instance.current_action or "NONE", instance.instance_status
    state: Literal["booting", "running", "leaving"] = "running"
    if action in _LEAVING or (action == "NONE" and status in _GOING):
        state = "leaving"
    elif action in _BOOTING or status in ("PROVISIONING", "STAGING"):
        state = "booting"
    return Member(instance.name or instance.instance.rpartition("/")[2], state, error)
