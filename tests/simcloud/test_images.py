"""An account starts machines only from images that it has, in their region."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import Offers, RefusalError
from sandbox.simcloud.simulation import SimulatedCloud
from tests.simcloud.aws_support import Region
from tests.simcloud.azure_support import Estate
from tests.simcloud.gcp_support import Project

NONE = Offers(images=lambda *_: False)
GALLERY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/menagerie/images/host/versions/1.0.0"
MANAGED = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/host"


def test_aws_refuses_an_image_when_a_machine_or_a_group_needs_it_and_not_in_a_template(api: Any) -> None:
    region = Region(api("aws", offers=NONE))
    with pytest.raises(
        RefusalError, match=r"InvalidAMIID.NotFound: The image id '\[ami-1\]' does not exist; each region"
    ):
        region.instance()
    template = region.template()
    group = {"minSize": 0, "maxSize": 1, "vpcZoneIdentifiers": [region.a.id], "launchTemplate": {"id": template.id}}
    region.refuses(r"ValidationError: You must use a valid.*'\[ami-1\]' does not exist", tokens.SCALING_GROUP, **group)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (
            {"publisher": "Debian", "offer": "debian-13", "sku": "13-gen2", "version": "latest"},
            "PlatformImageNotFound.*'Debian:debian-13:13-gen2:latest' is not available.*--publisher Debian",
        ),
        ({"id": GALLERY}, "GalleryImageNotFound.*versions/1.0.0 is not available in westeurope region"),
        ({"id": MANAGED}, "ResourceNotFound.*'Microsoft.Compute/images/host' under resource group 'g' was not found"),
    ],
    ids=["platform", "gallery", "managed"],
)
@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("machine", "storageProfile.imageReference"),
        ("scale set", "virtualMachineProfile.storageProfile.imageReference"),
    ],
)
def test_azure_refuses_an_image_that_the_region_or_the_account_lacks(
    api: Any, kind: str, path: str, reference: dict[str, str], words: str
) -> None:
    estate = Estate(api("azure"))
    estate.api.simulation = SimulatedCloud(estate.api.simulation.cloud, estate.api.world, NONE)
    with pytest.raises(RefusalError, match=words):
        estate.recreate(kind, {path: reference})


@pytest.mark.parametrize("kind", ["instance", "template"])
def test_google_cloud_refuses_an_image_that_the_provider_cannot_resolve(api: Any, kind: str) -> None:
    with pytest.raises(
        RefusalError, match="Error resolving image name 'debian': Could not find image or family debian"
    ):
        Project(api("gcp", offers=NONE)).make(kind)


def test_an_account_may_have_some_images_and_lack_others(api: Any) -> None:
    asked: list[tuple[str, str, str]] = []

    def has(*image: str) -> bool:
        asked.append((image[0], image[1], image[2]))
        return image[2] != "ami-2"

    region = Region(api("aws", offers=Offers(images=has)))
    region.instance()
    with pytest.raises(RefusalError, match="InvalidAMIID.NotFound"):
        region.instance("other", ami="ami-2")
    assert asked == [("aws", "eu-west-1", "ami-1"), ("aws", "eu-west-1", "ami-2")]
