"""The autoscaler's credentials at Azure: what its libraries find, and where."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from tests.scheduling.clouds.azure.support import groups, method_of
from tests.scheduling.clouds.door import Door, Request, Response, Trust, json_response
from tests.scheduling.clouds.fake_azure import EXPIRED, LOGIN, MANAGEMENT, METADATA, Microsoft, refused


def test_a_token_that_expired_early_is_replaced_once(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    pools = groups(koala)
    pools.read()
    microsoft.tokens.clear()
    microsoft.tokens.append("another's")
    assert pools.read()["cpu"].size == 4
    assert sum(each.path == "/a-tenant/oauth2/v2.0/token" for each in door.log) == 2
    door.faults = [lambda request: refused(401, "ExpiredAuthenticationToken", EXPIRED) if method_of(request) else None]
    with pytest.raises(GroupError, match="Azure refuses GET /subscriptions/.*: ExpiredAuthenticationToken: "):
        pools.read()


def test_a_wrong_secret_is_reported_with_the_way_out(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.secret = "another"
    with pytest.raises(GroupError, match="no token for Azure: .*AADSTS7000215.*az login"):
        groups(koala).read()


def test_without_a_subscription_the_error_says_how_to_find_one(
    koala: Cluster, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID")
    with pytest.raises(GroupError, match="ARM_SUBSCRIPTION_ID is not set; `az account list"):
        groups(koala).read()


def test_without_credentials_the_error_says_how_to_get_some(koala: Cluster, nobody: Door, pauses: list[float]) -> None:
    nobody.faults = [lambda request: "dead" if request.host == METADATA else None]
    with pytest.raises(GroupError, match="no token for Azure: DefaultAzureCredential .*az login"):
        groups(koala).read()


@pytest.mark.parametrize("prefix", ["AZURE", "ARM"])
def test_a_pod_authenticates_with_its_federated_token(
    koala: Cluster, microsoft: Microsoft, nobody: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    microsoft.secret = "e.y.J"
    file = tmp_path / "token"
    file.write_text("e.y.J")
    monkeypatch.setenv(f"{prefix}_CLIENT_ID", "a-client")
    monkeypatch.setenv(f"{prefix}_TENANT_ID", "a-tenant")
    named = "AZURE_FEDERATED_TOKEN_FILE" if prefix == "AZURE" else "ARM_OIDC_TOKEN_FILE_PATH"
    monkeypatch.setenv(named, str(file))
    assert groups(koala).read()["cpu"].size == 4


def test_the_librarys_own_variables_also_name_a_service_principal(
    koala: Cluster, nobody: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CLIENT_ID", "a-client"), ("CLIENT_SECRET", "a-secret"), ("TENANT_ID", "a-tenant")):
        monkeypatch.setenv(f"AZURE_{name}", value)
    assert groups(koala).read()["cpu"].size == 4


def test_half_a_service_principal_is_refused(koala: Cluster, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARM_TENANT_ID")
    with pytest.raises(
        GroupError, match="a secret, certificate or token file is set, but ARM_CLIENT_ID or ARM_TENANT_ID is not"
    ):
        groups(koala).read()


@pytest.mark.parametrize(
    "environment", [{"ARM_USE_MSI": "true", "ARM_CLIENT_ID": "an-identity"}, {"AZURE_CLIENT_ID": "an-identity"}, {}]
)
def test_a_machine_of_azure_has_its_managed_identity(
    koala: Cluster,
    microsoft: Microsoft,
    nobody: Door,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    named: list[str] = []

    def metadata(request: Request) -> Response | None:
        if request.host != METADATA:
            return None
        path, _, query = request.path.partition("?")
        assert path == "/metadata/identity/oauth2/token"
        if request.headers.get("metadata") != "true":
            # The library probes the server before it requests a token.
            return json_response(
                400, {"error": "invalid_request", "error_description": "Required metadata header not specified"}
            )
        form = dict(urllib.parse.parse_qsl(query))
        assert form["resource"].rstrip("/") == f"https://{MANAGEMENT}"
        named.append(form.get("client_id", ""))
        token = microsoft.new_token()
        return json_response(200, {**token, "expires_in": str(token["expires_in"]), "resource": form["resource"]})

    nobody.faults = [metadata]
    assert groups(koala).read()["cpu"].size == 4
    assert named == ["an-identity" if environment else ""]


def test_a_login_of_the_azure_cli_provides_a_token(
    koala: Cluster,
    microsoft: Microsoft,
    nobody: Door,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],
) -> None:
    nobody.faults = [lambda request: "dead" if request.host == METADATA else None]
    token = {"accessToken": microsoft.new_token()["access_token"], "expires_on": 4102444800, "tokenType": "Bearer"}
    program = tmp_path / "az"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(token)}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert groups(koala).read()["cpu"].size == 4


def test_the_certificate_of_a_service_principal_signs_for_a_token(
    koala: Cluster, microsoft: Microsoft, nobody: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Trust
) -> None:
    key = rsa.generate_private_key(65537, 2048)
    file = tmp_path / "principal.pem"
    file.write_bytes(trust.identity("principal", key))
    for name, value in (("CLIENT_ID", "a-client"), ("TENANT_ID", "a-tenant"), ("CLIENT_CERTIFICATE_PATH", str(file))):
        monkeypatch.setenv(f"ARM_{name}", value)

    def token(request: Request) -> Response | None:
        if not request.path.endswith("/token"):
            return None
        assertion = dict(urllib.parse.parse_qsl(request.body.decode()))["client_assertion"]
        end = f"https://{LOGIN}/a-tenant/oauth2/v2.0/token"
        claims = jwt.decode(assertion, key.public_key(), algorithms=["PS256", "RS256"], audience=end)
        assert claims["iss"] == "a-client"
        return json_response(200, microsoft.new_token())

    nobody.faults = [token]
    assert groups(koala).read()["cpu"].size == 4
