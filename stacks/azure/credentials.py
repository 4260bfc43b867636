"""What `up` needs to reach Azure, looked for without asking Azure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_PROFILE = "azureProfile.json"
_IDS = ("ARM_CLIENT_ID", "ARM_TENANT_ID")
_PROOFS = {
    "a client secret": ("ARM_CLIENT_SECRET",),
    "a client certificate": ("ARM_CLIENT_CERTIFICATE_PATH",),
    "OpenID Connect": ("ARM_USE_OIDC",),
}
"""How a service principal proves who it is -> the variable that says so."""
_TOKENS = ("ARM_OIDC_TOKEN", "ARM_OIDC_TOKEN_FILE_PATH", "ACTIONS_ID_TOKEN_REQUEST_URL", "ARM_OIDC_REQUEST_URL")
_YES = frozenset({"1", "true"})


def missing(environment: Mapping[str, str]) -> list[str]:
    """What is wrong with the credentials, each with a way out; [] where they may do. Azure itself is not asked.

    Ways, as the provider tries them ("Azure Native Installation & Configuration"): a service principal by ARM_*
    variables, a managed identity by ARM_USE_MSI, or who is logged in to the Azure CLI.
    """
    if _is_set(environment, "ARM_USE_MSI"):
        return _subscription(environment)
    if any(environment.get(name) for name in (*_IDS, *(name for names in _PROOFS.values() for name in names))):
        return [*_service_principal(environment), *_subscription(environment)]
    folder = Path(environment.get("AZURE_CONFIG_DIR") or Path(environment.get("HOME") or "~").expanduser() / ".azure")
    if (folder / _PROFILE).is_file():
        return []
    nobody = (
        f"nobody is logged in to Azure: there is no {folder / _PROFILE}, and neither ARM_CLIENT_ID nor ARM_USE_MSI is "
        "set; run `az login` and `az account set --subscription <id>`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET, "
        "ARM_TENANT_ID and ARM_SUBSCRIPTION_ID of a service principal with the role in docs/start/azure.md"
    )
    return [nobody]


def _service_principal(environment: Mapping[str, str]) -> list[str]:
    problems = [
        f"{name} is not set; `az ad sp show --id <id>` tells appId (ARM_CLIENT_ID) and the tenant (ARM_TENANT_ID)"
        for name in _IDS
        if not environment.get(name)
    ]
    if not any(environment.get(name) for names in _PROOFS.values() for name in names):
        ways = ", ".join(f"{names[0]} for {what}" for what, names in _PROOFS.items())
        problems.append(f"nothing proves who ARM_CLIENT_ID is; set one of {ways}")
    certificate = environment.get("ARM_CLIENT_CERTIFICATE_PATH")
    if certificate and not Path(certificate).is_file():
        problems.append(f"ARM_CLIENT_CERTIFICATE_PATH names {certificate}, and there is no such file")
    if _is_set(environment, "ARM_USE_OIDC") and not any(environment.get(name) for name in _TOKENS):
        problems.append(f"ARM_USE_OIDC is set and no token; set one of {', '.join(_TOKENS)}")
    return problems


def _subscription(environment: Mapping[str, str]) -> list[str]:
    if environment.get("ARM_SUBSCRIPTION_ID"):
        return []
    return ["ARM_SUBSCRIPTION_ID is not set; `az account list --output table` tells the ids of subscriptions"]


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in _YES
