"""Quotas, sizes and images of a region of Azure, against the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.clouds import CallError
from clients.clouds.azure_reader import AzureReader
from cluster.needs import Use, images
from cluster.spec import Cluster
from operations.doctor import places
from operations.doctor.model import Answer, Once, Question, ok, unknown, wrong
from operations.doctor.quotas import Need, Quota, compared, needs_of, not_known
from stacks.azure.hosts import DEBIAN

_SKUS, _USAGES, _NETWORK, _IMAGES, _GALLERIES = "2021-07-01", "2024-07-01", "2024-05-01", "2024-07-01", "2024-03-03"
"""Versions of the APIs."""
_TOTAL, _SPOT = "cores", "lowPriorityCores"
"""Names of usages: vCPUs of the region over all families, and of spot machines, which no family counts."""
_ARCHITECTURES = {"x64": "amd64", "Arm64": "arm64"}
_COMPUTE = "Microsoft.Compute"
_SIZES_RIGHT, _USAGES_RIGHT = f"{_COMPUTE}/skus/read", f"{_COMPUTE}/locations/usages/read"
_NETWORK_RIGHT = "Microsoft.Network/locations/usages/read"
_IMAGE_RIGHT = f"{_COMPUTE}/locations/publishers/artifacttypes/offers/skus/versions/read"


class Region:
    """A region's sizes and usages, requested once."""

    def __init__(self, cluster: Cluster, reader: AzureReader, used: Sequence[Use]) -> None:
        self.cluster, self.reader, self.used = cluster, reader, used
        self.name = cluster.spec.control_plane.region
        self.sizes = Once(self._sizes)
        self.usages = Once(lambda: self._usages(_COMPUTE, _USAGES))
        self.networks = Once(lambda: self._usages("Microsoft.Network", _NETWORK))

    def _sizes(self) -> Mapping[str, Any]:
        listed = self.reader.every(f"/providers/{_COMPUTE}/skus", _SKUS, **{"$filter": f"location eq '{self.name}'"})
        return {each["name"]: each for each in listed if each.get("resourceType") == "virtualMachines"}

    def _usages(self, namespace: str, version: str) -> Mapping[str, Any]:
        """Return name of the quota in lower case -> usage: lists of sizes and of usages differ in case."""
        listed = self.reader.every(f"/providers/{namespace}/locations/{self.name}/usages", version)
        return {each["name"]["value"].lower(): each for each in listed}

    def capability(self, size: str, name: str) -> str:
        """Return a capability of a size, "" if the region does not have the size."""
        listed = self.sizes().get(size, {}).get("capabilities", ())
        return next((str(each["value"]) for each in listed if each["name"] == name), "")

    def zones(self, size: str) -> set[str]:
        """Return the zones that offer a size to this subscription."""
        sku = self.sizes().get(size, {})
        zones = {zone for place in sku.get("locationInfo", ()) for zone in place.get("zones") or ()}
        for each in sku.get("restrictions", ()):
            if each.get("type") == "Location":
                return set()
            zones -= set((each.get("restrictionInfo") or {}).get("zones") or ())
        return zones

    def quota(self, name: str, unit: str, *, network: bool = False) -> Quota | None:
        usage = (self.networks() if network else self.usages()).get(name.lower())
        if usage is None:
            return None
        label = str(usage["name"].get("localizedValue") or name).removesuffix(" vCPUs")
        return Quota(label, unit, self.name, usage["limit"], usage["currentValue"])


def machine_questions(region: Region) -> list[Question]:
    sizes, usages = (_SIZES_RIGHT,), (_SIZES_RIGHT, _USAGES_RIGHT)
    looks = (
        _IMAGE_RIGHT,
        f"{_COMPUTE}/images/read",
        f"{_COMPUTE}/galleries/images/read",
        f"{_COMPUTE}/galleries/images/versions/read",
        _SIZES_RIGHT,
    )
    return [
        Question("quotas", "vCPUs", lambda: _vcpus(region), usages, usages),
        Question("quotas", "networks", lambda: _networks(region), (_NETWORK_RIGHT,), (_NETWORK_RIGHT,)),
        Question("places", "sizes", lambda: places.answers(region.used, region.zones, _where(region)), sizes, sizes),
        Question("images", "image", lambda: _images(region), looks, looks),
    ]


def _where(region: Region) -> Any:
    return lambda size: f"az vm list-skus --location {region.name} --size {size} --all --output table"


def _vcpus(region: Region) -> Iterator[Answer]:
    """Yield an answer for each family, for spot, and for the region's total, which spot does not count in."""
    counted = [use for use in region.used if not use.reserved]  # a reservation took its quota when it was made
    by_quota: dict[str, list[Use]] = {}
    for use in counted:
        names = [_SPOT] if use.spot else [str(region.sizes().get(use.machine, {}).get("family", use.machine)), _TOTAL]
        for name in names:
            by_quota.setdefault(name, []).append(use)
    for name, uses in sorted(by_quota.items(), key=lambda item: item[0] == _TOTAL):
        needs = needs_of(uses, lambda use: int(region.capability(use.machine, "vCPUs") or 0))
        quota = region.quota(name, "vCPUs")
        look = f"az vm list-usage --location {region.name} --output table"
        if any(need.each == 0 for need in needs):
            yield not_known(name, needs, f"{region.name} does not offer a size of this plan", look)
        elif quota is None:
            yield not_known(name, needs, f"{region.name} lists no quota of this name", look)
        else:
            yield compared(quota, needs, lambda size, name=name: [_raise(region, _COMPUTE, name, size)])  # type: ignore[misc]


def _networks(region: Region) -> Iterator[Answer]:
    spec = region.cluster.spec
    has_vpn = any(site.vpn for site in spec.sites.values())
    addresses = 1 + bool(spec.control_plane.public) + 2 * has_vpn  # NAT, public endpoint, both ends of the VPN gateway
    for name, unit, count in (("VirtualNetworks", "networks", 1), ("PublicIPAddresses", "addresses", addresses)):
        needs, quota = [Need("", count, count, 1)], region.quota(name, unit, network=True)
        if quota is None:
            look = f"az network list-usages --location {region.name} --output table"
            yield not_known(name, needs, f"{region.name} lists no quota of this name", look)
        else:
            yield compared(quota, needs, lambda size, name=name: [_raise(region, "Microsoft.Network", name, size)])  # type: ignore[misc]


def _raise(region: Region, namespace: str, name: str, size: int) -> str:
    scope = f"/subscriptions/{region.reader.subscription}/providers/{namespace}/locations/{region.name}"
    return f"az quota update --resource-name {name} --scope {scope} --limit-object value={size}"


def _images(region: Region) -> Iterator[Answer]:
    for image, uses in images(region.used).items():
        name = image or DEBIAN
        try:
            yield _image(region, name, uses)
        except CallError as error:
            if not error.missing:
                raise
            yield wrong(f"there is no such image for {region.name}", _finds(region, name), about=name)


def _image(region: Region, name: str, used: Sequence[Use]) -> Answer:
    if name.startswith(("/SharedGalleries/", "/CommunityGalleries/")):
        return unknown("images of shared and community galleries are not looked up", about=name)
    if name.startswith("/subscriptions/"):
        image = region.reader.at(name, _GALLERIES if "/galleries/" in name else _IMAGES)
        version = name.rpartition("/")[2]
    else:
        image, version = _of_market(region, name)
    properties = image.get("properties", {})
    if properties.get("plan"):
        terms = f"az vm image terms accept --urn {name} --subscription {region.reader.subscription}"
        return unknown("its publisher has terms, and whether they are accepted is not looked up", terms, about=name)
    architecture = _ARCHITECTURES.get(properties.get("architecture", ""), "")
    own = {use: _ARCHITECTURES.get(region.capability(use.machine, "CpuArchitectureType"), "") for use in used}
    unfit = [use for use, each in own.items() if architecture and each and each != architecture]
    if unfit:
        words = ", ".join(f"{use.what} ({use.machine})" for use in unfit)
        return wrong(f"it is for {architecture}, which {words} cannot boot", _finds(region, name), about=name)
    generation = str(properties.get("hyperVGeneration") or "an unknown generation")
    if not architecture:
        return unknown(f"{version} exists; its architecture is not stated", about=name)
    return ok(f"{version}, {architecture}, {generation}", about=name)


def _of_market(region: Region, name: str) -> tuple[Mapping[str, Any], str]:
    """Return an image of the marketplace, and its version: for `latest` the newest."""
    publisher, offer, sku, version = name.split(":")
    path = (
        f"/providers/{_COMPUTE}/locations/{region.name}/publishers/{publisher}/artifacttypes/vmimage/offers/{offer}"
        f"/skus/{sku}/versions"
    )
    if version == "latest":
        listed = region.reader.every(path, _IMAGES, **{"$top": "1", "$orderby": "name desc"})
        if not listed:
            raise CallError(f"{name} has no version in {region.name}", missing=True)
        version = str(listed[0]["name"])
    return region.reader.get(f"{path}/{version}", _IMAGES), version


def _finds(region: Region, name: str) -> str:
    if ":" not in name:
        return f"az resource show --ids {name}"
    publisher, offer, *_ = name.split(":")
    return f"az vm image list --location {region.name} --publisher {publisher} --offer {offer} --all --output table"
