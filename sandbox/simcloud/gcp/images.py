"""Images of machines: the provider resolves them before it asks for a machine or a template."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.simcloud.rules import Call, RefusalError
from sandbox.simcloud.values import at


def images_exist(call: Call) -> None:
    """Refuse an image that the project can't use, with the provider's message (`resolveImage` of terraform-provider-google)."""
    for image in _named(call):
        if not call.offers.images("gcp", call.region, image):
            raise RefusalError(
                f"Error resolving image name '{image}': Could not find image or family {image}; gcloud compute images list "
                "shows those of Google, and gcloud compute images list --project PROJECT --no-standard-images others"
            )


def _named(call: Call) -> Iterator[str]:
    yield from map(str, at(call.inputs, "bootDisk.initializeParams.image"))
    yield from map(str, at(call.inputs, "disks[].sourceImage"))
