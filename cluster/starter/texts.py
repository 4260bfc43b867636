"""Texts of a new cluster's folder: small, with a reason or alternatives for each key."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster import catalogue
from cluster.catalogue import Machine
from cluster.document import parse
from cluster.network import ClusterNetwork
from cluster.placeholders import MARK
from cluster.project import is_installed
from cluster.spec import Cloud
from cluster.starter.places import Place
from cluster.starter.ranges import OPERATORS, Ranges

SITE, RACK = "onprem", "r1"
_WIDTH = 120
_SCHEMAS = "../../cluster/schemas"
_FIRST_HOST = 11
_IMAGES = {Cloud.AZURE: "Debian:debian-13:13-gen2:latest"}
"""Azure's default is Debian 12, which scale sets that exist cannot leave (`stacks.azure.hosts`)."""
_NAMES = {Cloud.AWS: "AWS", Cloud.AZURE: "Azure", Cloud.GCP: "Google Cloud", Cloud.LAB: "this machine, a lab"}
_LONGEST_NAME = 63
_DEFAULT_MTU: int = ClusterNetwork.model_fields["link_mtu"].default
_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})


@dataclass(frozen=True)
class Tunnels:
    """How a site is joined to the region. routers: public addresses of its edge routers."""

    asn: int
    inside: IPv4Network
    routers: tuple[IPv4Address, ...]


@dataclass(frozen=True)
class Site:
    """A site. hardware: kind of its machines, "" without GPUs. tunnels: None in a lab, whose router joins sites."""

    hardware: str
    tunnels: Tunnels | None

    @property
    def pool(self) -> str:
        return "gpu" if self.hardware else "workers"


@dataclass(frozen=True)
class StarterPlan:
    """Content of the texts. place: None in a lab. site: None if workers are in the region."""

    name: str
    cloud: Cloud
    ranges: Ranges
    place: Place | None
    site: Site | None


def cluster_yaml(plan: StarterPlan) -> str:
    """Return the text of the spec."""
    where = f"{_NAMES[plan.cloud]}{f', region {plan.place.region}' if plan.place else ''}"
    workers = f"workers at site {SITE}" if plan.site else "workers in the region"
    head = f"{plan.name}: control plane on {where}; {workers}. Created by `menagerie init`; change it as you like. "
    head += f"`./menagerie check {plan.name}` reports all mistakes; `menagerie show schema` explains every key."
    parts = (_plane(plan), _etcd(plan), _network(plan), _sites(plan), _pools(plan))
    rows = [
        _row(f"name: {_quoted(plan.name)}", "name of the folder and of the Pulumi stack"),
        *(row for part in parts for row in part),
    ]
    return _text("cluster", head, rows)


def hosts_yaml(plan: StarterPlan) -> str:
    """Return the text of the hosts file for the site's pool."""
    assert plan.site and plan.ranges.rack
    if plan.cloud is Cloud.LAB:
        head = f"Machines of pool {plan.site.pool}. The lab creates them."
    else:
        head = f"Machines of pool {plan.site.pool}. {MARK} list your own, with addresses in their rack's range. "
        head += "Machines that Menagerie installs also need mac and bmc: docs/how-to/provisioning.md."
    end = "gpu" if plan.site.hardware else "worker"
    stem = plan.name[: _LONGEST_NAME - len(f"-{end}-1")].rstrip("-")
    rows = [
        f"  - {{name: {stem}-{end}-{number}, rack: {RACK}, address: {plan.ranges.rack[_FIRST_HOST - 1 + number]}}}"
        for number in (1, 2)
    ]
    return _text("hosts", head, ["hosts:", *rows])


def secret(router: int) -> str:
    """Return the name of the pre-shared key of an edge router, counted from 1."""
    return f"vpn-{SITE}-edge-{router}"


def _plane(plan: StarterPlan) -> list[str]:
    if plan.place is None:
        return [
            "control_plane:",
            _row("  cloud: lab", "everything runs on this machine; or aws, azure, gcp"),
            "  region: local",
            "  machine: lab-small",
            _row("  api_servers: 2", "stateless: two survive the loss of one"),
        ]
    others = ", ".join(cloud for cloud in _NAMES if cloud is not plan.cloud)
    zones = "three, so that etcd survives the loss of one"
    zones += "; IDs, because letters differ between accounts" if plan.cloud is Cloud.AWS else ""
    return [
        "control_plane:",
        _row(f"  cloud: {plan.cloud}", f"or {others}"),
        _row(f"  region: {plan.place.region}", "a cluster never leaves its region"),
        _row(f"  zones: [{', '.join(plan.place.zones)}]", zones),
        _row(f"  machine: {plan.place.plane.name}", f"of API servers: {_size(plan.place.plane)}"),
        *_image(plan, "  image: ", "of API servers and members of etcd"),
        _row("  api_servers: 2", "stateless: two survive the loss of one"),
        _row(
            f"  operators: [{OPERATORS}]",
            f"{MARK} your VPN or peering. Only these ranges can reach the API. Or add `public`, an endpoint on the internet",
        ),
    ]


def _image(plan: StarterPlan, key: str, why: str = "") -> list[str]:
    """Return the line of an image, where a stack's default is older than what a new cluster should have."""
    image = _IMAGES.get(plan.cloud)
    return [_row(f"{key}{image}", why)] if image else []


def _etcd(plan: StarterPlan) -> list[str]:
    machine = plan.place.plane.name if plan.place else "lab-small"
    picked = None if plan.place is None else catalogue.of(plan.cloud).choices
    # Disks of a lab have no size.
    disk, main, events, local = "lab-folder", "", "", ""
    if picked:
        disk, main, events = picked.etcd_disk, picked.etcd_disk_sizes.main, picked.etcd_disk_sizes.events
        local = (
            "must be fast, as each write waits for it. Or local-nvme, with a machine type such as "
            f"{picked.local_disk_machine}"
        )
    lab = picked is None
    if lab:
        size = _row("    quota: 4GiB", "etcd refuses writes above it; 8GiB is the default and the maximum")
    else:
        why = "at least twice the quota (8GiB by default): defragmentation writes a second copy"
        size = _row(f"    disk_size: {main}", why)
    return [
        "etcd:",
        _row("  main:", "everything except Events"),
        f"    machine: {machine}",
        _row("    members: 3", "an odd number: 3 survive one loss, 5 survive two"),
        _row(f"    disk: {disk}", local),
        size,
        _row("    backup: {every: 1h, keep: 14d}", "encrypted snapshots; a drill restores one every day"),
        _row("  events:", "Events have a separate etcd: they change a lot, and losing them does no harm"),
        f"    machine: {machine}",
        *([] if lab else [_row("    hosts: main", "on the hosts of main; `dedicated` isolates disk and CPU")]),
        f"    disk: {disk}",
        *([] if lab else [f"    disk_size: {events}"]),
        "    quota: 4GiB",
    ]


def _network(plan: StarterPlan) -> list[str]:
    ranges, link = plan.ranges, _jumbo_mtu(plan.cloud)
    rows = [
        _row("network:", "ranges that were unused in inventories/ when this was created"),
        _row(f"  pods: {ranges.pods}", f"a /24 for each of {2 ** (24 - ranges.pods.prefixlen)} nodes"),
        _row(f"  services: {ranges.services}", "virtual addresses of Services, on no wire"),
        _row(f"  nodes: {ranges.nodes}", "hosts in the region"),
    ]
    rows += [_row(f"  link_mtu: {link}", f"bytes, the maximum on {_NAMES[plan.cloud]}")] if link else []
    if plan.cloud is Cloud.AWS:
        rows.append(_row("neighbours: {gc_thresh1: 0}", "AWS reuses addresses quickly, so keep no stale ARP entries"))
    return rows


def _jumbo_mtu(cloud: Cloud) -> int | None:
    """Return the largest MTU of a cloud's links, if it is above the default."""
    largest = catalogue.of(cloud).link_mtu.max if cloud in catalogue.CLOUDS else 0
    return largest if largest > _DEFAULT_MTU else None


def _sites(plan: StarterPlan) -> list[str]:
    if plan.site is None:
        return []
    tunnels = plan.site.tunnels
    rack = (
        f"{MARK} the range of each of your racks; each is one layer-2 network"
        if tunnels
        else "each is one layer-2 network"
    )
    rows = [
        "sites:",
        _row(f"  {SITE}:", "a place with your own machines"),
        _row(f"    racks: {{{RACK}: {plan.ranges.rack}}}", rack),
    ]
    if tunnels is None:
        return rows
    return [
        *rows,
        _row(
            "    vpn:",
            "IPsec tunnels with BGP to the cloud's gateway; leave it out if you have your own line",
        ),
        _row(f"      asn: {tunnels.asn}", "ASN of the site's routers, either private or your own"),
        _row(f"      inside: {tunnels.inside}", "addresses inside the tunnels, a /30 each"),
        _row("      routers:", f"{MARK} public addresses of your edge routers. `menagerie secret` stores the keys"),
        *(
            f"        edge-{number}: {{address: {address}, psk: {{secret: {secret(number)}}}}}"
            for number, address in enumerate(tunnels.routers, start=1)
        ),
    ]


def _pools(plan: StarterPlan) -> list[str]:
    if plan.site:
        rows = [
            "pools:",
            f"  {plan.site.pool}:",
            f"    site: {SITE}",
            _row("    hosts: hosts.yaml", "the machines of the pool"),
        ]
        kind = "kind in cluster/hardware/machines.yaml; a machine without this hardware gets no work"
        return [*rows, _row(f"    hardware: {plan.site.hardware}", kind)] if plan.site.hardware else rows
    assert plan.place
    rows = [
        "pools:",
        "  cpu:",
        _row(f"    machine: {plan.place.worker.name}", _size(plan.place.worker)),
        *_image(plan, "    image: "),
        _row("    min: 2", "least number of workers"),
        _row("    max: 10", "most that the pool can grow to, by hand or with `autoscaler: {}`"),
    ]
    gpu = plan.place.gpu
    if gpu is None:
        return rows
    assert gpu.machine.type
    others = ", ".join(machine.name for machine in gpu.others[:3])
    what = f"{gpu.machine.type.gpus} GPUs of kind {gpu.kind}{f'; or {others}' if others else ''}"
    rows += ["  gpu:", _row(f"    machine: {gpu.machine.name}", what)]
    if gpu.zones != plan.place.zones:
        rows.append(
            _row(f"    zones: [{', '.join(gpu.zones)}]", "those of control_plane.zones that offer this machine type")
        )
    return [
        *rows,
        _row("    min: 0", "no costs for GPUs until somebody needs one"),
        "    max: 2",
        _row(
            "    allow_no_driver: true",
            f"{MARK} Debian's image has no driver. Write image: one that has, or install it from inside the cluster",
        ),
    ]


def _size(machine: Machine) -> str:
    return f"{machine.type.vcpus} vCPUs, {machine.type.memory_gb:g} GB" if machine.type else ""


def _quoted(name: str) -> str:
    """Quote a name if YAML needs it: null, 1e3 and 2026-11-25 aren't text without quotes, nor is `on` for older parsers."""
    is_text = parse(f"name: {name}", "").data == {"name": name}
    return name if is_text and name not in _BOOLEANS and not name[0].isdigit() else f'"{name}"'


def _row(text: str, why: str = "") -> str:
    """Return a line with its reason behind it, or above it if it is too long."""
    if not why or len(text) + len(why) + 3 <= _WIDTH:
        return f"{text} # {why}" if why else text
    indent = " " * (len(text) - len(text.lstrip()))
    return "\n".join((*_comment(why, indent), text))


def _comment(text: str, indent: str = "") -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in wrapped]


def _text(schema: str, head: str, rows: Iterable[str]) -> str:
    server = "# yaml-language-server: $schema="
    first = f"{server}{_SCHEMAS}/{schema}.schema.json"
    if is_installed():
        first = f"# For completion in an editor: menagerie show schema {schema} > {schema}.schema.json, then {server}{schema}.schema.json"
    return "\n".join((first, *_comment(head), *rows)) + "\n"
