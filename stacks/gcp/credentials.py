"""Checks for the credentials that `up` needs, before the provider complains in its own words.

Sources, by page title: "Google Cloud (GCP) Installation & Configuration" of the provider; "How Application Default
Credentials works".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LOGIN = ("gcloud auth application-default login", "export GOOGLE_PROJECT=<project>")
"""How a person logs in."""
PROJECT = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
_KEYS = ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON")
_TOKEN, _FILE = "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"
_OWN = "application_default_credentials.json"
_PRODUCT = Path("/sys/class/dmi/id/product_name")


def missing(environment: Mapping[str, str], product: Path = _PRODUCT) -> list[str]:
    """Return what is wrong and what to do about it; nothing if `up` can start. Reads files and does not use the network.

    product: the file that names this machine's product; Google's machines get credentials from their metadata service.
    """
    problems = [] if any(environment.get(name) for name in PROJECT) else [_no_project()]
    return problems + _credentials(environment, product)


def _no_project() -> str:
    return (
        f"no project is configured: set {PROJECT[0]} to the ID of the project for the cluster "
        "(gcloud projects list), or gcp:project in the stack's configuration"
    )


def _credentials(environment: Mapping[str, str], product: Path) -> list[str]:
    if environment.get(_TOKEN):
        return []
    for name in _KEYS:
        if text := environment.get(name):
            is_valid = text.lstrip().startswith("{") or Path(text).is_file()
            return [] if is_valid else [f"{name} is neither the JSON of a key nor an existing file: {text}"]
    if file := environment.get(_FILE):
        return [] if Path(file).is_file() else [f"{_FILE} names {file}, which does not exist"]
    if _own_file(environment).is_file() or _is_google(product):
        return []
    return [f"there are no credentials: run gcloud auth application-default login, or set {_FILE} to the file of a key"]


def _own_file(environment: Mapping[str, str]) -> Path:
    """Return where gcloud stores a person's login."""
    folder = environment.get("CLOUDSDK_CONFIG")
    return (Path(folder) if folder else Path(environment.get("HOME", "/")) / ".config" / "gcloud") / _OWN


def _is_google(product: Path) -> bool:
    return product.is_file() and "Google" in product.read_text(errors="replace")
