"""PRV-002, PRV-003, PRV-005 to PRV-009: what machines need before they are installed.

The model itself reports PRV-001 and PRV-004.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from cluster.check.finding import Finding, Rule, Subject
from cluster.disk_names import names_no_model
from cluster.document import Where
from cluster.pools import Host
from cluster.provisioning import FirstStage, Provisioning, SystemDisk
from cluster.sites import Site


def _provisioned(subject: Subject) -> Iterator[tuple[str, Where, Site, Provisioning]]:
    for name, site in subject.spec.sites.items():
        if site.provisioning:
            yield name, ("sites", name, "provisioning"), site, site.provisioning


def _machines(subject: Subject, site: str) -> Iterator[tuple[Where, str, Host]]:
    for where, pool, host in subject.hosts():
        if subject.spec.pools[pool].site == site:
            yield where, pool, host


def known_machines(subject: Subject) -> Iterator[Finding]:
    """Each machine has a MAC, which identifies it when it boots, and a BMC, which controls its power."""
    for name, _, _, provisioning in _provisioned(subject):
        for where, pool, host in _machines(subject, name):
            also: tuple[Where, ...] = (("pools", pool, "site"), ("sites", name, "provisioning"))
            if host.mac is None:
                message = f"{host.name} has no mac, but {name} has provisioning: its installer couldn't identify it"
                yield Finding(
                    where, message, "add mac: that of the card it boots from, as on its label or in its BMC", also=also
                )
            if host.bmc is None and provisioning.bmc:
                message = f"{host.name} has no bmc, but {name} has provisioning.bmc: nothing could power it on"
                yield Finding(where, message, "add bmc: the address of its BMC, or remove provisioning.bmc", also=also)


def first_stage(subject: Subject) -> Iterator[Finding]:
    """The first program that a machine boots can't be replaced on the way, and verifies the server it fetches from."""
    for _, where, _, provisioning in _provisioned(subject):
        first, place = provisioning.first_stage, (*where, "first_stage")
        if first and not provisioning.server.startswith("https://"):
            message = f"first_stage is {first.value}, but server is {provisioning.server}: anybody on that network can impersonate it"
            hint = "write https://, and build iPXE with the CA of the server's certificate (TRUST=)"
            yield Finding(place, message, hint, also=((*where, "server"),))
        if first is FirstStage.MEDIA and not (provisioning.media or "").startswith("https://"):
            message = (
                "first_stage is media, but media isn't an https address, so anybody on the way could replace the image"
            )
            yield Finding(place, message, "write media: https://..., or first_stage: secure-boot", also=(where,))


def system_disk(subject: Subject) -> Iterator[Finding]:
    """The rule for the system disk matches one disk, and none of Ceph's."""
    for name, where, site, provisioning in _provisioned(subject):
        disk, place = provisioning.disk, (*where, "disk")
        if disk.by_id is None and disk.min_size is None and disk.max_size is None:
            hint = "write by_id, or min_size and max_size: {by_id: nvme-Micron_7450*, max_size: 1TiB}"
            yield Finding(place, "disk is empty, so every disk would match", hint)
        elif disk.by_id and disk.min_size is None and disk.max_size is None and names_no_model(disk.by_id):
            message = f"disk.by_id {disk.by_id} matches every disk of a bus"
            yield Finding(
                (*place, "by_id"), message, "write the model: nvme-Micron_7450*, or add min_size and max_size"
            )
        if disk.min_size and disk.max_size and disk.min_size > disk.max_size:
            also: tuple[Where, ...] = ((*place, "max_size"),)
            yield Finding(
                (*place, "min_size"), "disk.min_size is above disk.max_size; no disk fits", "swap them", also=also
            )
        for kind, theirs in site.ceph.disks.items() if site.ceph else ():
            if _may_be_one(disk, theirs.by_id, theirs.min_size, theirs.max_size):
                message = (
                    f"disk can match a disk of Ceph at {name} (ceph.disks.{kind}); the installer would overwrite it"
                )
                other = ("sites", name, "ceph", "disks", kind)
                hint = "tell them apart by by_id or by size, for example with a min_size above Ceph's max_size"
                yield Finding(place, message, hint, also=(other,))


def _may_be_one(disk: SystemDisk, by_id: str, least: int, most: int | None) -> bool:
    """Return whether one disk could match both rules.

    Names overlap if one of the two patterns matches the other as plain text.
    """
    if (disk.max_size is not None and disk.max_size < least) or (most is not None and (disk.min_size or 0) > most):
        return False
    return disk.by_id is None or fnmatchcase(by_id, disk.by_id) or fnmatchcase(disk.by_id, by_id)


def logins(subject: Subject) -> Iterator[Finding]:
    """There is an SSH key: without one nobody could log in, as there are no passwords."""
    for name, where, _, provisioning in _provisioned(subject):
        if not provisioning.authorized_keys:
            message = f"authorized_keys of {name} is empty, so nobody could log in"
            yield Finding((*where, "authorized_keys"), message, "add the line of a .pub file")


def trusted_bmcs(subject: Subject) -> Iterator[Finding]:
    """BMC certificates are verified before a password is sent, and virtual media have a BMC to attach them."""
    for name, where, _, provisioning in _provisioned(subject):
        bmc = provisioning.bmc
        if bmc and (bmc.ca is None) == (bmc.pins is None):
            both = "both ca and pins" if bmc.ca else "neither ca nor pins"
            hint = "write ca: bmc-ca.pem if a CA signed the certificates, otherwise pins: bmc-pins.txt"
            yield Finding(
                (*where, "bmc"),
                f"bmc of {name} has {both}; certificates of BMCs are verified by exactly one of them",
                hint,
            )
        if provisioning.media and bmc is None:
            message = f"media of {name} needs BMCs to attach it, but there is no bmc"
            yield Finding((*where, "media"), message, "add bmc, or remove media to boot by PXE")


def routers(subject: Subject) -> Iterator[Finding]:
    """Each rack has an address for its router that no machine has."""
    for name, where, site, provisioning in _provisioned(subject):
        place = (*where, "router")
        for rack, network in site.racks.items():
            also: tuple[Where, ...] = (("sites", name, "racks", rack),)
            if provisioning.router >= network.num_addresses - 1:
                message = f"rack {rack} ({network}) has no address {provisioning.router} for its router"
                yield Finding(place, message, "write a smaller number, for example 1", also=also)
        for host_where, _, host in _machines(subject, name):
            rack_network = site.racks.get(host.rack)
            if rack_network and int(host.address) == int(rack_network.network_address) + provisioning.router:
                message = f"{host.name} has {host.address}, the address of the router of rack {host.rack} (provisioning.router)"
                yield Finding(
                    (*host_where, "address"), message, "write another address, or another router", also=(place,)
                )


def not_in_a_lab(subject: Subject) -> Iterator[Finding]:
    """A lab makes its own machines, which have nothing to boot."""
    for name, where, _, _ in _provisioned(subject):
        if subject.cluster.is_lab:
            message = f"site {name} of a lab has provisioning, but machines of a lab have no BMC and don't boot"
            yield Finding(where, message, "remove provisioning")


RULES: tuple[tuple[str, Rule], ...] = (
    ("PRV-002", known_machines),
    ("PRV-003", system_disk),
    ("PRV-005", logins),
    ("PRV-006", trusted_bmcs),
    ("PRV-007", routers),
    ("PRV-008", not_in_a_lab),
    ("PRV-009", first_stage),
)
