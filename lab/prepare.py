"""What a lab is made from, all of it in the cache: the hosts' root file system, the artefact mirror, images."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cluster.spec import Cluster
from lab import artefacts, images, rootfs
from lab.artefacts import MirrorTree
from lab.images import ImageStore
from lab.plan import LabSpec
from network import addresses
from tools import build, cache


@dataclass(frozen=True)
class Prepared:
    """image: root file system of the hosts. crane: the program that serves `images`."""

    image: Path
    mirror: MirrorTree
    crane: Path
    images: ImageStore


def prepare(report: Callable[[str], None] = lambda _: None, also: tuple[str, ...] = ()) -> Prepared:
    """Have everything in the cache; a few milliseconds when it is there already. also: further programs to build.

    The root file system is made while the programs are built: one waits for downloads, the other computes.
    """
    with ThreadPoolExecutor(1) as pool:
        image = pool.submit(rootfs.ensure, cache.root(), report)
        # Once for all programs, so that the report counts and estimates all of them.
        wanted = [*also, "crane", *artefacts.programs(), *images.programs()]
        crane = build.ensure(wanted, lambda event: report(str(event)))["crane"]
        return Prepared(image.result(), artefacts.build_mirror(), crane, images.build_images())


def lab_spec(cluster: Cluster, prepared: Prepared | None = None) -> LabSpec:
    """The lab that holds `cluster`: its ranges, the racks of its sites, its load balancer's address.

    Without `prepared` the paths are empty: enough for preflight, which looks at the ranges.
    """
    plan = addresses.plan(cluster)
    racks = {name: str(network) for site in cluster.spec.sites.values() for name, network in site.racks.items()}
    mtus = [site.link_mtu for site in cluster.spec.sites.values()]
    return LabSpec(
        cluster=cluster.name,
        nodes=str(plan.nodes),
        racks=racks,
        endpoint=str(plan.endpoint),
        image=str(prepared.image) if prepared else "",
        mirror=str(prepared.mirror.path) if prepared else "",
        crane=str(prepared.crane) if prepared else "",
        images=str(prepared.images.blobs) if prepared else "",
        rack_mtu=max(mtus, default=1500),
    )
