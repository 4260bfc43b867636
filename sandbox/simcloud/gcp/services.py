"""APIs: a project uses those that are enabled ("Enabling and disabling services", Service Usage)."""

from __future__ import annotations

from sandbox.simcloud.gcp.common import project_number
from sandbox.simcloud.rules import Call, RefusalError

# Part of a type's token -> API and its title.
_APIS = {
    "compute": ("compute", "Compute Engine API"),
    "dns": ("dns", "Cloud DNS API"),
    "kms": ("cloudkms", "Cloud Key Management Service (KMS) API"),
    "logging": ("logging", "Cloud Logging API"),
    "secretmanager": ("secretmanager", "Secret Manager API"),
    "serviceaccount": ("iam", "Identity and Access Management (IAM) API"),
    "storage": ("storage", "Cloud Storage API"),
}
# Types of projects belong to several.
_OF_PROJECTS = {
    "gcp:projects/iAMCustomRole:IAMCustomRole": ("iam", "Identity and Access Management (IAM) API"),
    "gcp:projects/iAMMember:IAMMember": ("cloudresourcemanager", "Cloud Resource Manager API"),
    "gcp:projects/serviceIdentity:ServiceIdentity": ("serviceusage", "Service Usage API"),
}


def enabled(call: Call) -> None:
    """Refuse a type whose API is not enabled."""
    service = _OF_PROJECTS.get(call.type.token) or _APIS.get(call.type.token.split(":")[1].partition("/")[0])
    if service is None or call.offers.services("gcp", f"{service[0]}.googleapis.com"):
        return
    api, title = service
    number = project_number(call.settings.account)
    raise RefusalError(
        f"googleapi: Error 403: {title} has not been used in project {number} before or it is disabled. Enable it by "
        f"visiting https://console.developers.google.com/apis/api/{api}.googleapis.com/overview?project={number} then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
        f'retry., reason "SERVICE_DISABLED"; gcloud services enable {api}.googleapis.com'
    )
