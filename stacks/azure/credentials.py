"""Checks for the credentials that `up` needs for Azure, without a request to Azure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LOGIN = ("az login",)
"""How a person logs in. It asks for the subscription."""
_PROFILE = "azureProfile.json"
_IDS = ("ARM_CLIENT_ID", "ARM_TENANT_ID")
_PROOFS = {
    "a client secret": ("ARM_CLIENT_SECRET",),
    "a client certificate": ("ARM_CLIENT_CERTIFICATE_PATH",),
    "OpenID Connect": ("ARM_USE_OIDC",),
}
"""How a service principal proves its identity -> the variable for that."""
_TOKENS = ("ARM_OIDC_TOKEN", "ARM_OIDC_TOKEN_FILE_PATH", "ACTIONS_ID_TOKEN_REQUEST_URL", "ARM_OIDC_REQUEST_URL")
_YES = frozenset({"1", "true"})


def missing(environment: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the credentials, each with a way out; [] if they may work. Sends no request to Azure.

    Methods, in the provider's order ("Azure Native Installation & Configuration"): a service principal from ARM_*
    variables, a managed identity with ARM_USE_MSI, or the login of the Azure CLI.
    """
    if _is_set(environment, "ARM_USE_MSI"):
        return _subscription(environment)
    if any(environment.get(name) for name in (*_IDS, *(name for names in _PROOFS.values() for name in names))):
        return [*_service_principal(environment), *_subscription(environment)]
    folder = Path(environment.get("AZURE_CONFIG_DIR") or Path(environment.get("HOME") or "~").expanduser() / ".azure")
    if (folder / _PROFILE).is_file():
        return []
    problem = (
        f"nobody is logged in to Azure: there is no {folder / _PROFILE}, and neither ARM_CLIENT_ID nor ARM_USE_MSI is "
        "set; run `az login` and `az account set --subscription <id>`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET, "
        "ARM_TENANT_ID and ARM_SUBSCRIPTION_ID of a service principal with the role in docs/start/azure.md"
    )
    return [problem]


def _service_principal(environment: Mapping[str, str]) -> list[str]:
    problems = [
        f"{name} is not set; `az ad sp show --id <id>` shows appId (ARM_CLIENT_ID) and the tenant (ARM_TENANT_ID)"
        for name in _IDS
        if not environment.get(name)
    ]
    if not any(environment.get(name) for names in _PROOFS.values() for name in names):
        ways = ", ".join(f"{names[0]} for {what}" for what, names in _PROOFS.items())
        problems.append(f"ARM_CLIENT_ID has no credential; set one of {ways}")
    certificate = environment.get("ARM_CLIENT_CERTIFICATE_PATH")
    if certificate and not Path(certificate).is_file():
        problems.append(f"ARM_CLIENT_CERTIFICATE_PATH names {certificate}, which does not exist")
    if _is_set(environment, "ARM_USE_OIDC") and not any(environment.get(name) for name in _TOKENS):
        problems.append(f"ARM_USE_OIDC is set without a token; set one of {', '.join(_TOKENS)}")
    return problems


def _subscription(environment: Mapping[str, str]) -> list[str]:
    if environment.get("ARM_SUBSCRIPTION_ID"):
        return []
    return ["ARM_SUBSCRIPTION_ID is not set; `az account list --output table` lists the IDs of subscriptions"]


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in _YES
