"""What a stack is given beside its spec and a validation cannot know: stood in for, and told."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from cluster.sources import without_checksum
from cluster.spec import Cloud, Cluster
from cluster.vpn import secret_names
from stacks.validation.model import Finding

_NO_CHECKSUM = "0" * 64


def complete(cluster: Cluster) -> Cluster:
    """The cluster with a checksum for every program."""
    missing = {each.source: _NO_CHECKSUM for each in without_checksum(cluster.spec)}
    artefacts = cluster.spec.artefacts
    known = artefacts.model_copy(update={"sha256": {**artefacts.sha256, **missing}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": known})})


def configuration(cluster: Cluster) -> dict[str, str]:
    """Secret of the stack's configuration -> a value that nobody has."""
    # Letters and digits, and no zero at the start: the clouds differ in what else a pre-shared key may have.
    return {name: f"k{secrets.token_hex(16)}" for name in secret_names(cluster.spec)}


PLACES = {Cloud.GCP: ("gcp", "project", "validated-project")}
"""Cloud -> what its provider must be told of an account: provider, key, value."""


def told(cluster: Cluster) -> Iterator[Finding]:
    """What `up` will ask for."""
    if missing := without_checksum(cluster.spec):
        names = ", ".join(each.name for each in missing)
        message = f"no checksum is known of {names}; zeros stand for them here, and `up` will refuse to go on"
        way_out = "write them into artefacts.sha256: host/path of a file and what sha256sum prints, an image and what `crane digest` prints"
        yield Finding("stood-in", message, way_out, "note", path=("artefacts",))
    if names := ", ".join(secret_names(cluster.spec)):
        message = f"the stack must be given the secrets {names}; random ones stand for them here"
        yield Finding("stood-in", message, "./menagerie secret CLUSTER NAME", "note", path=("sites",))
