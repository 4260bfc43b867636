"""One autoscaler at a time: a Lease in the cluster, taken and renewed on a condition.

The client library's own election (kubernetes.leaderelection) knows ConfigMaps and no Leases, and ends its process by itself.
All times are the API server's, from its Date header, so no clock need be right.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.access import API_TIMEOUT_S

NAME, NAMESPACE = "menagerie-autoscaler", "kube-system"
LASTS_S = 30
"""From the last renewal until somebody else may take it. A holder that could not renew for two thirds of that stops acting."""


class HeldError(Exception):
    """Another autoscaler acts on the cluster; the text says who, and since when."""


class Lease:
    """holder: who asks for it; unique to a process."""

    def __init__(self, api: client.ApiClient, holder: str, lasts_s: int = LASTS_S) -> None:
        self._leases = client.CoordinationV1Api(api)
        self._holder, self._lasts_s = holder, lasts_s
        self._over = threading.Event()
        self._renewed: float | None = None

    def held(self) -> bool:
        """Whether it is surely ours, for a third of its time at least."""
        return self._renewed is not None and time.monotonic() - self._renewed < self._lasts_s * 2 / 3

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold it for the length of a block. HeldError where another does."""
        began = time.monotonic()
        self._take()
        self._renewed = began
        thread = threading.Thread(target=self._renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            if self.held():
                self._give_up()

    def _take(self) -> None:
        found, now = self._read()
        if found is None:
            try:
                self._leases.create_namespaced_lease(NAMESPACE, self._body(None, now), _request_timeout=API_TIMEOUT_S)
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                raise HeldError("another autoscaler has just begun on this cluster") from None
            return
        spec = found.spec
        other = spec.holder_identity and spec.holder_identity != self._holder
        age_s = (now - spec.renew_time).total_seconds() if spec.renew_time else float("inf")
        if other and age_s <= (spec.lease_duration_seconds or self._lasts_s):
            raise HeldError(
                f"{spec.holder_identity} acts on this cluster, and said so {max(age_s, 0):.0f} s ago; end it first, or wait "
                f"{self._lasts_s} s if it is dead"
            )
        if not self._write(found, now):
            raise HeldError("another autoscaler has just begun on this cluster")

    def _renew(self) -> None:
        """Until it is over, or lost."""
        while not self._over.wait(self._lasts_s / 6):
            began = time.monotonic()
            try:
                found, now = self._read()
                if found is None or found.spec.holder_identity != self._holder or not self._write(found, now):
                    self._renewed = None
                    return
            except (ApiException, urllib3.exceptions.HTTPError):
                continue  # it ends by itself where this goes on
            self._renewed = began

    def _give_up(self) -> None:
        try:
            found, now = self._read()
            if found is not None and found.spec.holder_identity == self._holder:
                self._write(found, now, holder="")
        except (ApiException, urllib3.exceptions.HTTPError):
            return  # it ends by itself

    def _read(self) -> tuple[Any, datetime]:
        try:
            found, _, headers = self._leases.read_namespaced_lease_with_http_info(
                NAME, NAMESPACE, _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found, headers = None, error.headers
        # The client leaves a fraction of nothing out, and the API takes no MicroTime without one.
        return found, parsedate_to_datetime(headers["Date"]).astimezone(UTC).replace(microsecond=1)

    def _write(self, found: Any, now: datetime, holder: str | None = None) -> bool:
        """Whether nobody wrote in between."""
        try:
            self._leases.replace_namespaced_lease(
                NAME, NAMESPACE, self._body(found, now, holder), _request_timeout=API_TIMEOUT_S
            )
        except ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def _body(self, found: Any, now: datetime, holder: str | None = None) -> client.V1Lease:
        mine = found is not None and found.spec.holder_identity == self._holder
        return client.V1Lease(
            metadata=client.V1ObjectMeta(
                name=NAME, namespace=NAMESPACE, resource_version=found.metadata.resource_version if found else None
            ),
            spec=client.V1LeaseSpec(
                holder_identity=self._holder if holder is None else holder,
                lease_duration_seconds=self._lasts_s,
                acquire_time=found.spec.acquire_time if mine else now,
                renew_time=now,
                lease_transitions=((found.spec.lease_transitions or 0) + (not mine)) if found else 0,
            ),
        )
