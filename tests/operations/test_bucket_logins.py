"""Whose credentials open a bucket: those of its own account, and none for an emulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from obstore.store import AzureStore, GCSStore

from clients.buckets import open_bucket
from cluster.outputs import BucketOutput

AZURE = BucketOutput(kind="azure", account="gibbonrecords", name="records")
GOOGLE = BucketOutput(kind="gcs", name="records")


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)


def azure(environment: dict[str, str]) -> AzureStore:
    store = open_bucket(AZURE, environment=environment)
    assert isinstance(store, AzureStore)
    return store


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AZURE_STORAGE_KEY", "b2YtdGhlLXN0YXRl"), ("AZURE_STORAGE_SAS_TOKEN", "sv=2023-11-03&sig=x")],
)
def test_what_opens_the_account_of_the_state_is_not_shown_to_another_account(variable: str, value: str) -> None:
    environment = {"AZURE_STORAGE_ACCOUNT": "apesstate", variable: value}
    assert azure(environment).credential_provider is not None
    environment["AZURE_STORAGE_ACCOUNT"] = AZURE.account
    assert azure(environment).credential_provider is None


def test_a_token_comes_from_the_login_of_the_azure_cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer = json.dumps({"accessToken": "of-mia", "expires_on": 1796000000})
    (tmp_path / "az").write_text(f"#!/bin/sh\necho \"$*\" > {tmp_path}/asked\necho '{answer}'\n")
    (tmp_path / "az").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    provider = azure({}).credential_provider
    assert provider is not None
    token: Any = provider()
    assert token == {"token": "of-mia", "expires_at": token["expires_at"]}
    assert token["expires_at"].timestamp() == 1796000000
    asked = (tmp_path / "asked").read_text()
    assert asked == "account get-access-token --resource https://storage.azure.com --output json\n"


def test_without_the_azure_cli_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    provider = azure({}).credential_provider
    assert provider is not None
    with pytest.raises(ValueError, match="install it and run az login, or set ARM_CLIENT_ID"):
        provider()


@pytest.mark.parametrize("named", ["127.0.0.1:4443", "http://127.0.0.1:4443/"])
def test_an_emulator_of_cloud_storage_gets_no_credential(named: str) -> None:
    store = open_bucket(GOOGLE, environment={"STORAGE_EMULATOR_HOST": named, "GOOGLE_OAUTH_ACCESS_TOKEN": "of-mia"})
    assert isinstance(store, GCSStore)
    assert "of-mia" not in str(store.config)
    assert store.config["base_url"] == "http://127.0.0.1:4443"
