"""Images of machines: what an account may start from depends on its region, and on what was shared with it."""

from __future__ import annotations

from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import Properties, at

_IDS = ("id", "sharedGalleryImageId", "communityGalleryImageId")


def images_exist(call: Call) -> None:
    """Refuse an image that the account does not have. Messages: "Troubleshoot shared image issues", "SKU not available"."""
    for path in ("storageProfile.imageReference", "virtualMachineProfile.storageProfile.imageReference"):
        for reference in at(call.inputs, path):
            name = _name(reference)
            if name and not call.offers.images("azure", call.region, name):
                raise _absent(name, call.region)


def _name(reference: Properties) -> str:
    """Return the image as a spec names it: publisher:offer:sku:version, or an ID."""
    ids = (str(reference[key]) for key in _IDS if reference.get(key))
    parts = [str(reference.get(key) or "") for key in ("publisher", "offer", "sku", "version")]
    return next(ids, ":".join(parts) if all(parts) else "")


def _absent(name: str, region: str) -> Exception:
    if not name.startswith("/"):
        return refused(
            "PlatformImageNotFound",
            f"The platform image '{name}' is not available. Verify that all fields in the storage profile are correct. For "
            "more details about storage profile information, please refer to https://aka.ms/storageprofile",
            f"az vm image list --all --location {region} --publisher {name.partition(':')[0]}",
            404,
        )
    if "/galleries/" in name.lower():
        return refused(
            "GalleryImageNotFound",
            f"The gallery image {name} is not available in {region} region. Please contact image owner to replicate to this "
            "region, or change your requested region.",
            "replicate it, or name another image",
            404,
        )
    kind, _, own = name.rpartition("/providers/")[2].rpartition("/")
    group = name.partition("/resourceGroups/")[2].partition("/")[0]
    return refused(
        "ResourceNotFound",
        f"The Resource '{kind}/{own}' under resource group '{group}' was not found. For more details please go to "
        "https://aka.ms/ARMResourceNotFoundFix",
        "name an image of this subscription",
        404,
    )
