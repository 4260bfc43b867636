"""Who the autoscaler is to Google Cloud, by google-auth, and in which project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.oauth2 import credentials as oauth
from google.oauth2 import service_account

from controllers.autoscaler.clouds.common import one_line
from controllers.autoscaler.groups import GroupError

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_PROJECT = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
ADVICE = (
    "on machines and in pods of Google Cloud, give the machine's or the pod's service account the role of "
    "docs/gcp-role-autoscaler.yaml; elsewhere run `gcloud auth application-default login`, or set "
    "GOOGLE_APPLICATION_CREDENTIALS to the file of a key"
)


def found() -> tuple[Credentials, str]:
    """Credentials and the project. GroupError where one is missing, with the ways to it.

    The variables of the stack's provider come first (GOOGLE_OAUTH_ACCESS_TOKEN, GOOGLE_CREDENTIALS), then application default
    credentials.
    """
    try:
        credentials, project = _found()
    except (GoogleAuthError, ValueError, OSError) as error:
        raise GroupError(f"there is no token for Google Cloud: {one_line(error)}; {ADVICE}") from None
    project = next((os.environ[name] for name in _PROJECT if os.environ.get(name)), project)
    if not project:
        raise GroupError(f"no project: set {_PROJECT[0]} to the ID of the cluster's")
    return credentials, project


def _found() -> tuple[Credentials, str]:
    token, key = (os.environ.get(f"GOOGLE_{name}", "") for name in ("OAUTH_ACCESS_TOKEN", "CREDENTIALS"))
    if token:
        return oauth.Credentials(token), ""
    if not key:
        credentials, project = google.auth.default(scopes=_SCOPES)
        return credentials, project or ""
    told = json.loads(key if key.lstrip().startswith("{") else Path(key).read_text(encoding="utf-8"))
    if told.get("type") == "authorized_user":
        return oauth.Credentials.from_authorized_user_info(told, scopes=_SCOPES), ""
    # Of another type: ValueError. Federations of workloads have their configuration in GOOGLE_APPLICATION_CREDENTIALS.
    return service_account.Credentials.from_service_account_info(told, scopes=_SCOPES), told.get("project_id", "")
