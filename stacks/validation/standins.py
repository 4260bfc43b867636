"""Stand-ins for values that a stack needs besides its spec and that a validation can't know; reported as findings."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from cluster.bundles import collecting
from cluster.sources import without_checksum
from cluster.spec import Cloud, Cluster
from cluster.vpn import secret_names
from stacks.validation.model import Finding

_NO_CHECKSUM = "0" * 64


def complete(cluster: Cluster) -> Cluster:
    """Return the cluster with a checksum for every program."""
    missing = {program.source: _NO_CHECKSUM for program in without_checksum(cluster.spec)}
    artefacts = cluster.spec.artefacts
    completed = artefacts.model_copy(update={"sha256": {**artefacts.sha256, **missing}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": completed})})


def configuration(cluster: Cluster) -> dict[str, str]:
    """Return secret of the stack's configuration -> a random value."""
    # Letters and digits only, and no leading zero: clouds differ in which other characters a pre-shared key may have.
    return {name: f"k{secrets.token_hex(16)}" for name in secret_names(cluster.spec)}


PLACES = {Cloud.GCP: ("gcp", "project", "validated-project")}
"""Cloud -> a setting that its provider needs about an account: provider, key, value."""


def findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what `up` will require."""
    if missing := without_checksum(cluster.spec):
        names = ", ".join(program.name for program in missing)
        message = f"there is no checksum for {names}; zeros stand in for them here, and `up` will refuse to continue"
        way_out = f"collect and verify them: {collecting(cluster.name)}"
        yield Finding("stood-in", message, way_out, "note", path=("artefacts",))
    if needed := secret_names(cluster.spec):
        message = f"the stack needs the secrets {', '.join(needed)}; random values stand in for them here"
        way_out = "; ".join(f"./menagerie secret {cluster.name} {name}" for name in needed)
        yield Finding("stood-in", message, f"store them: {way_out}", "note", path=("sites",))
