"""Credentials and project for Google Cloud, through google-auth."""

from __future__ import annotations

import json
import os
from pathlib import Path

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.oauth2 import credentials as oauth
from google.oauth2 import service_account

from clients.clouds import LoginError, one_line

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_PROJECT = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")


def find(advice: str) -> tuple[Credentials, str]:
    """Return (credentials, project). Errors: raises LoginError, which ends with the advice, if one is missing.

    The variables of the stack's provider (GOOGLE_OAUTH_ACCESS_TOKEN, GOOGLE_CREDENTIALS) precede application default credentials.
    """
    try:
        credentials, project = _credentials()
    except (GoogleAuthError, ValueError, OSError) as error:
        raise LoginError(f"there is no token for Google Cloud: {one_line(error)}; {advice}") from None
    project = next((os.environ[name] for name in _PROJECT if os.environ.get(name)), project)
    if not project:
        raise LoginError(f"no project is set: set {_PROJECT[0]} to the ID of the cluster's project")
    return credentials, project


def _credentials() -> tuple[Credentials, str]:
    token, key = (os.environ.get(f"GOOGLE_{name}", "") for name in ("OAUTH_ACCESS_TOKEN", "CREDENTIALS"))
    if token:
        return oauth.Credentials(token), ""
    if not key:
        credentials, project = google.auth.default(scopes=_SCOPES)
        return credentials, project or ""
    account = json.loads(key if key.lstrip().startswith("{") else Path(key).read_text(encoding="utf-8"))
    if account.get("type") == "authorized_user":
        return oauth.Credentials.from_authorized_user_info(account, scopes=_SCOPES), ""
    # Other types raise ValueError. Workload identity federation is configured in GOOGLE_APPLICATION_CREDENTIALS.
    return service_account.Credentials.from_service_account_info(account, scopes=_SCOPES), account.get("project_id", "")
