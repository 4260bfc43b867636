"""A client for the objects of tenancy, which writes as its field manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clients.kube import Kube
from clients.objects import Place
from clients.rest import PATIENT_S
from controllers.tenancy.sync.objects import MANAGER

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def kube_of(api: ApiClient, more: Mapping[str, Place] | None = None) -> Kube:
    """Return the client. more: places of kinds whose version depends on the API server."""
    return Kube(api, MANAGER, more, timeout_s=PATIENT_S)
