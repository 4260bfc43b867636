"""Who the autoscaler is to Azure, by azure-identity: what the stack's provider is configured with, else the library's own chain."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from azure.core.credentials import AccessToken, AccessTokenInfo, SupportsTokenInfo, TokenRequestOptions
from azure.core.exceptions import AzureError
from azure.identity import (
    CertificateCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.common import one_line
from controllers.autoscaler.groups import GroupError

_ADVICE = (
    "in a pod, give its service account a workload identity (AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE); "
    "on a machine of Azure give it a managed identity; elsewhere run `az login`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET and "
    "ARM_TENANT_ID; the role is in docs/azure-role-autoscaler.json"
)
T = TypeVar("T")


def subscription() -> str:
    """GroupError where nothing names one."""
    found = _get("SUBSCRIPTION_ID")
    if not found:
        raise GroupError("ARM_SUBSCRIPTION_ID is not set; `az account list --output table` tells the ids")
    return found


class Credential:
    """A token credential of azure-core. GroupError where there is no token, with the ways to one."""

    def __init__(self) -> None:
        self._inner: SupportsTokenInfo = _inner()

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        found = self.get_token_info(*scopes)
        return AccessToken(found.token, found.expires_on)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        return _or_advice(lambda: self._inner.get_token_info(*scopes, options=options or {}))

    def close(self) -> None:
        self._inner.close()


def _inner() -> SupportsTokenInfo:
    """The variables of the stack's provider come first: who runs `up` with them is the same here."""
    limits: dict[str, Any] = {
        "connection_timeout": common.CONNECT_S,
        "read_timeout": common.READ_S,
        "retry_total": common.TRIES - 1,
    }
    client, tenant = _get("CLIENT_ID"), _get("TENANT_ID")
    secret, certificate, file = (
        os.environ.get(f"ARM_{name}", "")
        for name in ("CLIENT_SECRET", "CLIENT_CERTIFICATE_PATH", "OIDC_TOKEN_FILE_PATH")
    )
    if secret or certificate or file:
        if not client or not tenant:
            raise GroupError(f"ARM_CLIENT_ID or ARM_TENANT_ID is not set, and what proves who it is; {_ADVICE}")
        if secret:
            return ClientSecretCredential(tenant, client, secret, **limits)
        if certificate:
            password = os.environ.get("ARM_CLIENT_CERTIFICATE_PASSWORD") or None
            return _or_advice(lambda: CertificateCredential(tenant, client, certificate, password=password, **limits))
        return WorkloadIdentityCredential(tenant_id=tenant, client_id=client, token_file_path=file, **limits)
    if os.environ.get("ARM_USE_MSI", "").lower() in ("1", "true"):
        return ManagedIdentityCredential(client_id=client or None, **limits)
    return DefaultAzureCredential(**limits)


def _get(name: str) -> str:
    return os.environ.get(f"ARM_{name}") or os.environ.get(f"AZURE_{name}") or ""


def _or_advice(call: Callable[[], T]) -> T:
    try:
        return call()
    except (AzureError, ValueError, OSError) as error:
        # OSError: a token's file that is not there.
        raise GroupError(f"there is no token for Azure: {one_line(error, 600)}; {_ADVICE}") from None
