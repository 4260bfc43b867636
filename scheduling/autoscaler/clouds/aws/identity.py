"""Who the autoscaler is to AWS: "Standardized credential providers" of the AWS SDKs and Tools Reference Guide, in their order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

from cluster.reading import UnreadableError, read_text
from scheduling.autoscaler.clouds.aws.signing import Credentials
from scheduling.autoscaler.clouds.http import Http, Request
from scheduling.autoscaler.clouds.identity import (
    EARLY_S,
    NoneHereError,
    from_program,
    never_throttled,
    of_machine,
    told_json,
)
from scheduling.autoscaler.groups import GroupError

_COMMAND = ["aws", "configure", "export-credentials", "--format", "process"]
_METADATA = "http://169.254.169.254"
_ADVICE = (
    "in a pod, give its service account a role (AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or EKS's Pod Identity); "
    "elsewhere run `aws configure sso` and set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the rights "
    "are in docs/aws-policy-autoscaler.json"
)


class Identity:
    """Credentials, kept until shortly before they end. metadata: of the machine."""

    def __init__(self, http: Http, environment: Mapping[str, str], region: str, metadata: str = _METADATA) -> None:
        self._http = http
        self._environment = environment
        self._region = region
        self._metadata = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata).rstrip("/")
        self._kept: Credentials | None = None

    def credentials(self) -> Credentials:
        """GroupError where there are none, with the ways to some."""
        kept = self._kept
        if kept and (kept.expires is None or kept.expires - datetime.now(UTC) > timedelta(seconds=EARLY_S)):
            return kept
        for way in (self._named, self._web, self._container, self._program, self._machine):
            try:
                self._kept = way()
            except NoneHereError:
                continue
            return self._kept
        raise GroupError(f"there are no credentials for AWS: {_ADVICE}")

    def forget(self) -> None:
        """They were refused."""
        self._kept = None

    def _named(self) -> Credentials:
        key, secret = (self._environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        if not key and not secret:
            raise NoneHereError
        if not key or not secret:
            raise GroupError("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set the other too, or none")
        return Credentials(key, secret, self._environment.get("AWS_SESSION_TOKEN", ""))

    def _web(self) -> Credentials:
        """ "AssumeRoleWithWebIdentity" of STS: by the token of a service account; not signed."""
        file, role = (self._environment.get(f"AWS_{name}", "") for name in ("WEB_IDENTITY_TOKEN_FILE", "ROLE_ARN"))
        if not file or not role:
            raise NoneHereError
        try:
            token = read_text(Path(file)).strip()
        except UnreadableError as error:
            raise GroupError(f"AWS_WEB_IDENTITY_TOKEN_FILE: {error}") from None
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": self._environment.get("AWS_ROLE_SESSION_NAME", "menagerie-autoscaler"),
            "WebIdentityToken": token,
        }
        url = self._environment.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{self._region}.amazonaws.com"
        headers = {"content-type": "application/x-www-form-urlencoded"}
        request = Request("POST", f"{url.rstrip('/')}/", headers, urlencode(form).encode())
        answer = self._http.ask(lambda: request, never_throttled)
        if answer.status != 200:
            raise GroupError(
                f"STS gives nobody the role {role}: HTTP {answer.status} {answer.text}; compare the role's trust policy "
                "with the issuer and the service account of the token"
            )
        found = {
            element.tag.rpartition("}")[2]: element.text or "" for element in ElementTree.fromstring(answer.body).iter()
        }
        return _of(found, "SecretAccessKey", "SessionToken")

    def _container(self) -> Credentials:
        """ "Container credential provider": EKS's Pod Identity, ECS."""
        url = self._environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
        if not url:
            raise NoneHereError
        file = self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
        try:
            token = read_text(Path(file)).strip() if file else ""
        except UnreadableError as error:
            raise GroupError(f"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {error}") from None
        token = token or self._environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        request = Request("GET", url, {"Authorization": token} if token else {})
        told = told_json(self._http.ask(lambda: request, never_throttled), "the container's agent", _ADVICE)
        return _of(told, "SecretAccessKey", "Token")

    def _program(self) -> Credentials:
        return _of(from_program(_COMMAND, self._environment), "SecretAccessKey", "SessionToken")

    def _machine(self) -> Credentials:
        """ "Retrieve security credentials from instance metadata", IMDSv2."""
        if self._environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise NoneHereError
        api = f"{self._metadata}/latest"
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        session = of_machine(self._http, lambda: Request("PUT", f"{api}/api/token", ttl))
        headers = {"X-aws-ec2-metadata-token": session.body.decode()}
        roles = f"{api}/meta-data/iam/security-credentials/"
        role = of_machine(self._http, lambda: Request("GET", roles, headers)).body.decode().strip()
        told = of_machine(self._http, lambda: Request("GET", roles + role, headers))
        return _of(json.loads(told.body), "SecretAccessKey", "Token")


def _of(told: Mapping[str, str], secret: str, token: str) -> Credentials:
    try:
        expires = told.get("Expiration")
        return Credentials(
            told["AccessKeyId"],
            told[secret],
            told.get(token) or "",
            datetime.fromisoformat(expires) if expires else None,
        )
    except (KeyError, ValueError) as error:
        raise GroupError(f"these credentials of AWS have no {error}; {_ADVICE}") from None
