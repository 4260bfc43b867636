"""Checksums that projects publish for their releases: where, and in which form.

Sources, read November 2026: Kubernetes, "Install and Set Up kubectl on Linux" (a file `.sha256` with the digest alone);
containerd, "Getting started" (`.sha256sum`); runc, cni-plugins, cri-tools, etcd, node_exporter and restic: files of their releases;
GitHub, changelog of 2025-06-03, "Releases now expose digests for release assets" (`digest` of an asset in the REST API).
All of it is read over TLS from the project's own site; restic's list also has a signature, which isn't verified.
"""

from __future__ import annotations

import json
import re

from operations.bundles.places import Place, text
from operations.bundles.stage import ArtefactError

_LISTS = {
    "dl.k8s.io/": "{source}.sha256",
    "github.com/containerd/containerd/": "{source}.sha256sum",
    "github.com/containernetworking/plugins/": "{source}.sha256",
    "github.com/etcd-io/etcd/": "{folder}/SHA256SUMS",
    "github.com/kubernetes-sigs/cri-tools/": "{source}.sha256",
    "github.com/opencontainers/runc/": "{folder}/runc.sha256sum",
    "github.com/prometheus/node_exporter/": "{folder}/sha256sums.txt",
    "github.com/restic/restic/": "{folder}/SHA256SUMS",
}
"""Start of sources -> the file with their checksums. GitHub's own digests are used for all other releases there."""
_RELEASE = re.compile(r"github\.com/([^/]+)/([^/]+)/releases/download/([^/]+)/([^/]+)")
_LINE = re.compile(r"([0-9a-fA-F]{64})(?:\s+[* ]?(\S+))?")


def list_of(source: str) -> str:
    """Return host/path of the list with a file's checksum. Raises ArtefactError if none is known."""
    for start, pattern in _LISTS.items():
        if source.startswith(start):
            return pattern.format(source=source, folder=source.rpartition("/")[0])
    if match := _RELEASE.fullmatch(source):
        owner, repository, tag, _ = match.groups()
        return f"api.github.com/repos/{owner}/{repository}/releases/tags/{tag}"
    raise ArtefactError(f"no list of checksums is known for {source}")


def checksum(place: Place, source: str) -> str:
    """Return the SHA-256 that the project publishes for a file. Raises ArtefactError if it publishes none."""
    at = list_of(source)
    content = text(place, at)
    sha256 = _digest(content, source) if at.startswith("api.github.com/") else _listed(content, source)
    if not sha256:
        raise ArtefactError(f"{place.where(at)} has no SHA-256 of {source.rpartition('/')[2]}")
    return sha256


def _listed(content: str, source: str) -> str:
    """Return the checksum from the text of a list: lines as printed by sha256sum, or a digest alone."""
    name, sums = source.rpartition("/")[2], list[str]()
    for line in content.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match and (match[2] is None or match[2].rpartition("/")[2] == name):
            sums.append(match[1].lower())
    return sums[0] if len(set(sums)) == 1 else ""


def _digest(content: str, source: str) -> str:
    """Return the checksum from GitHub's description of a release. Assets from before June 2025 have none."""
    name = source.rpartition("/")[2]
    try:
        assets = json.loads(content)["assets"]
        digests = [asset.get("digest") or "" for asset in assets if asset["name"] == name]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    match = re.fullmatch(r"sha256:([0-9a-f]{64})", digests[0]) if len(digests) == 1 else None
    return match[1] if match else ""
