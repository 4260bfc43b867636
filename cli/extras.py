"""Packages that only some users need: the extras of pyproject.toml, by the module whose import fails without them."""

from __future__ import annotations

_BY_MODULE = {
    "boto3": "aws",
    "botocore": "aws",
    "pulumi_aws": "aws",
    "azure": "azure",
    "pulumi_azure_native": "azure",
    "google": "gcp",
    "pulumi_gcp": "gcp",
    "highspy": "planner",
    "ldap3": "ldap",
    "cyclonedx": "bundle",
    "minisign": "bundle",
    "packageurl": "bundle",
    "arro3": "ledger",
    "starlette": "web",
    "uvicorn": "web",
    "grafana_foundation_sdk": "dashboards",
}


def missing(error: ModuleNotFoundError) -> str | None:
    """Return what to say of a failed import, None if no extra has the module."""
    package = (error.name or "").partition(".")[0]
    if package not in _BY_MODULE:
        return None
    extra = _BY_MODULE[package]
    return (
        f"this needs the extra {extra!r}, which is not installed ({error.name} is missing); "
        f"install it from the checkout, with those that you have: uv tool install '.[{extra}]'"
    )
