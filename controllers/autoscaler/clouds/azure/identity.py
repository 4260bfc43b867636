"""The autoscaler's credentials at Azure, through azure-identity: those of the stack's provider, else the library's default chain."""

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
    """Return the subscription's ID. Errors: raises GroupError if none is set."""
    id_ = _get("SUBSCRIPTION_ID")
    if not id_:
        raise GroupError("ARM_SUBSCRIPTION_ID is not set; `az account list --output table` shows the IDs")
    return id_


class Credential:
    """A token credential for azure-core. Errors: raises GroupError, with ways to get a token, if there is none."""

    def __init__(self) -> None:
        self._inner: SupportsTokenInfo = _inner()

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        token = self.get_token_info(*scopes)
        return AccessToken(token.token, token.expires_on)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        return _or_advice(lambda: self._inner.get_token_info(*scopes, options=options or {}))

    def close(self) -> None:
        self._inner.close()


def _inner() -> SupportsTokenInfo:
    """Return the credential. Variables of the stack's provider come first, so that `up` and the autoscaler use the same identity."""
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
            raise GroupError(
                f"a secret, certificate or token file is set, but ARM_CLIENT_ID or ARM_TENANT_ID is not; {_ADVICE}"
            )
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
        # OSError: a missing token file.
        raise GroupError(f"there is no token for Azure: {one_line(error, 600)}; {_ADVICE}") from None
