"""Which part of a spec a resource comes from, so that findings about it can point there."""

from __future__ import annotations

PROGRAM = ("control_plane", "cloud")
"""The value that selects the whole program."""

# Word in the type of a component -> the part of the spec that it is created from.
_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("etcd", ("etcd",)),
    ("worker", ("pools",)),
    ("pool", ("pools",)),
    ("controlplane", ("control_plane",)),
    ("loadbalancer", ("control_plane",)),
    ("vpn", ("sites",)),
    ("network", ("network",)),
    ("security", ("network",)),
    ("firewall", ("network",)),
    ("endpoint", ("network",)),
    ("dns", ("network",)),
)


def section_of(urn: str) -> tuple[str, ...]:
    """Return the part of the spec, from the component types around a resource: ``urn:pulumi:S::P::menagerie:aws:Etcd$aws:ec2/...::name``."""
    kinds = urn.split("::")[2].lower() if urn.count("::") >= 3 else ""
    ours = "$".join(kind for kind in kinds.split("$") if kind.startswith("menagerie:"))
    return next((part for word, part in _PARTS if word in ours), PROGRAM)
