"""Prepare what a lab is built from, all of it in the cache: the hosts' root file system, the artefact mirror, images.

Also links kubectl into the checkout, for people.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cluster import versions
from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from network import addresses
from sandbox.lab import artefacts, disk, images, rootfs, state
from sandbox.lab.artefacts import MirrorTree
from sandbox.lab.images import ImageStore
from sandbox.lab.plan import LabSpec
from tools import build, cache

KUBECTL = state.CHECKOUT / ".menagerie" / "bin" / "kubectl"
"""Link to the built kubectl: the same path for every version, and outside .venv, which may be recreated."""
_WAY_OUT = (
    "While no lab is up, everything in it can be removed: it is rebuilt when needed. "
    "`go env GOCACHE GOMODCACHE` prints the folders of Go's own caches."
)


@dataclass(frozen=True)
class Prepared:
    """What a lab is built from.

    image: root file system of the hosts. crane: the program that serves `images`. versitygw: the program that serves buckets.
    """

    image: Path
    mirror: MirrorTree
    crane: Path
    images: ImageStore
    versitygw: Path


def programs(kubernetes: str) -> tuple[str, ...]:
    """Return the programs of tools/ that a lab with this version of Kubernetes is made of."""
    return ("crane", "kubectl", "versitygw", *artefacts.programs(kubernetes), *images.programs(kubernetes))


def prepare(
    report: Callable[[str], None] = lambda _: None,
    also: tuple[str, ...] = (),
    kubernetes: str = versions.KUBERNETES,
) -> Prepared:
    """Build everything that the cache lacks; a few milliseconds when nothing is missing. also: further programs to build.

    The root file system and the programs are built in parallel: one waits for downloads, the other computes.
    Raises what `rootfs.ensure` and `tools.build.ensure` raise, and LabError when the cache's disk is full.
    """
    with disk.space(cache.root(), _WAY_OUT), ThreadPoolExecutor(1) as pool:
        image = pool.submit(rootfs.ensure, report)
        # One call for all programs, so that the progress report counts and estimates all of them.
        paths = build.ensure([*also, *programs(kubernetes)], lambda event: report(str(event)))
        _link(paths["kubectl"], KUBECTL)
        mirror, stored = artefacts.build_mirror(kubernetes), images.build_images(kubernetes)
        return Prepared(image.result(), mirror, paths["crane"], stored, paths["versitygw"])


def _link(program: Path, place: Path) -> None:
    if not place.is_symlink() or place.readlink() != program:
        with disk.whole(place) as fresh:
            fresh.symlink_to(program)


def lab_spec(
    cluster: Cluster,
    prepared: Prepared | None = None,
    endpoint_ports: tuple[int, ...] = (),
    between_workers: tuple[str, ...] = (),
    racks_to_cloud: tuple[str, ...] = (),
    workers_to_cloud: tuple[str, ...] = (),
) -> LabSpec:
    """Return the lab that holds `cluster`: its ranges, the racks of its sites, its load balancer's address.

    endpoint_ports: ports of the load balancer that workers may reach. The other lists: as in `LabSpec`. Without
    `prepared` the paths are empty, and without ports workers reach nothing; that is enough for preflight, which checks the ranges.
    """
    spec = cluster.spec
    plan = addresses.plan(cluster)
    racks = {name: str(network) for site in spec.sites.values() for name, network in site.racks.items()}
    mtus = [site.link_mtu for site in spec.sites.values()]
    return LabSpec(
        cluster=cluster.name,
        nodes=str(plan.nodes),
        racks=racks,
        endpoint=plan.endpoint,
        endpoint_ports=endpoint_ports,
        image=str(prepared.image) if prepared else "",
        mirror=str(prepared.mirror.path) if prepared else "",
        crane=str(prepared.crane) if prepared else "",
        images=str(prepared.images.blobs) if prepared else "",
        rack_mtu=max(mtus, default=1500),
        workers=str(worker_ranges(spec)[0]) if spec.cloud_workers else "",
        between_workers=between_workers,
        racks_to_cloud=racks_to_cloud,
        workers_to_cloud=workers_to_cloud,
        versitygw=str(prepared.versitygw) if prepared else "",
    )
