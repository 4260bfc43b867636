"""User data: anybody with read access to a machine may read it, and each cloud limits its size."""

from __future__ import annotations

import base64
import binascii
import lzma
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster import catalogue
from cluster.spec import Cloud, Cluster
from stacks.policies.model import SECRET, Resource, Rule, Violation
from stacks.policies.values import at, is_hidden, of_types


@dataclass(frozen=True)
class Text:
    """Where a resource has user data. values: the path is a mapping of texts. packed: it is base64."""

    path: str
    packed: bool = False
    values: bool = False


_OF_GOOGLE = (Text("metadata", values=True), Text("metadataStartupScript"))

TEXTS: Mapping[str, tuple[Text, ...]] = {
    "aws:ec2/instance:Instance": (Text("userData"), Text("userDataBase64", packed=True)),
    "aws:ec2/launchTemplate:LaunchTemplate": (Text("userData", packed=True),),
    "azure-native:compute:VirtualMachine": (Text("osProfile.customData", packed=True), Text("userData", packed=True)),
    "azure-native:compute:VirtualMachineScaleSet": (
        Text("virtualMachineProfile.osProfile.customData", packed=True),
        Text("virtualMachineProfile.userData", packed=True),
    ),
    "gcp:compute/instance:Instance": _OF_GOOGLE,
    "gcp:compute/instanceTemplate:InstanceTemplate": _OF_GOOGLE,
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": _OF_GOOGLE,
}
"""Type -> its user data."""

SECRETS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    # kubeadm, "Authenticating with Bootstrap Tokens": six characters and sixteen. Of random tokens all but one in two
    # hundred have a digit among the sixteen; names in programs seldom do.
    "a bootstrap token": re.compile(r"(?<![\w.])[a-z0-9]{6}\.(?=[a-z]*[0-9])[a-z0-9]{16}(?![\w.])"),
    "an access key of AWS": re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"),
    "an account key of Azure": re.compile(r"\bAccountKey=[A-Za-z0-9+/]{40}"),
    "a signed token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\."),
    "a password": re.compile(r"(?m)^[\s-]*(passwd|password|plain_text_passwd|hashed_passwd):\s*['\"]?[^\s'\"]"),
}
"""Kind of secret that must not be in user data -> pattern that matches it."""

_DEEPEST = 4
_MOST_BYTES = 2**20
"""Limit for unpacked data: no cloud's user data contains more."""
_ENCODED = re.compile(r"[A-Za-z0-9+/]{40,}(?:\s+[A-Za-z0-9+/]{40,})*(?:\s+[A-Za-z0-9+/]+(?==))?={0,2}")
_GZIP = b"\x1f\x8b"
# A payload as `userdata` packs it: RFC 1924's alphabet, and the first characters of all xz data.
_XZ_IN_BASE85 = re.compile(r"\{Wp48[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")


def _texts(resource: Resource) -> Iterator[tuple[Text, str, str]]:
    """Yield each text of a resource's user data: where, its name, and the text."""
    for where in TEXTS[resource.type]:
        for value in at(resource.inputs, where.path):
            if where.values and isinstance(value, Mapping):
                yield from ((where, f"{where.path}.{name}", str(text)) for name, text in value.items())
            elif isinstance(value, str):
                yield where, where.path, value


def _secrets(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in of_types(resources, TEXTS):
        for _where, path, text in _texts(resource):
            if text == SECRET:
                # The engine encrypts everything derived from a secret.
                yield _secret(resource, path, "something secret")
            for what in secrets_in(text):
                yield _secret(resource, path, what)


def _secret(resource: Resource, path: str, what: str) -> Violation:
    return Violation(
        "user-data-without-secrets",
        resource,
        f"{resource.type} {resource.name} has {what} in its user data ({path})",
        "put it in the secret store and let the host fetch it at boot with its identity",
    )


def secrets_in(text: str) -> list[str]:
    """Return the kinds of secrets in a text, and in everything packed inside it."""
    layers = list(_layers(text, _DEEPEST))
    return [what for what, pattern in SECRETS.items() if any(pattern.search(layer) for layer in layers)]


def _layers(text: str, depth: int) -> Iterator[str]:
    """Yield a text, and the texts inside it: base64, gzip in base64, and xz in base85."""
    yield text
    if depth:
        decoded = [unpacked(match) for match in _ENCODED.findall(text)]
        for inner in (*decoded, *map(_without_xz, _XZ_IN_BASE85.findall(text))):
            if inner is not None:
                yield from _layers(inner.decode(errors="replace"), depth - 1)


def _without_xz(text: str) -> bytes | None:
    try:
        return lzma.LZMADecompressor().decompress(base64.b85decode(text), _MOST_BYTES)
    except (ValueError, lzma.LZMAError):
        return None


def unpacked(text: str) -> bytes | None:
    """Return what a base64 text of one or more lines contains, without gzip; None if it is not base64."""
    joined = "".join(text.split())
    try:
        data = base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except binascii.Error:
        return None
    if not data.startswith(_GZIP):
        return data
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _MOST_BYTES)
    except zlib.error:
        return data


def _sizes(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in of_types(resources, TEXTS):
        most = _most(resource)
        for where, path, text in _texts(resource):
            size = 0 if is_hidden(text) else _size(text, where.packed)
            if size > most:
                yield Violation(
                    "user-data-fits",
                    resource,
                    f"{resource.type} {resource.name} has {size} bytes in {path}, but the cloud's limit is {most}",
                    "put the text in the store and let the host fetch it at boot",
                )


def _size(text: str, packed: bool) -> int:
    if not packed:
        return len(text.encode())
    try:
        return len(base64.b64decode(text))
    except binascii.Error:
        return len(text.encode())


def _most(resource: Resource) -> int:
    cloud = {"aws": Cloud.AWS, "azure-native": Cloud.AZURE, "gcp": Cloud.GCP}[resource.type.partition(":")[0]]
    return catalogue.of(cloud).user_data.max_bytes


RULES = (
    Rule(
        "user-data-without-secrets",
        "User data and metadata of machines contain no secret: no key, token or password, and nothing derived from a secret.",
        _secrets,
        "Anybody who may describe a machine may read its user data, and so may every program on it. Packed content is "
        "checked too (base64, gzip, xz).",
    ),
    Rule(
        "user-data-fits",
        "User data is not larger than its cloud permits.",
        _sizes,
        "Limits with sources in cluster/catalogue/: "
        "AWS 16 KiB, Azure 65,535 bytes, Google Cloud 256 KiB for each value of metadata.",
    ),
)
