"""Rights in Azure as data: its own roles by their IDs ("Azure built-in roles"), and what our own roles permit. Creates nothing."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum


class BuiltIn(StrEnum):
    """Built-in roles under Azure's names."""

    KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER = "e147488a-f6f5-4113-8e2d-b22465e65bf6"
    KEY_VAULT_SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
    STORAGE_BLOB_DATA_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"


WRITE_SECRET = "Microsoft.KeyVault/vaults/secrets/setSecret/action"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_BLOBS = f"{_CONTAINERS}/blobs"
USE_BLOBS = (f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action", f"{_BLOBS}/delete")
"""Without deleteBlobVersion and permanentDelete: deleted blobs are hidden and can be restored."""
ADD_BLOBS = (f"{_BLOBS}/add/action",)
"""To create blobs, without overwriting, reading or deleting any ("Put Blob", permissions)."""
SEE_CONTAINER = (f"{_CONTAINERS}/read",)
"""To see that it exists, which restic checks before it creates a repository."""
_OURS = uuid.UUID("5f8a1a52-6c0c-5f0e-9f4e-0d6a8a0f5c11")


def id_of_own(subscription: str, cluster: str, name: str) -> str:
    """Return the GUID of one of our roles, which is known before the role exists."""
    return str(uuid.uuid5(_OURS, f"{subscription}/{cluster}/{name}"))


def only_in(container: str) -> str:
    """Return the condition that restricts a holder of `USE_BLOBS` to containers of this name, in any account of the scope.

    Form: "Example Azure role assignment conditions for Blob Storage", read, write or delete blobs in named containers.
    """
    not_concerned = " AND ".join(f"!(ActionMatches{{'{action}'}})" for action in USE_BLOBS)
    return f"(({not_concerned}) OR (@Resource[{_CONTAINERS}:name] StringEquals '{container}'))"


def only_below(folders: Sequence[str]) -> str:
    """Return the condition that restricts a holder of `USE_BLOBS` to blobs below these folders of a container.

    Listing is exempt: a holder who may list a container sees the names of all folders. Form and names: "Azure role assignment
    condition format and syntax", "Actions and attributes for Azure role assignment conditions for Azure Blob Storage".
    """
    read, *others = (f"ActionMatches{{'{action}'}}" for action in USE_BLOBS)
    listing = f"({read} AND NOT SubOperationMatches{{'Blob.List'}})"
    not_concerned = " AND ".join(f"!({match})" for match in (listing[1:-1], *others))
    below = " OR ".join(f"@Resource[{_BLOBS}:path] StringStartsWith '{folder}/'" for folder in folders)
    return f"(({not_concerned}) OR ({below}))"
