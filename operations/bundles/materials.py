"""The bill of materials of a bundle (SBOM), in CycloneDX's JSON."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from cluster.bundles import Entry, Kind

_SPACE = uuid.UUID("6f0ef2a0-3c0d-5a44-9ad1-0c6f0d7e2f11")
"""Namespace of serial numbers: the same entries give the same one, and so the same bytes."""
_MADE_HERE = (Kind.BUILT, Kind.SYSTEM)
_RELEASE = re.compile(r"github\.com/([^/]+)/([^/]+)/releases/download/([^/]+)/")
_IN_TREE = re.compile(r"raw\.githubusercontent\.com/([^/]+)/([^/]+)/([^/]+)/(.+)")


def materials(entries: Sequence[Entry]) -> bytes:
    """Return the bill of materials. It has no time of its making, so that the same entries give the same bytes."""
    serial = uuid.uuid5(_SPACE, "\n".join(f"{entry.source} {entry.sha256}" for entry in entries))
    bom = Bom(serial_number=serial, components=map(_component, entries))
    bom.metadata.timestamp = None  # type: ignore[assignment] # optional in CycloneDX; the library sets the clock's
    return (JsonV1Dot6(bom).output_as_string(indent=1) + "\n").encode()


def _component(entry: Entry) -> Component:
    is_image = entry.kind is Kind.IMAGE
    links = [] if entry.kind in _MADE_HERE else [entry.source if is_image else f"https://{entry.source}"]
    return Component(
        type=ComponentType.CONTAINER if is_image else ComponentType.APPLICATION,
        name=entry.name,
        version=entry.version,
        bom_ref=entry.source,
        purl=purl(entry),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry.sha256)],
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(link)) for link in links
        ],
        properties=[
            Property(name="menagerie:clusters", value=" ".join(entry.clusters)),
            Property(name="menagerie:known", value=entry.known.value),
        ],
    )


def purl(entry: Entry) -> PackageURL:
    """Return the package's URL, by which scanners look for vulnerabilities. Its types are of the purl specification."""
    if entry.kind is Kind.IMAGE:
        repository = entry.source.rpartition(":")[0]
        named = {"repository_url": repository, "tag": entry.version}
        return PackageURL("oci", None, repository.rpartition("/")[2], f"sha256:{entry.sha256}", named)
    if entry.kind is Kind.DEBIAN and entry.source.endswith((".deb", ".udeb")):
        return PackageURL("deb", "debian", entry.name, entry.version, {})
    if match := _RELEASE.match(entry.source):
        return PackageURL("github", match[1], match[2], match[3], {}, entry.source.rpartition("/")[2])
    if match := _IN_TREE.fullmatch(entry.source):
        return PackageURL("github", match[1], match[2], match[3], {}, match[4])
    if entry.source.startswith("dl.k8s.io/"):
        return PackageURL("github", "kubernetes", "kubernetes", f"v{entry.version}", {}, entry.name)
    named = {} if entry.kind in _MADE_HERE else {"download_url": f"https://{entry.source}"}
    return PackageURL("generic", None, entry.name, entry.version, named)
