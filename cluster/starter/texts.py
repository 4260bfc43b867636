"""The texts of a new cluster's folder: small, and each key with a reason or what else could stand there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster.catalogue import Machine
from cluster.document import parse
from cluster.spec import Cloud
from cluster.starter.places import Place
from cluster.starter.ranges import OPERATORS, Ranges

MARK = "PLACEHOLDER:"
"""Begins the comment of each value that the owner must replace."""
SITE, RACK = "onprem", "r1"
_WIDTH = 120
_SCHEMAS = "../../cluster/schemas"
_FIRST_HOST = 11
_NAMES = {Cloud.AWS: "AWS", Cloud.AZURE: "Azure", Cloud.GCP: "Google Cloud", Cloud.LAB: "this machine, a lab"}
_LONGEST_NAME = 63
_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})


@dataclass(frozen=True)
class Tunnels:
    """How a site is joined. routers: public addresses of its edge routers."""

    asn: int
    inside: IPv4Network
    routers: tuple[IPv4Address, ...]


@dataclass(frozen=True)
class Site:
    """hardware: kind of its machines, "" where they have no GPU. tunnels: None in a lab, whose router joins sites."""

    hardware: str
    tunnels: Tunnels | None

    @property
    def pool(self) -> str:
        return "gpu" if self.hardware else "workers"


@dataclass(frozen=True)
class Plan:
    """All that the texts say. place: None in a lab. site: None where workers are in the region."""

    name: str
    cloud: Cloud
    ranges: Ranges
    place: Place | None
    site: Site | None


def cluster_yaml(plan: Plan) -> str:
    """The spec."""
    where = f"{_NAMES[plan.cloud]}{f', region {plan.place.region}' if plan.place else ''}"
    workers = f"workers at site {SITE}" if plan.site else "workers in the region"
    head = f"{plan.name}: control plane on {where}; {workers}. Written once by `menagerie init`, yours to change. "
    head += f"`./menagerie check {plan.name}` names every mistake; `menagerie schema` explains every key."
    parts = (_plane(plan), _etcd(plan), _network(plan), _sites(plan), _pools(plan))
    rows = [
        _row(f"name: {_quoted(plan.name)}", "the folder's name, and the Pulumi stack's"),
        *(row for part in parts for row in part),
    ]
    return _text("cluster", head, rows)


def hosts_yaml(plan: Plan) -> str:
    """The machines of the site's pool."""
    assert plan.site and plan.ranges.rack
    if plan.cloud is Cloud.LAB:
        head = f"Machines of pool {plan.site.pool}. A lab makes them."
    else:
        head = f"Machines of pool {plan.site.pool}. {MARK} write your own, with addresses in their rack's range. "
        head += "Machines that Menagerie installs also need mac and bmc: docs/how-to/provisioning.md."
    end = "gpu" if plan.site.hardware else "worker"
    stem = plan.name[: _LONGEST_NAME - len(f"-{end}-1")].rstrip("-")
    rows = [
        f"  - {{name: {stem}-{end}-{number}, rack: {RACK}, address: {plan.ranges.rack[_FIRST_HOST - 1 + number]}}}"
        for number in (1, 2)
    ]
    return _text("hosts", head, ["hosts:", *rows])


def secret(router: int) -> str:
    """Name of the pre-shared key of an edge router; they count from 1."""
    return f"vpn-{SITE}-edge-{router}"


def _plane(plan: Plan) -> list[str]:
    if plan.place is None:
        return [
            "control_plane:",
            _row("  cloud: lab", "a data centre on this machine; or aws, azure, gcp"),
            "  region: local",
            "  machine: lab-small",
            _row("  api_servers: 2", "they keep no state: two survive the loss of one"),
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
        _row("  api_servers: 2", "they keep no state: two survive the loss of one"),
        _row(
            f"  operators: [{OPERATORS}]",
            f"{MARK} your VPN or peering. Only these ranges reach the API; or `public`, a second endpoint for the internet",
        ),
    ]


_DISKS = {
    Cloud.AWS: ("io2", "64GiB", "16GiB"),
    Cloud.AZURE: ("premium_ssd_v2", "32GiB", "16GiB"),
    Cloud.GCP: ("hyperdisk-balanced", "32GiB", "16GiB"),
    Cloud.LAB: ("lab-folder", "", ""),
}
"""Cloud -> kind of etcd's disks, size of main's and of events'; a lab's have none."""
_LOCAL = {Cloud.AWS: "i4i.xlarge", Cloud.AZURE: "Standard_L8s_v3", Cloud.GCP: "c3-standard-8-lssd"}


def _etcd(plan: Plan) -> list[str]:
    machine = plan.place.plane.name if plan.place else "lab-small"
    disk, main, events = _DISKS[plan.cloud]
    lab = plan.place is None
    local = "" if lab else f"fast: each write waits for it. Or local-nvme, on a machine such as {_LOCAL[plan.cloud]}"
    if lab:
        size = _row("    quota: 4GiB", "etcd refuses writes above it; 8GiB is the default, and the most")
    else:
        why = "at least twice the quota, 8GiB by default: a defragmentation writes a second copy"
        size = _row(f"    disk_size: {main}", why)
    return [
        "etcd:",
        _row("  main:", "everything but Events"),
        f"    machine: {machine}",
        _row("    members: 3", "an odd number: 3 survive one loss, 5 survive two"),
        _row(f"    disk: {disk}", local),
        size,
        _row("    backup: {every: 1h, keep: 14d}", "encrypted snapshots; a drill restores one every day"),
        _row("  events:", "Events have their own etcd: they churn, and their loss harms nothing"),
        f"    machine: {machine}",
        *([] if lab else [_row("    hosts: main", "on the hosts of main; `dedicated` isolates disk and CPU")]),
        f"    disk: {disk}",
        *([] if lab else [f"    disk_size: {events}"]),
        "    quota: 4GiB",
    ]


_LINKS = {Cloud.AWS: 9001, Cloud.GCP: 8896}
"""Cloud -> the most bytes of its links, where that is more than the default."""


def _network(plan: Plan) -> list[str]:
    ranges, link = plan.ranges, _LINKS.get(plan.cloud)
    rows = [
        _row("network:", "ranges that nothing in inventories/ had when this was written"),
        _row(f"  pods: {ranges.pods}", f"a /24 for each of {2 ** (24 - ranges.pods.prefixlen)} nodes"),
        _row(f"  services: {ranges.services}", "virtual addresses of Services, on no wire"),
        _row(f"  nodes: {ranges.nodes}", "hosts in the region"),
    ]
    rows += [_row(f"  link_mtu: {link}", f"bytes: the most that {_NAMES[plan.cloud]} carries")] if link else []
    if plan.cloud is Cloud.AWS:
        rows.append(
            _row("neighbours: {gc_thresh1: 0}", "AWS soon gives an address to another machine: keep no stale ARP entry")
        )
    return rows


def _sites(plan: Plan) -> list[str]:
    if plan.site is None:
        return []
    tunnels = plan.site.tunnels
    rack = (
        f"{MARK} the range of each of your racks, one layer-2 network each" if tunnels else "one layer-2 network each"
    )
    rows = [
        "sites:",
        _row(f"  {SITE}:", "a place with machines of your own"),
        _row(f"    racks: {{{RACK}: {plan.ranges.rack}}}", rack),
    ]
    if tunnels is None:
        return rows
    return [
        *rows,
        _row(
            "    vpn:",
            "IPsec tunnels with BGP to the cloud's gateway; leave it out if your own line leads there",
        ),
        _row(f"      asn: {tunnels.asn}", "of the site's routers: a private ASN, or your own"),
        _row(f"      inside: {tunnels.inside}", "addresses inside the tunnels: a /30 each"),
        _row("      routers:", f"{MARK} public addresses of your edge routers. `menagerie secret` keeps the keys"),
        *(
            f"        edge-{number}: {{address: {address}, psk: {{secret: {secret(number)}}}}}"
            for number, address in enumerate(tunnels.routers, start=1)
        ),
    ]


def _pools(plan: Plan) -> list[str]:
    if plan.site:
        rows = [
            "pools:",
            f"  {plan.site.pool}:",
            f"    site: {SITE}",
            _row("    hosts: hosts.yaml", "the machines of the pool"),
        ]
        kind = "what each machine must have, or it takes no work; a kind of cluster/hardware/machines.yaml"
        return [*rows, _row(f"    hardware: {plan.site.hardware}", kind)] if plan.site.hardware else rows
    assert plan.place
    rows = [
        "pools:",
        "  cpu:",
        _row(f"    machine: {plan.place.worker.name}", _size(plan.place.worker)),
        _row("    min: 2", "workers that the region always has"),
        _row("    max: 10", "the most that the pool can grow to: by hand, or with `autoscaler: {}`"),
    ]
    gpu = plan.place.gpu
    if gpu is None:
        return rows
    assert gpu.machine.type
    others = ", ".join(machine.name for machine in gpu.others[:3])
    what = f"{gpu.machine.type.gpus} GPUs of kind {gpu.kind}{f'; or {others}' if others else ''}"
    rows += ["  gpu:", _row(f"    machine: {gpu.machine.name}", what)]
    if gpu.zones != plan.place.zones:
        rows.append(_row(f"    zones: [{', '.join(gpu.zones)}]", "those of control_plane.zones that offer the machine"))
    return [
        *rows,
        _row("    min: 0", "no GPU is paid for until somebody asks for one"),
        "    max: 2",
        _row(
            "    allow_no_driver: true",
            f"{MARK} Debian 12 has no driver. Write image: one that has it; or install it from inside the cluster",
        ),
    ]


def _size(machine: Machine) -> str:
    return f"{machine.type.vcpus} vCPUs, {machine.type.memory_gb:g} GB" if machine.type else ""


def _quoted(name: str) -> str:
    """A name as YAML reads it back: null, 1e3 and 2026-11-25 are no text without quotes, nor is `on` for older readers."""
    is_text = parse(f"name: {name}", "").data == {"name": name}
    return name if is_text and name not in _BOOLEANS and not name[0].isdigit() else f'"{name}"'


def _row(text: str, why: str = "") -> str:
    """A line with its reason behind it, or above it where it is long."""
    if not why or len(text) + len(why) + 3 <= _WIDTH:
        return f"{text} # {why}" if why else text
    indent = " " * (len(text) - len(text.lstrip()))
    return "\n".join((*_comment(why, indent), text))


def _comment(text: str, indent: str = "") -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in wrapped]


def _text(schema: str, head: str, rows: Iterable[str]) -> str:
    first = f"# yaml-language-server: $schema={_SCHEMAS}/{schema}.schema.json"
    return "\n".join((first, *_comment(head), *rows)) + "\n"
