"""Credentials for Azure, through azure-identity: those of the stack's provider, else the library's default chain."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
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

from clients import clouds
from clients.clouds import LoginError, one_line
from cluster.reading import UnreadableError, read_text

T = TypeVar("T")


def subscription() -> str:
    """Return the subscription's ID: from the environment, or the default of the Azure CLI. Errors: raises LoginError if there is none."""
    id_ = _get("SUBSCRIPTION_ID") or _of_cli()
    if not id_:
        raise LoginError("ARM_SUBSCRIPTION_ID is not set; `az account list --output table` shows the IDs")
    return id_


def _of_cli() -> str:
    """Return the subscription that `az account set` chose, "" for none."""
    folder = os.environ.get("AZURE_CONFIG_DIR") or Path(os.environ.get("HOME") or "~").expanduser() / ".azure"
    try:
        profile = json.loads(read_text(Path(folder, "azureProfile.json")))
    except (UnreadableError, ValueError):
        return ""
    listed = profile.get("subscriptions") if isinstance(profile, dict) else None
    chosen = [each for each in listed or () if isinstance(each, dict) and each.get("isDefault")]
    return str(chosen[0].get("id", "")) if chosen else ""


class Credential:
    """A token credential for azure-core. Errors: raises LoginError, which ends with the advice, if there is none."""

    def __init__(self, advice: str) -> None:
        self._advice = advice
        self._inner: SupportsTokenInfo = _inner(advice)

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        token = self.get_token_info(*scopes)
        return AccessToken(token.token, token.expires_on)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        return _or_advice(lambda: self._inner.get_token_info(*scopes, options=options or {}), self._advice)

    def close(self) -> None:
        self._inner.close()


def _inner(advice: str) -> SupportsTokenInfo:
    """Return the credential. Variables of the stack's provider come first, so that everything uses the identity of `up`."""
    limits: dict[str, Any] = {
        "connection_timeout": clouds.CONNECT_S,
        "read_timeout": clouds.READ_S,
        "retry_total": clouds.TRIES - 1,
    }
    client, tenant = _get("CLIENT_ID"), _get("TENANT_ID")
    secret, certificate, file = (
        os.environ.get(f"ARM_{name}", "")
        for name in ("CLIENT_SECRET", "CLIENT_CERTIFICATE_PATH", "OIDC_TOKEN_FILE_PATH")
    )
    if secret or certificate or file:
        if not client or not tenant:
            raise LoginError(
                f"a secret, certificate or token file is set, but ARM_CLIENT_ID or ARM_TENANT_ID is not; {advice}"
            )
        if secret:
            return ClientSecretCredential(tenant, client, secret, **limits)
        if certificate:
            password = os.environ.get("ARM_CLIENT_CERTIFICATE_PASSWORD") or None
            return _or_advice(
                lambda: CertificateCredential(tenant, client, certificate, password=password, **limits), advice
            )
        return WorkloadIdentityCredential(tenant_id=tenant, client_id=client, token_file_path=file, **limits)
    if os.environ.get("ARM_USE_MSI", "").lower() in ("1", "true"):
        return ManagedIdentityCredential(client_id=client or None, **limits)
    return DefaultAzureCredential(**limits)


def _get(name: str) -> str:
    return os.environ.get(f"ARM_{name}") or os.environ.get(f"AZURE_{name}") or ""


def _or_advice(call: Callable[[], T], advice: str) -> T:
    try:
        return call()
    except (AzureError, ValueError, OSError) as error:
        # OSError: a missing token file.
        raise LoginError(f"there is no token for Azure: {one_line(error, 600)}; {advice}") from None
