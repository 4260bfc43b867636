"""Which part of a spec a resource comes from, so that what is wrong with it can be shown there."""

from __future__ import annotations

PROGRAM = ("control_plane", "cloud")
"""What chose the whole program."""

# Word in the type of a component -> the part of the spec that it is made from.
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
    """From the types of the components around a resource: ``urn:pulumi:S::P::menagerie:aws:Etcd$aws:ec2/...::name``."""
    kinds = urn.split("::")[2].lower() if urn.count("::") >= 3 else ""
    ours = "$".join(kind for kind in kinds.split("$") if kind.startswith("menagerie:"))
    return next((part for word, part in _PARTS if word in ours), PROGRAM)
