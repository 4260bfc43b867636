"""Who the autoscaler is to Google Cloud ("How Application Default Credentials works"), and in which project."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cluster.reading import UnreadableError, read_text
from scheduling.autoscaler.clouds.bearer import Bearers, Token
from scheduling.autoscaler.clouds.http import Http, Request
from scheduling.autoscaler.clouds.identity import NoneHereError, from_program, never_throttled, of_machine, told_json
from scheduling.autoscaler.groups import GroupError

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_METADATA = "metadata.google.internal"
_PROJECT = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
_TOKENS_LIVE_S = 3600
_ADVICE = (
    "on machines and in pods of Google Cloud, give the machine's or the pod's service account the role of "
    "docs/gcp-role-autoscaler.yaml; elsewhere run `gcloud auth application-default login`, or set "
    "GOOGLE_APPLICATION_CREDENTIALS to the file of a key"
)
_COMMAND = ["gcloud", "auth", "application-default", "print-access-token", "--format", "json"]


class GcpBearers(Bearers):
    """project: the one that the environment, the key or the machine names."""

    def __init__(self, http: Http, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._http = http
        self._environment = environment
        self._metadata = f"http://{environment.get('GCE_METADATA_HOST') or _METADATA}/computeMetadata/v1"

    def project(self) -> str:
        """GroupError where nothing names one."""
        found = next((self._environment[name] for name in _PROJECT if self._environment.get(name)), "")
        found = found or self.token().project
        if not found:
            raise GroupError(f"no project: set {_PROJECT[0]} to the ID of the cluster's")
        return found

    def _new(self) -> Token:
        for way in (self._given, self._key, self._machine, self._program):
            try:
                return way()
            except NoneHereError:
                continue
        raise GroupError(f"there are no credentials for Google Cloud: {_ADVICE}")

    def _given(self) -> Token:
        token = self._environment.get("GOOGLE_OAUTH_ACCESS_TOKEN", "")
        if not token:
            raise NoneHereError
        return Token.lasting(token, _TOKENS_LIVE_S)

    def _key(self) -> Token:
        text = self._environment.get("GOOGLE_CREDENTIALS", "")
        if not text.lstrip().startswith("{"):
            text = self._file(text or self._environment.get("GOOGLE_APPLICATION_CREDENTIALS", ""))
        try:
            key = json.loads(text)
            if key["type"] == "service_account":
                form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": _assertion(key)}
            elif key["type"] == "authorized_user":
                names = ("client_id", "client_secret", "refresh_token")
                form = {"grant_type": "refresh_token", **{name: key[name] for name in names}}
            else:
                raise GroupError(
                    "credentials of this type are not read here; use a service account of the machine or the pod"
                )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise GroupError(f"the key for Google Cloud can't be read: it is no key in JSON; {_ADVICE}") from None
        url = key.get("token_uri", "https://oauth2.googleapis.com/token")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request = Request("POST", url, headers, urlencode(form).encode())
        told = told_json(self._http.ask(lambda: request, never_throttled), url, _ADVICE)
        return Token.lasting(told["access_token"], told["expires_in"], key.get("project_id", ""))

    def _file(self, named: str) -> str:
        folder = self._environment.get("CLOUDSDK_CONFIG") or f"{self._environment.get('HOME', '/')}/.config/gcloud"
        file = Path(named) if named else Path(folder) / "application_default_credentials.json"
        try:
            return read_text(file)
        except UnreadableError as error:
            if named:
                raise GroupError(f"the key for Google Cloud: {error}; {_ADVICE}") from None
            raise NoneHereError from None

    def _machine(self) -> Token:
        def told(key: str) -> bytes:
            request = Request("GET", f"{self._metadata}/{key}", {"Metadata-Flavor": "Google"})
            return of_machine(self._http, lambda: request).body

        found = json.loads(told("instance/service-accounts/default/token"))
        return Token.lasting(found["access_token"], found["expires_in"], told("project/project-id").decode())

    def _program(self) -> Token:
        told = from_program(_COMMAND, self._environment)
        return Token.lasting(told["token"], _TOKENS_LIVE_S)


def _assertion(key: Mapping[str, Any]) -> str:
    """ "Using OAuth 2.0 for Server to Server Applications": a JWT, signed with RS256."""
    now = int(time.time())
    claims = {
        "iss": key["client_email"],
        "scope": _SCOPE,
        "aud": key["token_uri"],
        "iat": now,
        "exp": now + _TOKENS_LIVE_S,
    }
    head = {"alg": "RS256", "typ": "JWT", "kid": key.get("private_key_id", "")}
    text = b".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
    private = serialization.load_pem_private_key(str(key["private_key"]).encode(), None)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise TypeError("private_key is not of RSA")
    return (text + b"." + _base64(private.sign(text, padding.PKCS1v15(), hashes.SHA256()))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
