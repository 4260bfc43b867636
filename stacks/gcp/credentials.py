"""Which credentials `up` misses, before the provider says so in its own words.

Sources, by page title: "Google Cloud (GCP) Installation & Configuration" of the provider; "How Application Default
Credentials works".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROJECT = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
_KEYS = ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON")
_TOKEN, _FILE = "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"
_OWN = "application_default_credentials.json"
_PRODUCT = Path("/sys/class/dmi/id/product_name")


def missing(environment: Mapping[str, str], product: Path = _PRODUCT) -> list[str]:
    """What is wrong, and what to do about it; nothing where `up` can begin. Reads files, asks no network.

    product: says what this machine is; Google's own have credentials from their metadata service.
    """
    found = [] if any(environment.get(name) for name in PROJECT) else [_no_project()]
    return found + _credentials(environment, product)


def _no_project() -> str:
    return (
        f"no project: set {PROJECT[0]} to the ID of the project that the cluster is to be in "
        "(gcloud projects list), or gcp:project in the stack's configuration"
    )


def _credentials(environment: Mapping[str, str], product: Path) -> list[str]:
    if environment.get(_TOKEN):
        return []
    for name in _KEYS:
        if text := environment.get(name):
            is_there = text.lstrip().startswith("{") or Path(text).is_file()
            return [] if is_there else [f"{name} is neither the JSON of a key nor a file that is there: {text}"]
    if file := environment.get(_FILE):
        return [] if Path(file).is_file() else [f"{_FILE} names {file}, and there is no such file"]
    if _own_file(environment).is_file() or _is_google(product):
        return []
    return [f"no credentials: run gcloud auth application-default login, or set {_FILE} to the file of a key"]


def _own_file(environment: Mapping[str, str]) -> Path:
    """Where gcloud puts what a person logged in with."""
    folder = environment.get("CLOUDSDK_CONFIG")
    return (Path(folder) if folder else Path(environment.get("HOME", "/")) / ".config" / "gcloud") / _OWN


def _is_google(product: Path) -> bool:
    return product.is_file() and "Google" in product.read_text(errors="replace")
