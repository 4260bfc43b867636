"""Google's own roles of some services ("IAM roles and permissions index"), and permissions that no role of a project may have.

Names as collected in iam-dataset (2026-08-22). Roles of other services are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.simcloud.rules import Call, RefusalError

_ROLES: Mapping[str, str] = {
    "cloudkms": """
        admin autokeyAdmin autokeyUser cryptoKeyDecrypter cryptoKeyDecrypterViaDelegation cryptoKeyEncrypter
        cryptoKeyEncrypterDecrypter cryptoKeyEncrypterDecrypterViaDelegation cryptoKeyEncrypterViaDelegation cryptoOperator
        decapsulator ekmConnectionsAdmin encryptionDashboardViewer expertPqcSigner expertRawAesCbc expertRawAesCtr
        expertRawPKCS1 hsmSingleTenantExecutor hsmSingleTenantKeyCreator hsmSingleTenantProposer
        hsmSingleTenantQuorumMember importer keyAccessJustificationsEnrollmentConfigViewer
        keyAccessJustificationsPolicyConfigAdmin orgServiceAgent protectedResourcesViewer publicKeyViewer serviceAgent
        signer signerVerifier verifier viewer""",
    "compute": """
        admin futureReservationAdmin futureReservationUser futureReservationViewer imageUser instanceAdmin
        instanceAdmin.v1 instanceGroupManagerServiceAgent interconnectAttachmentGroupAnalyzer interconnectGroupAnalyzer
        loadBalancerAdmin loadBalancerServiceUser networkAdmin networkUser networkViewer orgFirewallPolicyAdmin
        orgFirewallPolicyUser orgSecurityPolicyAdmin orgSecurityPolicyUser orgSecurityResourceAdmin osAdminLogin osLogin
        osLoginExternalUser packetMirroringAdmin packetMirroringUser peerSubnetMigrationAdmin publicIpAdmin securityAdmin
        serviceAgent soleTenantViewer storageAdmin viewer vmExtensionPolicyAdmin vmExtensionPolicyViewer xpnAdmin""",
    "dns": "admin peer reader serviceAgent",
    "file": "editor serviceAgent viewer",
    "logging": """
        admin bucketWriter configWriter fieldAccessor linkViewer logWriter privateLogViewer serviceAgent sqlAlertWriter
        viewAccessor viewer""",
    "secretmanager": "admin secretAccessor secretVersionAdder secretVersionManager viewer",
    "storage": """
        admin annotationGeneratorService bucketViewer expressModeServiceInput expressModeServiceOutput
        expressModeUserAccess folderAdmin hmacKeyAdmin insightsCollectorService legacyBucketOwner legacyBucketReader
        legacyBucketWriter legacyObjectOwner legacyObjectReader objectAdmin objectCreator objectUser objectViewer""",
}
_NAMES = {service: frozenset((*names.split(), "editor", "admin", "viewer")) for service, names in _ROLES.items()}
"""With the newer basic ones, which the index has for some services only."""

# What a resource's policy may grant, of the services above; a project's policy may grant roles of all.
_SERVICE_OF = {
    "gcp:kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding": "cloudkms",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": "cloudkms",
    "gcp:kms/keyRingIAMMember:KeyRingIAMMember": "cloudkms",
    "gcp:secretmanager/secretIamBinding:SecretIamBinding": "secretmanager",
    "gcp:secretmanager/secretIamMember:SecretIamMember": "secretmanager",
    "gcp:storage/bucketIAMMember:BucketIAMMember": "storage",
}
_ABOVE_PROJECTS = re.compile(r"resourcemanager\.((folders|organizations)\..*|projects\.list)")


def granted_here(call: Call) -> None:
    """Refuse a role that does not exist, or whose permissions are for other kinds of resources ("View grantable roles")."""
    text = call.text("role")
    service, dot, name = text.removeprefix("roles/").partition(".")
    if not dot or not text.startswith("roles/") or service not in _NAMES:
        return
    own = _SERVICE_OF.get(call.type.token, service)
    if own != service or name not in _NAMES[service]:
        raise RefusalError(
            f"googleapi: Error 400: Role {text} is not supported for this resource., badRequest; "
            f"roles of {own} are {', '.join(sorted(_NAMES[own]))}",
            "role",
        )


def of_project(permission: str) -> bool:
    """Whether a project's own role may have a permission: not those of folders and organizations ("Create and manage custom
    roles"; terraform-google-modules/terraform-google-iam 158)."""
    return not _ABOVE_PROJECTS.fullmatch(permission)
