"""The autoscaler's credentials at AWS: what its libraries find, and where."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import SSOProvider
from botocore.tokens import SSOTokenProvider

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from tests.scheduling.clouds.aws.support import (
    REGION,
    SCALING,
    SSO,
    STS,
    form_of,
    groups,
    refusal,
)
from tests.scheduling.clouds.door import Door, Request, Response, json_response

ROLE = "arn:aws:iam::123456789012:role/autoscaler"


def keys(door: Door) -> list[str]:
    """Return the keys that signed the requests to Auto Scaling."""
    requests = [each for each in door.log if each.host == SCALING]
    return [re.findall(r"Credential=([^/]+)/", each.headers["authorization"])[0] for each in requests]


def test_without_credentials_the_error_says_how_to_get_some(small: Cluster, nobody: Door) -> None:
    with pytest.raises(GroupError, match="no credentials for AWS: in a pod, .*AWS_PROFILE.*"):
        groups(small).read()
    assert nobody.log == []


def test_half_a_key_is_refused(small: Cluster, nobody: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    with pytest.raises(GroupError, match="set both or neither"):
        groups(small).read()


def test_a_missing_profile_is_reported(small: Cluster, nobody: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "research")
    with pytest.raises(GroupError, match=r"The config profile \(research\) could not be found; .*aws configure sso"):
        groups(small).read()


def test_a_pod_authenticates_with_its_service_accounts_token(
    small: Cluster, nobody: Door, make_group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group("ours")
    token = tmp_path / "token"
    token.write_text("e.y.J")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    pools = groups(small)
    for _ in range(2):
        assert pools.read()["cpu"].size == 3
    forms = [form_of(each) for each in nobody.log if each.host == STS]
    assert [(each["Action"], each["WebIdentityToken"], each["RoleArn"]) for each in forms] == [
        ("AssumeRoleWithWebIdentity", "e.y.J", ROLE)
    ]
    assert all(key.startswith("ASIA") for key in keys(nobody))


def test_a_refused_role_is_reported_with_where_to_look(
    small: Cluster, nobody: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("e.y.J")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    message = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
    nobody.faults = [lambda request: refusal(403, "AccessDenied", message) if request.host == STS else None]
    with pytest.raises(GroupError, match=f"AWS refuses sts:AssumeRoleWithWebIdentity: .*{message}; .*trust policy"):
        groups(small).read()


SESSION = """
[profile research]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = autoscaler

[sso-session corp]
sso_region = eu-central-1
sso_start_url = https://corp.awsapps.com/start
"""


def logged_in(home: Path, until: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare a home as `aws sso login` does. The library determines its cache folder once, at import."""
    cache = home / ".aws/sso/cache"
    cache.mkdir(parents=True)
    for kind in (SSOProvider, SSOTokenProvider):
        monkeypatch.setattr(kind, "_SSO_TOKEN_CACHE_DIR", str(cache))
    monkeypatch.setenv("AWS_PROFILE", "research")
    (home / ".aws/config").write_text(SESSION)
    kept = {"startUrl": "https://corp.awsapps.com/start", "region": REGION, "accessToken": "a-session"}
    file = cache / f"{hashlib.sha1(b'corp').hexdigest()}.json"
    file.write_text(json.dumps({**kept, "expiresAt": until.strftime("%Y-%m-%dT%H:%M:%SZ")}))


def portal(request: Request) -> Response | None:
    """Answer "GetRoleCredentials" of IAM Identity Center."""
    if request.host != SSO:
        return None
    assert request.headers["x-amz-sso_bearer_token"] == "a-session"
    assert request.path == "/federation/credentials?role_name=autoscaler&account_id=123456789012"
    end = int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000)
    role = {"accessKeyId": "ASIASSO", "secretAccessKey": "s", "sessionToken": "t", "expiration": end}
    return json_response(200, {"roleCredentials": role})


def test_a_profile_has_the_role_of_an_sso_login(
    small: Cluster, nobody: Door, make_group: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group("ours")
    logged_in(home, datetime.now(UTC) + timedelta(hours=8), monkeypatch)
    nobody.faults = [portal]
    assert groups(small).read()["cpu"].size == 3
    assert set(keys(nobody)) == {"ASIASSO"}


def test_an_expired_sso_login_is_reported(
    small: Cluster, nobody: Door, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged_in(home, datetime.now(UTC) - timedelta(hours=1), monkeypatch)
    with pytest.raises(GroupError, match="AWS: .*(expired|sso login|refresh failed).*"):
        groups(small).read()


def test_a_machine_has_the_role_of_its_instance_profile(
    small: Cluster, nobody: Door, make_group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group("ours")
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    end = (datetime.now(UTC) + timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ASIAMACHINE", "SecretAccessKey": "s", "Token": "t"}

    def metadata(request: Request) -> Response | None:
        if request.host != "169.254.169.254":
            return None
        if request.path == "/latest/api/token":
            return Response(200, "a-session") if request.method == "PUT" else Response(405, "")
        if request.headers.get("x-aws-ec2-metadata-token") != "a-session":
            return Response(401, "")
        if request.path.endswith("/security-credentials/"):
            return Response(200, "workers")
        assert request.path == "/latest/meta-data/iam/security-credentials/workers"
        return json_response(200, {**kept, "Expiration": end, "LastUpdated": "2026-11-01T00:00:00Z"})

    nobody.faults = [metadata]
    assert groups(small).read()["cpu"].size == 3
    assert set(keys(nobody)) == {"ASIAMACHINE"}


def test_credentials_that_expired_early_are_looked_up_again_once(
    small: Cluster, nobody: Door, make_group: Any, home: Path
) -> None:
    """A program that writes short-lived keys to the profile has written new ones in the meantime."""
    make_group("ours")
    file = home / ".aws/credentials"
    file.parent.mkdir()
    expired = refusal(403, "ExpiredToken", "The security token included in the request is expired")

    def kept(key: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key=s\naws_session_token=t\n")

    kept("former")
    pools = groups(small)
    assert pools.read()["cpu"].size == 3
    kept("newer")
    nobody.faults = [lambda request: expired if "Credential=former/" in request.headers["authorization"] else None]
    assert pools.read()["cpu"].size == 3
    assert keys(nobody) == ["former", "former", "newer"]
    nobody.faults = [lambda _: expired]
    with pytest.raises(GroupError, match="ExpiredToken.*log in again"):
        pools.read()
    assert len(nobody.log) == 5
