"""Opens a cluster's buckets with the key that its stack keeps, else with the operator's own cloud credentials."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from obstore.store import AzureStore, GCSStore, S3Store

from cluster.outputs import BucketOutput

if TYPE_CHECKING:
    from obstore.store import AzureBearerToken, ClientConfig, ObjectStore, RetryConfig, S3Credential

TIMEOUT_S = 10
_CLIENT: ClientConfig = {"connect_timeout": timedelta(seconds=3)}
_RETRY: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=5)}
_NAMED = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)
"""Environment variables whose credentials object_store finds itself."""


def open_bucket(
    bucket: BucketOutput,
    key: str = "",
    ca_pem: str = "",
    environment: Mapping[str, str] = os.environ,
    timeout_s: float = TIMEOUT_S,
) -> ObjectStore:
    """Return a store for the bucket's objects. Sends no request yet; a request takes `timeout_s` at most.

    key: JSON with ``access_key_id`` and ``secret_access_key``; "" for the environment's credentials, which are looked
    up in the same places as the cloud's Pulumi provider does. ca_pem: a CA to trust for a bucket's own server.
    """
    client: ClientConfig = {**_CLIENT, "timeout": timedelta(seconds=timeout_s)}
    if bucket.kind == "azure":
        named: dict[str, Any] = dict(_azure(bucket.account, environment))
        return AzureStore(bucket.name, account_name=bucket.account, client_options=client, retry_config=_RETRY, **named)
    if bucket.kind == "gcs":
        named = dict(_google(environment))
        client["allow_http"] = named.get("base_url", "").startswith("http://")
        return GCSStore(bucket.name, client_options=client, retry_config=_RETRY, **named)
    named = {"region": bucket.region or "us-east-1"}
    if bucket.endpoint:
        named["endpoint"] = bucket.endpoint
        client["allow_http"] = bucket.endpoint.startswith("http://")
        if ca_pem and not client["allow_http"]:
            client["root_certificate"] = ca_pem
    if key:
        named |= {name: json.loads(key)[name] for name in ("access_key_id", "secret_access_key")}
    elif not any(environment.get(name) for name in _NAMED) and shutil.which("aws", path=environment.get("PATH")):
        named["credential_provider"] = _aws_cli
    return S3Store(bucket.name, client_options=client, retry_config=_RETRY, **named)


def _aws_cli() -> S3Credential:
    """Return the credentials of a profile. Only AWS's own programs can (`aws configure export-credentials`, format
    "process")."""
    command = ["aws", "configure", "export-credentials", "--format", "process"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        raise ValueError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
    credentials = json.loads(done.stdout)
    expires = credentials.get("Expiration")
    return {
        "access_key_id": credentials["AccessKeyId"],
        "secret_access_key": credentials["SecretAccessKey"],
        "token": credentials.get("SessionToken"),
        "expires_at": datetime.fromisoformat(expires) if expires else None,
    }


def _azure(account: str, environment: Mapping[str, str]) -> dict[str, object]:
    """Translate Pulumi's names (ARM_*) to object_store's.

    AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN are of the account that AZURE_STORAGE_ACCOUNT names (as for the engine and
    the Azure CLI), which may be that of the state. object_store would use the latter for every account, so the login that
    is meant here is given as a function.
    """
    given = {
        "client_id": environment.get("ARM_CLIENT_ID"),
        "tenant_id": environment.get("ARM_TENANT_ID"),
        "client_secret": environment.get("ARM_CLIENT_SECRET"),
        "federated_token_file": environment.get("ARM_OIDC_TOKEN_FILE_PATH"),
    }
    credentials: dict[str, object] = {name: value for name, value in given.items() if value}
    is_automatic = any(
        environment.get(name)
        for name in ("ARM_USE_MSI", "AZURE_CLIENT_ID", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_USE_EMULATOR")
    )
    if credentials or is_automatic:
        return credentials
    if environment.get("AZURE_STORAGE_ACCOUNT") == account:
        if key := environment.get("AZURE_STORAGE_KEY"):
            return {"account_key": key}
        if environment.get("AZURE_STORAGE_SAS_TOKEN"):
            return {}
    return {"credential_provider": _azure_cli}


def _azure_cli() -> AzureBearerToken:
    """Return a token of the Azure CLI's login ("az account get-access-token")."""
    command = ["az", "account", "get-access-token", "--resource", "https://storage.azure.com", "--output", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except FileNotFoundError:
        raise ValueError(
            "there is no Azure CLI on PATH to ask for a token: install it and run az login, or set ARM_CLIENT_ID"
        ) from None
    if done.returncode:
        raise ValueError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
    token = json.loads(done.stdout)
    expires = token.get("expires_on")
    return {"token": token["accessToken"], "expires_at": datetime.fromtimestamp(int(expires), UTC) if expires else None}


def _google(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials that Pulumi's variables name. object_store finds application default credentials itself.

    STORAGE_EMULATOR_HOST names an emulator of Cloud Storage, as for Google's own libraries and the engine. It gets no credential.
    """
    if emulator := environment.get("STORAGE_EMULATOR_HOST"):
        url = emulator if "://" in emulator else f"http://{emulator}"
        return {"base_url": url.rstrip("/"), "bearer_token": "of-nobody"}
    if token := environment.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return {"bearer_token": token}
    key = environment.get("GOOGLE_CREDENTIALS", "")
    return {} if not key else {"service_account_key" if key.lstrip().startswith("{") else "service_account": key}
