"""The autoscaler's credentials at Google Cloud: what its libraries find, and where."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from tests.scheduling.clouds.door import Door, Request, Response, json_response
from tests.scheduling.clouds.fake_google import COMPUTE, METADATA, TOKEN, TOKENS, Google
from tests.scheduling.clouds.gcp.support import groups


def test_without_credentials_the_error_says_how_to_get_some(gibbon: Cluster, nobody: Door, pauses: list[float]) -> None:
    with pytest.raises(GroupError, match="no token for Google Cloud: .*gcloud auth application-default login"):
        groups(gibbon).read()
    assert nobody.log == []


def test_an_expired_token_is_reported_with_the_way_to_a_new_one(gibbon: Cluster, google: Google, door: Door) -> None:
    google.tokens.clear()
    with pytest.raises(GroupError, match="no token for Google Cloud: .*refresh.*gcloud auth application-default login"):
        groups(gibbon).read()


def pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *form).decode()


@pytest.mark.parametrize("way", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "text"])
def test_a_service_accounts_key_signs_tokens(
    gibbon: Cluster, google: Google, nobody: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    private = rsa.generate_private_key(65537, 2048)
    key = {
        "type": "service_account",
        "project_id": "a-project",
        "private_key_id": "1",
        "client_email": "autoscaler@a-project.iam.gserviceaccount.com",
        "private_key": pem(private),
        "token_uri": f"https://{TOKENS}/token",
    }
    file = tmp_path / "key.json"
    file.write_text(json.dumps(key))
    monkeypatch.setenv(way if way != "text" else "GOOGLE_CREDENTIALS", str(file) if way != "text" else json.dumps(key))
    claims: list[dict[str, Any]] = []

    def signed(request: Request) -> Response | None:
        """The library requests no token if the service accepts "Self-signed JWTs"."""
        if request.host != COMPUTE:
            return None
        text = request.headers["authorization"].removeprefix("Bearer ")
        claims.append(jwt.decode(text, private.public_key(), algorithms=["RS256"], options={"verify_aud": False}))
        return google.answer(replace(request, headers={"authorization": f"Bearer {TOKEN}"}))

    nobody.faults = [signed]
    assert groups(gibbon).read()["cpu"].size == 2
    assert {each.host for each in nobody.log} == {COMPUTE}
    assert {(claim["iss"], claim["sub"], claim["scope"]) for claim in claims} == {
        (key["client_email"], key["client_email"], "https://www.googleapis.com/auth/cloud-platform")
    }


def test_an_application_login_gets_tokens_and_renews_them(
    gibbon: Cluster, google: Google, nobody: Door, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `gcloud auth application-default login`."""
    kept = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    folder = home / ".config/gcloud"
    folder.mkdir(parents=True)
    (folder / "application_default_credentials.json").write_text(json.dumps(kept))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "a-project")
    pools = groups(gibbon)
    assert pools.read()["cpu"].size == 2
    google.tokens.clear()
    google.tokens.add("another's")
    assert pools.read()["cpu"].size == 2
    logins = [dict(urllib.parse.parse_qsl(each.body.decode())) for each in nobody.log if each.host == TOKENS]
    assert [(each["grant_type"], each["refresh_token"]) for each in logins] == [("refresh_token", "c")] * 2


def test_a_revoked_login_is_reported(
    gibbon: Cluster, nobody: Door, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    (home / "adc.json").write_text(json.dumps(kept))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(home / "adc.json"))
    monkeypatch.setenv("GOOGLE_PROJECT", "a-project")
    gone = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    nobody.faults = [lambda request: json_response(400, gone) if request.host == TOKENS else None]
    with pytest.raises(GroupError, match="no token for Google Cloud: .*expired or revoked.*application-default login"):
        groups(gibbon).read()


def test_a_machine_of_google_has_its_own_credentials(
    gibbon: Cluster, google: Google, nobody: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def metadata(request: Request) -> Response | None:
        if request.host not in (METADATA, "127.0.0.1"):
            return None
        assert request.headers["metadata-flavor"] == "Google"
        flavor = {"Metadata-Flavor": "Google", "Content-Type": "application/text"}
        path = request.path.partition("?")[0]
        account = "/computeMetadata/v1/instance/service-accounts/default"
        match path.removesuffix("/"):
            case "":
                return Response(200, "computeMetadata/", flavor)
            case "/computeMetadata/v1/project/project-id":
                return Response(200, "a-project", flavor)
            case at if at == account:
                account_info = {
                    "aliases": ["default"],
                    "email": "workers@a-project.iam.gserviceaccount.com",
                    "scopes": [],
                }
                return Response(200, json.dumps(account_info), {**flavor, "Content-Type": "application/json"})
            case at if at.startswith("/computeMetadata/v1/instance/service-accounts/") and at.endswith("/token"):
                return Response(200, json.dumps(google.new_token()), {**flavor, "Content-Type": "application/json"})
        return Response(404, "", flavor)

    nobody.faults = [metadata]
    # The library connects to the server's address directly, without the proxy.
    monkeypatch.setenv("GCE_METADATA_IP", nobody.at)
    monkeypatch.setattr("google.auth.compute_engine._metadata._GCE_METADATA_HOST", nobody.at)
    assert groups(gibbon).read()["cpu"].size == 2
    assert {each.host for each in nobody.log} == {COMPUTE, "127.0.0.1"}
