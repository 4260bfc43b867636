"""CLD-008: what Azure doesn't offer, or not in combination, and would refuse only half-way through an `up`.

Sources, by page title: "Virtual Machine Scale Sets and placement groups"; "On-demand Capacity Reservation", limitations;
"Use tags to organize your Azure resources"; "Cluster Autoscaler on Azure" (a tag for each label and taint); "Find and use
Azure Marketplace VM images".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster import places
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.pools import Pool
from cluster.spec import Cloud

MOST_IN_ONE_GROUP = 100
"""Machines in a placement group, and therefore in one InfiniBand network."""
MOST_TAGS, OWN_TAGS = 50, 8
"""Tags that a resource can have, and those that a pool's scale set has without any label or taint."""
_RESERVATION = re.compile(r"/subscriptions/.+/capacityReservationGroups/[^/]+", re.IGNORECASE)
_IMAGE = re.compile(r"/(subscriptions|SharedGalleries|CommunityGalleries)/[\w/.()-]+|[\w.-]+(:[\w.-]+){3}")


def pools_of_azure(subject: Subject) -> Iterator[Finding]:
    """A scale set has one placement group, one reservation and at most fifty tags."""
    for name, pool in _pools(subject):
        yield from _fast_network(("pools", name), pool)
        yield from _reserved(("pools", name), pool)
        labels = len(places.of_pool(Cloud.AZURE, name, pool)) - 1
        if labels + len(pool.taints) > MOST_TAGS - OWN_TAGS:
            yield Finding(
                ("pools", name, "labels"),
                f"pools.{name} has {labels} labels and {len(pool.taints)} taints; each becomes a tag of the scale set, "
                f"which can take {MOST_TAGS - OWN_TAGS} of them",
                "remove some, or let a program in the cluster set them on nodes",
                also=(("pools", name, "taints"),),
            )


def images_of_azure(subject: Subject) -> Iterator[Finding]:
    """Images are named in one of Azure's forms."""
    plane = subject.spec.control_plane
    if plane.cloud is not Cloud.AZURE:
        return
    named: list[tuple[Where, str | None]] = [(("control_plane", "image"), plane.image)]
    named += [(("pools", name, "image"), pool.image) for name, pool in _pools(subject)]
    for where, image in named:
        if image and not _IMAGE.fullmatch(image):
            message = f"{'.'.join(map(str, where))} {image} isn't the name of an Azure image"
            hint = "write publisher:offer:sku:version, or an id: /subscriptions/…, /SharedGalleries/…, /CommunityGalleries/…"
            yield Finding(where, message, hint)


def _pools(subject: Subject) -> Iterator[tuple[str, Pool]]:
    if subject.spec.control_plane.cloud is Cloud.AZURE:
        yield from ((name, pool) for name, pool in subject.spec.pools.items() if pool.site is None)


def _fast_network(where: Where, pool: Pool) -> Iterator[Finding]:
    if pool.rdma and pool.max > MOST_IN_ONE_GROUP:
        yield Finding(
            (*where, "max"),
            f"{where[0]}.{where[1]} max is {pool.max} with rdma; an InfiniBand network of Azure has at most {MOST_IN_ONE_GROUP} machines",
            f"write max: {MOST_IN_ONE_GROUP}, and add more pools",
            also=((*where, "rdma"),),
        )


def _reserved(where: Where, pool: Pool) -> Iterator[Finding]:
    if not pool.reservation:
        return
    path = f"{where[0]}.{where[1]}"
    if not _RESERVATION.fullmatch(pool.reservation):
        message = f"{path}.reservation {pool.reservation} isn't the id of a capacity reservation group"
        hint = "write /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Compute/capacityReservationGroups/<name>"
        yield Finding((*where, "reservation"), message, hint)
    for key in [key for key, value in (("rdma", pool.rdma), ("placement", pool.placement)) if value]:
        message = f"{path} has a reservation and {key}; Azure's reserved capacity allows neither rdma nor a placement"
        yield Finding((*where, key), message, "remove one of the two", also=((*where, "reservation"),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-008", pools_of_azure),
    ("CLD-008", images_of_azure),
)
